// Conversion in two steps, row by row: channels are rearranged at the file's depth, then samples are scaled to the
// output's type.

#include "output/convert.h"

#include <cassert>
#include <cstring>
#include <type_traits>

#include "output/convert_pixel.h"

namespace l3 {
namespace {

// ---- Step 1: color, at the file's depth -----------------------------------------------------------------------------

template <typename T, uint32_t Channels>
void rearrange(const T *in, uint32_t width, l3_color color, T *out) {
  constexpr uint32_t r = channel_as_rgb(0, Channels), g = channel_as_rgb(1, Channels), b = channel_as_rgb(2, Channels);
  switch (color) {
    case L3_COLOR_NATIVE: std::memcpy(out, in, width * Channels * sizeof(T)); break;
    case L3_COLOR_RGB:
    case L3_COLOR_YCBCR:  // converted from RGB in step 2
      for (uint32_t x = 0; x < width; x++, in += Channels, out += 3) {
        out[0] = in[r];
        out[1] = in[g];
        out[2] = in[b];
      }
      break;
    case L3_COLOR_BGR:
      for (uint32_t x = 0; x < width; x++, in += Channels, out += 3) {
        out[0] = in[b];
        out[1] = in[g];
        out[2] = in[r];
      }
      break;
    case L3_COLOR_GRAY:
      for (uint32_t x = 0; x < width; x++, in += Channels) {
        out[x] = Channels < 3 ? in[0] : luma<T>(in[r], in[g], in[b]);
      }
      break;
  }
}

template <typename T>
void rearrange(const T *in, uint32_t width, uint32_t channels, l3_color color, T *out) {
  switch (channels) {
    case 1: return rearrange<T, 1>(in, width, color, out);
    case 2: return rearrange<T, 2>(in, width, color, out);
    case 3: return rearrange<T, 3>(in, width, color, out);
    case 4: return rearrange<T, 4>(in, width, color, out);
  }
}

// ---- Step 2: samples ------------------------------------------------------------------------------------------------

template <typename Out, typename In>
void scale(const In *in, uint32_t count, Out *out) {
  if constexpr (std::is_same_v<Out, In>) {
    std::memcpy(out, in, count * sizeof(In));
  } else {
    for (uint32_t i = 0; i < count; i++) out[i] = Out(scale_sample<Computed<Out>>(in[i]));
  }
}

template <typename Out, typename In>
void rgb_to_ycbcr(const In *in, uint32_t width, Out *out) {
  for (uint32_t x = 0; x < width; x++, in += 3, out += 3)
    for (uint32_t component = 0; component < 3; component++)
      out[component] = Out(ycbcr_of_rgb<Computed<Out>>(component, in[0], in[1], in[2]));
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

template <typename In, typename Out>
void convert_rows(const NativeBlock &block, const l3_output &output) {
  const uint32_t channels = converted_channels(block.channels, output.color);
  alignas(64) In rearranged[L3_TILE * L3_MAX_CHANNELS];
  alignas(64) Out converted[L3_TILE * L3_MAX_CHANNELS];
  for (uint32_t y = 0; y < block.height; y++) {
    const auto *in = reinterpret_cast<const In *>(static_cast<const char *>(block.data) + y * block.row_stride);
    rearrange(in, block.width, block.channels, output.color, rearranged);
    if (output.color == L3_COLOR_YCBCR) {
      rgb_to_ycbcr(rearranged, block.width, converted);
    } else {
      scale(rearranged, block.width * channels, converted);
    }
    std::memcpy(static_cast<char *>(output.data) + y * output.row_stride, converted,
                block.width * channels * sizeof(Out));
  }
}

template <typename In>
void convert_from(const NativeBlock &block, const l3_output &output) {
  switch (output.sample) {
    case L3_SAMPLE_NATIVE: return convert_rows<In, In>(block, output);
    case L3_SAMPLE_U8: return convert_rows<In, uint8_t>(block, output);
    case L3_SAMPLE_I8: return convert_rows<In, int8_t>(block, output);
    case L3_SAMPLE_U16: return convert_rows<In, uint16_t>(block, output);
    case L3_SAMPLE_I16: return convert_rows<In, int16_t>(block, output);
    case L3_SAMPLE_U32: return convert_rows<In, uint32_t>(block, output);
    case L3_SAMPLE_I32: return convert_rows<In, int32_t>(block, output);
    case L3_SAMPLE_F32: return convert_rows<In, float>(block, output);
    case L3_SAMPLE_F16: return convert_rows<In, Half>(block, output);
  }
}

}  // namespace

uint32_t converted_channels(uint32_t channels, l3_color color) {
  switch (color) {
    case L3_COLOR_NATIVE: return channels;
    case L3_COLOR_GRAY: return 1;
    case L3_COLOR_RGB:
    case L3_COLOR_BGR:
    case L3_COLOR_YCBCR: return 3;
  }
  return 0;
}

uint32_t converted_sample_size(uint32_t bits, l3_sample sample) {
  switch (sample) {
    case L3_SAMPLE_NATIVE: return bits / 8;
    case L3_SAMPLE_U8:
    case L3_SAMPLE_I8: return 1;
    case L3_SAMPLE_U16:
    case L3_SAMPLE_I16:
    case L3_SAMPLE_F16: return 2;
    case L3_SAMPLE_U32:
    case L3_SAMPLE_I32:
    case L3_SAMPLE_F32: return 4;
  }
  return 0;
}

bool needs_conversion(uint32_t channels, uint32_t bits, l3_color color, l3_sample sample) {
  const bool same_color =
      color == L3_COLOR_NATIVE || (color == L3_COLOR_RGB && channels == 3) || (color == L3_COLOR_GRAY && channels == 1);
  const bool same_sample = sample == L3_SAMPLE_NATIVE || sample == (bits == 8 ? L3_SAMPLE_U8 : L3_SAMPLE_U16);
  return !same_color || !same_sample;
}

void convert(const NativeBlock &block, const l3_output &output) {
  assert(block.width <= L3_TILE && block.channels <= L3_MAX_CHANNELS);
  if (block.bits == 8) {
    convert_from<uint8_t>(block, output);
  } else {
    convert_from<uint16_t>(block, output);
  }
}

}  // namespace l3
