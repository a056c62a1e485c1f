// Writing pixels to the output as the caller wants them: sample type, colour, order of channels.
//
// A few threads share a row, and a thread takes the samples of a word of the output, so that stores are coalesced.
#pragma once

#include <bit>

#include "format/geometry.h"
#include "output/convert_pixel.h"
#include "tile_part.h"

namespace l3 {

// Pixels as images have them, aligned to samples.
template <typename Sample>
struct InterleavedPixels {
  const Sample *samples;
  uint32_t channels, width;

  L3_DEVICE Sample operator()(uint32_t x, uint32_t y, uint32_t channel) const {
    return samples[(y * width + x) * channels + channel];
  }
};

// One sample of a pixel as convert() would write it.
template <typename Out, typename Sample, typename Pixels>
L3_DEVICE Out converted_sample(const Pixels &pixels, uint32_t color, uint32_t x, uint32_t y, uint32_t component) {
  const auto rgb = [&](uint32_t c) { return pixels(x, y, channel_as_rgb(c, pixels.channels)); };
  switch (color) {
    case L3_COLOR_RGB: return scale_sample<Out>(rgb(component));
    case L3_COLOR_BGR: return scale_sample<Out>(rgb(2 - component));
    case L3_COLOR_GRAY: return scale_sample<Out>(pixels.channels < 3 ? rgb(0) : luma<Sample>(rgb(0), rgb(1), rgb(2)));
    case L3_COLOR_YCBCR: return ycbcr_of_rgb<Out>(component, rgb(0), rgb(1), rgb(2));
    default: return scale_sample<Out>(pixels(x, y, component));
  }
}

using Word [[gnu::may_alias]] = uint32_t;  // of samples of any type

template <typename Out>
L3_DEVICE uint32_t bits_of(Out sample) {
  if constexpr (std::is_floating_point_v<Out>)
    return std::bit_cast<uint32_t>(sample);
  else if constexpr (std::is_same_v<Out, Half>)
    return sample.bits;
  else
    return std::make_unsigned_t<Out>(sample);
}

// What is to be written: a rectangle of the source's pixels, and where its top left one goes.
struct PixelRows {
  uint32_t left, top, width, height;
  uint8_t *out;
};

// A thread's share: every `rows`-th row from `row` on, and of it every `lanes`-th word from `lane` on.
struct RowShare {
  uint32_t row, rows, lane, lanes;
};

// Words at the ends of the row, which belong to it only in part, are written sample by sample.
template <typename Out, typename Sample, typename Pixels>
L3_DEVICE void write_samples(const BatchImage &image, const PixelRows &part, const Pixels &pixels, RowShare share) {
  constexpr uint32_t kInWord = 4 / sizeof(Out);  // samples
  const uint32_t channels = image.output_pixel_size / uint32_t(sizeof(Out));
  const uint32_t samples = part.width * channels;
  const uint32_t reciprocal = 65536 / channels + 1;  // divides numbers below 2^14 by up to four
  for (uint32_t y = share.row; y < part.height; y += share.rows) {
    Out *const row = reinterpret_cast<Out *>(part.out + y * image.row_stride);
    const uint32_t before =
        uint32_t(reinterpret_cast<uintptr_t>(row) % 4 / sizeof(Out));  // samples of the first word that precede the row
    for (uint32_t in_words = share.lane * kInWord; in_words < before + samples; in_words += share.lanes * kInWord) {
      const uint32_t first =
          in_words - before;  // wraps around where the word begins before the row: beyond its end, like any outside it
      const bool whole = first < samples && samples - first >= kInWord;
      Word word = 0;
      L3_NO_UNROLL  // else colours and types make a lot of code
          for (uint32_t k = 0; k < kInWord; k++) {
        const uint32_t i = first + k;
        if (i >= samples) continue;
        const uint32_t x = i * reciprocal >> 16;
        const auto sample = Out(converted_sample<Computed<Out>, Sample>(pixels, image.color, part.left + x,
                                                                        part.top + y, i - x * channels));
        if (whole)
          word |= bits_of(sample) << 8 * sizeof(Out) * k;
        else
          row[i] = sample;
      }
      if (whole) *reinterpret_cast<Word *>(row + first) = word;
    }
  }
}

template <typename Sample, typename Pixels>
L3_DEVICE void write_pixels(const BatchImage &image, const PixelRows &part, const Pixels &pixels, RowShare share) {
  switch (image.sample) {
    case L3_SAMPLE_U8: return write_samples<uint8_t, Sample>(image, part, pixels, share);
    case L3_SAMPLE_I8: return write_samples<int8_t, Sample>(image, part, pixels, share);
    case L3_SAMPLE_U16: return write_samples<uint16_t, Sample>(image, part, pixels, share);
    case L3_SAMPLE_I16: return write_samples<int16_t, Sample>(image, part, pixels, share);
    case L3_SAMPLE_U32: return write_samples<uint32_t, Sample>(image, part, pixels, share);
    case L3_SAMPLE_I32: return write_samples<int32_t, Sample>(image, part, pixels, share);
    case L3_SAMPLE_F32: return write_samples<float, Sample>(image, part, pixels, share);
    case L3_SAMPLE_F16: return write_samples<Half, Sample>(image, part, pixels, share);
    default: return write_samples<Sample, Sample>(image, part, pixels, share);
  }
}

}  // namespace l3
