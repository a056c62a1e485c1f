// Conversion in two steps, row by row: channels are rearranged at the file's depth, then samples are scaled to the output's type.

#include "convert.h"

#include <cassert>
#include <cstring>
#include <limits>
#include <type_traits>

namespace l3 {
namespace {

// ---- Step 1: color, at the file's depth ----

// Luma with the weights and the rounding of libpng, which decodes gray for DALI: 8 bits truncate, 16 bits round.
template <typename T>
T luma(uint32_t r, uint32_t g, uint32_t b) {
  constexpr uint32_t rounding = sizeof(T) == 1 ? 0 : 1 << 14;
  return static_cast<T>((9797 * r + 19234 * g + 3737 * b + rounding) >> 15);
}

template <typename T, uint32_t Channels>
void rearrange(const T *in, uint32_t width, l3_color color, T *out) {
  // Gray images, with or without alpha, are read as R = G = B.
  constexpr uint32_t r = 0, g = Channels < 3 ? 0 : 1, b = Channels < 3 ? 0 : 2;
  switch (color) {
    case L3_COLOR_NATIVE:
      std::memcpy(out, in, width * Channels * sizeof(T));
      break;
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

// ---- Step 2: samples ----

// The value that stands for full intensity.
template <typename T>
constexpr float full_scale() {
  return std::is_floating_point_v<T> ? 1.0f : static_cast<float>(std::numeric_limits<T>::max());
}

// Rounds a value >= 0 to the nearest, halves up, and saturates. Float in, like DALI, whose results this must repeat; the sum is exact in
// double where the output has more digits than a float.
template <typename Out>
Out round_to(float value) {
  if constexpr (std::is_floating_point_v<Out>) {
    return value;
  } else if constexpr (sizeof(Out) < 4) {
    const auto rounded = static_cast<int32_t>(value + 0.5f);
    return static_cast<Out>(rounded < std::numeric_limits<Out>::max() ? rounded : std::numeric_limits<Out>::max());
  } else {
    const auto rounded = static_cast<int64_t>(static_cast<double>(value) + 0.5);
    return static_cast<Out>(rounded < std::numeric_limits<Out>::max() ? rounded : std::numeric_limits<Out>::max());
  }
}

template <typename Out, typename In>
void scale(const In *in, uint32_t count, Out *out) {
  if constexpr (std::is_same_v<Out, In>) {
    std::memcpy(out, in, count * sizeof(In));
  } else {
    constexpr float factor = full_scale<Out>() / full_scale<In>();
    for (uint32_t i = 0; i < count; i++) out[i] = round_to<Out>(in[i] * factor);
  }
}

// ITU-R BT.601 with headroom (Y 16..235 of 255). Each sum is taken from left to right, as DALI takes it.
template <typename Out, typename In>
void rgb_to_ycbcr(const In *in, uint32_t width, Out *out) {
  constexpr auto factor =
      static_cast<float>(static_cast<double>(std::is_floating_point_v<Out> ? 1.0 : std::numeric_limits<Out>::max()) /
                         std::numeric_limits<In>::max());
  constexpr float bias = std::is_floating_point_v<Out> ? 1.0f : full_scale<Out>() + 1;  // 2^bits
  constexpr float y[] = {0.25678823529f * factor, 0.50412941176f * factor, 0.09790588235f * factor};
  constexpr float cb[] = {-0.14822289945f * factor, -0.29099278682f * factor, 0.43921568627f * factor};
  constexpr float cr[] = {0.43921568627f * factor, -0.36778831435f * factor, -0.07142737192f * factor};
  for (uint32_t x = 0; x < width; x++, in += 3, out += 3) {
    const float r = in[0], g = in[1], b = in[2];
    out[0] = round_to<Out>(y[0] * r + y[1] * g + y[2] * b + 0.0625f * bias);
    out[1] = round_to<Out>(cb[0] * r + cb[1] * g + cb[2] * b + 0.5f * bias);
    out[2] = round_to<Out>(cr[0] * r + cr[1] * g + cr[2] * b + 0.5f * bias);
  }
}

// ---- Rows ----

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
    std::memcpy(static_cast<char *>(output.data) + y * output.row_stride, converted, block.width * channels * sizeof(Out));
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
    case L3_SAMPLE_I16: return 2;
    case L3_SAMPLE_U32:
    case L3_SAMPLE_I32:
    case L3_SAMPLE_F32: return 4;
  }
  return 0;
}

bool needs_conversion(uint32_t channels, uint32_t bits, l3_color color, l3_sample sample) {
  const bool same_color = color == L3_COLOR_NATIVE || (color == L3_COLOR_RGB && channels == 3) || (color == L3_COLOR_GRAY && channels == 1);
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
