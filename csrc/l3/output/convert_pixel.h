// Conversion of one sample or pixel: what convert.h promises, in functions that CPU and GPU share.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "format/host_device.h"

namespace l3 {

// A compiler for a GPU may fuse a product and a sum into one operation that rounds once. Results must not depend on
// that.
L3_HOST_DEVICE float rounded_product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

L3_HOST_DEVICE float rounded_sum(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

// A float of 16 bits. Samples are computed as float, and rounded once more.
struct Half {
  uint16_t bits;

  Half() = default;

  // The nearest, ties to even, to a finite value >= 0 that has one.
  L3_HOST_DEVICE explicit Half(float value) {
    const auto whole = std::bit_cast<uint32_t>(value);  // in the order of the values
    constexpr uint32_t least_normal = (127 - 14) << 23, exponents = (127 - 15) << 23;
    constexpr uint32_t below_half = 0xfff;  // of the last bit that is kept
    // For small values, the sum rounds to multiples of 2^-24, the smallest step of 16 bits, and has their number in its
    // last bits.
    if (whole < least_normal)
      bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded_sum(value, 0.5f)));
    else
      bits = static_cast<uint16_t>((whole - exponents + below_half + (whole >> 13 & 1)) >> 13);
  }
};

// What samples of an output type are computed as.
template <typename Out>
using Computed = std::conditional_t<std::is_same_v<Out, Half>, float, Out>;

// The channel that is read as R, G or B (0, 1, 2). Gray images, with or without alpha, are read as R = G = B.
constexpr uint32_t channel_as_rgb(uint32_t component, uint32_t channels) { return channels < 3 ? 0 : component; }

// Luma with the weights and the rounding of libpng, which decodes gray for DALI: 8 bits truncate, 16 bits round.
template <typename T>
L3_HOST_DEVICE T luma(uint32_t r, uint32_t g, uint32_t b) {
  constexpr uint32_t rounding = sizeof(T) == 1 ? 0 : 1 << 14;
  return static_cast<T>((9797 * r + 19234 * g + 3737 * b + rounding) >> 15);
}

// The value that stands for full intensity.
template <typename T>
constexpr float full_scale() {
  return std::is_floating_point_v<T> ? 1.0f : static_cast<float>(std::numeric_limits<T>::max());
}

// Rounds a value >= 0 to the nearest, halves up, and saturates. Float in, like DALI, whose results this must repeat;
// the sum is exact in double where the output has more digits than a float.
template <typename Out>
L3_HOST_DEVICE Out round_to(float value) {
  if constexpr (std::is_floating_point_v<Out>) {
    return value;
  } else if constexpr (sizeof(Out) < 4) {
    const auto rounded = static_cast<int32_t>(rounded_sum(value, 0.5f));
    return static_cast<Out>(rounded < std::numeric_limits<Out>::max() ? rounded : std::numeric_limits<Out>::max());
  } else {
    const auto rounded = static_cast<int64_t>(static_cast<double>(value) + 0.5);
    return static_cast<Out>(rounded < std::numeric_limits<Out>::max() ? rounded : std::numeric_limits<Out>::max());
  }
}

template <typename Out, typename In>
L3_HOST_DEVICE Out scale_sample(In sample) {
  if constexpr (std::is_same_v<Out, In>) {
    return sample;
  } else {
    constexpr float factor = full_scale<Out>() / full_scale<In>();
    return round_to<Out>(rounded_product(sample, factor));
  }
}

// Y, Cb or Cr (component 0, 1, 2): ITU-R BT.601 with headroom (Y 16..235 of 255). The sum is taken from left to right,
// as DALI takes it.
template <typename Out, typename In>
L3_HOST_DEVICE Out ycbcr_of_rgb(uint32_t component, In r, In g, In b) {
  constexpr auto factor =
      static_cast<float>(static_cast<double>(std::is_floating_point_v<Out> ? 1.0 : std::numeric_limits<Out>::max()) /
                         std::numeric_limits<In>::max());
  constexpr float bias = std::is_floating_point_v<Out> ? 1.0f : full_scale<Out>() + 1;  // 2^bits
  constexpr float y_r = 0.25678823529f * factor, y_g = 0.50412941176f * factor, y_b = 0.09790588235f * factor;
  constexpr float cb_r = -0.14822289945f * factor, cb_g = -0.29099278682f * factor, cb_b = 0.43921568627f * factor;
  constexpr float cr_r = 0.43921568627f * factor, cr_g = -0.36778831435f * factor, cr_b = -0.07142737192f * factor;
  const float red = rounded_product(component == 0 ? y_r : component == 1 ? cb_r : cr_r, r);
  const float green = rounded_product(component == 0 ? y_g : component == 1 ? cb_g : cr_g, g);
  const float blue = rounded_product(component == 0 ? y_b : component == 1 ? cb_b : cr_b, b);
  return round_to<Out>(
      rounded_sum(rounded_sum(rounded_sum(red, green), blue), component == 0 ? 0.0625f * bias : 0.5f * bias));
}

}  // namespace l3
