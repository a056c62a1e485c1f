// Conversion of decoded pixels to the color and the sample type that a caller asks for.
//
// The results equal what fn.decoders.image of DALI 2.4 gives for the same pixels stored as PNG, bit for bit, so that a
// data set can change its file format without changing what a network sees. docs/dali.md states the rules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "l3/l3.h"

namespace l3 {

// Pixels as the file holds them: interleaved channels of 8 or 16 bits, aligned to their size.
struct NativeBlock {
  const void *data;
  size_t row_stride;       // bytes
  uint32_t width, height;  // pixels; at most L3_TILE wide
  uint32_t channels, bits;
};

// Channels of a pixel and bytes of a sample after conversion.
uint32_t converted_channels(uint32_t channels, l3_color color);
uint32_t converted_sample_size(uint32_t bits, l3_sample sample);

// Whether pixels of this kind differ, in `color` and `sample`, from how the file holds them.
bool needs_conversion(uint32_t channels, uint32_t bits, l3_color color, l3_sample sample);

// Writes the block to output.data, where its top left pixel lands. output.data need not be aligned.
void convert(const NativeBlock &block, const l3_output &output);

}  // namespace l3
