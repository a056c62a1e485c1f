// Tests of the conversions to color and sample types: rules that can be stated without DALI. That DALI agrees is tested
// from Python.

#include "output/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "output/convert_pixel.h"
#include "testing.h"

namespace {

using l3::Half;

template <typename T>
constexpr l3_sample kSampleOf = std::is_same_v<T, Half>       ? L3_SAMPLE_F16
                                : std::is_same_v<T, uint8_t>  ? L3_SAMPLE_U8
                                : std::is_same_v<T, int8_t>   ? L3_SAMPLE_I8
                                : std::is_same_v<T, uint16_t> ? L3_SAMPLE_U16
                                : std::is_same_v<T, int16_t>  ? L3_SAMPLE_I16
                                : std::is_same_v<T, uint32_t> ? L3_SAMPLE_U32
                                : std::is_same_v<T, int32_t>  ? L3_SAMPLE_I32
                                                              : L3_SAMPLE_F32;

// Converts pixels of one row, in blocks as wide as a tile.
template <typename Out, typename In>
std::vector<Out> converted(const std::vector<In> &in, uint32_t channels, l3_color color) {
  const auto width = static_cast<uint32_t>(in.size() / channels);
  const uint32_t out_channels = l3::converted_channels(channels, color);
  std::vector<Out> out(size_t{width} * out_channels);
  for (uint32_t x = 0; x < width; x += L3_TILE) {
    const uint32_t count = std::min<uint32_t>(L3_TILE, width - x);
    l3_output output = {};
    output.data = out.data() + size_t{x} * out_channels;
    output.row_stride = count * out_channels * sizeof(Out);
    output.color = color;
    output.sample = kSampleOf<Out>;
    l3::convert({in.data() + size_t{x} * channels, count * channels * sizeof(In), count, 1, channels, 8 * sizeof(In)},
                output);
  }
  return out;
}

template <typename T>
std::vector<T> all_values() {
  std::vector<T> values(size_t{std::numeric_limits<T>::max()} + 1);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

// Full scale maps to full scale, and what lies between is rounded to the nearest, halves away from zero, in float.
template <typename In, typename Out>
void check_scaling() {
  const auto in = all_values<In>();
  const auto out = converted<Out>(in, 1, L3_COLOR_GRAY);
  constexpr bool is_float = std::is_floating_point_v<Out>;
  const float out_max = is_float ? 1.0f : static_cast<float>(std::numeric_limits<Out>::max());
  const float factor = out_max / std::numeric_limits<In>::max();
  for (size_t i = 0; i < in.size(); i++) {
    const float scaled = in[i] * factor;
    Out expected;
    if constexpr (is_float) {
      expected = scaled;
    } else {
      const double rounded = std::round(scaled);
      expected =
          rounded >= std::numeric_limits<Out>::max() ? std::numeric_limits<Out>::max() : static_cast<Out>(rounded);
    }
    const testing::Context context("the value %u", unsigned{in[i]});
    CHECK_EQUAL(+out[i], +expected);
  }
  CHECK(out.front() == 0);
  CHECK_EQUAL(+out.back(), +(is_float ? Out(1) : std::numeric_limits<Out>::max()));
}

template <typename T>
void check_conversion(const std::vector<T> &in, uint32_t channels, l3_color color, const std::vector<T> &expected) {
  const testing::Context context("%u channels to color %d", channels, int(color));
  CHECK(converted<T>(in, channels, color) == expected);
}

template <typename T>
void check_channels() {
  const std::vector<T> gray = {10, 200}, gray_alpha = {10, 1, 200, 2}, gray_three_times = {10, 10, 10, 200, 200, 200};
  const std::vector<T> rgb = {10, 20, 30, 200, 100, 50}, bgr = {30, 20, 10, 50, 100, 200},
                       rgba = {10, 20, 30, 1, 200, 100, 50, 2};
  check_conversion(gray, 1, L3_COLOR_RGB, gray_three_times);
  check_conversion(gray, 1, L3_COLOR_BGR, gray_three_times);
  check_conversion(gray_alpha, 2, L3_COLOR_RGB, gray_three_times);
  check_conversion(gray_alpha, 2, L3_COLOR_GRAY, gray);
  check_conversion(gray_alpha, 2, L3_COLOR_NATIVE, gray_alpha);
  check_conversion(rgb, 3, L3_COLOR_BGR, bgr);
  check_conversion(rgba, 4, L3_COLOR_RGB, rgb);
  check_conversion(rgba, 4, L3_COLOR_BGR, bgr);
  check_conversion(rgba, 4, L3_COLOR_GRAY, converted<T>(rgb, 3, L3_COLOR_GRAY));
  check_conversion(rgba, 4, L3_COLOR_NATIVE, rgba);
}

// Gray pixels keep their value; others get the luma of BT.601 to within one step.
template <typename T>
void check_luma() {
  std::vector<T> neutral, colored;
  for (T v : all_values<T>()) {
    neutral.insert(neutral.end(), {v, v, v});
    colored.insert(colored.end(), {v, static_cast<T>(v * 37), static_cast<T>(v * 101)});
  }
  check_conversion(neutral, 3, L3_COLOR_GRAY, all_values<T>());
  const auto gray = converted<T>(colored, 3, L3_COLOR_GRAY);
  constexpr double tolerance = sizeof(T) == 1 ? 1.01 : 7;  // the weights have 15 bits
  for (size_t i = 0; i < gray.size(); i++) {
    const testing::Context context("pixel %zu", i);
    const double exact = 0.299 * colored[3 * i] + 0.587 * colored[3 * i + 1] + 0.114 * colored[3 * i + 2];
    CHECK(std::abs(gray[i] - exact) <= tolerance);
  }
}

}  // namespace

TEST(scaling_of_8_bits) {
  check_scaling<uint8_t, uint8_t>();
  check_scaling<uint8_t, int8_t>();
  check_scaling<uint8_t, uint16_t>();
  check_scaling<uint8_t, int16_t>();
  check_scaling<uint8_t, uint32_t>();
  check_scaling<uint8_t, int32_t>();
  check_scaling<uint8_t, float>();
}

TEST(scaling_of_16_bits) {
  check_scaling<uint16_t, uint8_t>();
  check_scaling<uint16_t, int8_t>();
  check_scaling<uint16_t, uint16_t>();
  check_scaling<uint16_t, int16_t>();
  check_scaling<uint16_t, uint32_t>();
  check_scaling<uint16_t, int32_t>();
  check_scaling<uint16_t, float>();
}

// The value of a float of 16 bits that is not negative, by the standard's formula.
double value_of(uint16_t bits) {
  const int exponent = bits >> 10, fraction = bits & 0x3ff;
  return exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
}

// Both neighbours are farther away, or as far and odd.
template <typename In>
void check_halves() {
  const auto in = all_values<In>();
  const auto exact = converted<float>(in, 1, L3_COLOR_GRAY);
  const auto rounded = converted<Half>(in, 1, L3_COLOR_GRAY);
  CHECK_EQUAL(rounded.front().bits, 0);
  CHECK_EQUAL(value_of(rounded.back().bits), 1);
  for (size_t i = 0; i < in.size(); i++) {
    const testing::Context context("the value %u", unsigned{in[i]});
    const auto distance = [&](int bits) { return std::abs(value_of(uint16_t(bits)) - double{exact[i]}); };
    const int bits = rounded[i].bits;
    for (const int neighbour : {bits - 1, bits + 1}) {
      if (neighbour < 0) continue;
      CHECK(distance(bits) < distance(neighbour) || (distance(bits) == distance(neighbour) && bits % 2 == 0));
    }
  }
}

TEST(halves_of_8_bits) { check_halves<uint8_t>(); }
TEST(halves_of_16_bits) { check_halves<uint16_t>(); }

// Values that no sample becomes: ties above and below the least normal number, and the largest.
TEST(halves_of_ties) {
  for (const double step : {std::ldexp(1, -24), std::ldexp(1, -11), std::ldexp(1, 5)})
    for (int last = 0; last < 4; last++) {
      const double kept = step * (step < 1e-6 ? last : 1024 + last);
      const int expected = Half(float(kept)).bits;
      CHECK_EQUAL(value_of(uint16_t(expected)), kept);
      CHECK_EQUAL(Half(float(kept + step / 2)).bits, expected + last % 2);
      CHECK_EQUAL(Half(float(kept + step * 0.501)).bits, expected + 1);
      CHECK_EQUAL(Half(float(kept + step * 0.499)).bits, expected);
    }
}

TEST(channels_of_8_bits) { check_channels<uint8_t>(); }
TEST(channels_of_16_bits) { check_channels<uint16_t>(); }
TEST(luma_of_8_bits) { check_luma<uint8_t>(); }
TEST(luma_of_16_bits) { check_luma<uint16_t>(); }

TEST(ycbcr_of_the_primaries) {
  const std::vector<uint8_t> rgb = {0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255};
  check_conversion(rgb, 3, L3_COLOR_YCBCR, {16, 128, 128, 235, 128, 128, 81, 90, 240, 145, 54, 34, 41, 240, 110});
}

TEST(ycbcr_of_white_in_floats) {
  const auto white = converted<float>(std::vector<uint16_t>{65535}, 1, L3_COLOR_YCBCR);
  CHECK(std::abs(white[0] - (0.0625f + 219.0f / 255)) < 1e-6f);
  CHECK(std::abs(white[1] - 0.5f) < 1e-6f);
  CHECK(std::abs(white[2] - 0.5f) < 1e-6f);
}

// Rows go where the stride says, at any alignment, and nothing else is written.
TEST(placement) {
  const std::array<uint16_t, 2 * 5> in = {1, 2, 3, 4, 0xffff,
                                          5, 6, 7, 8, 0xffff};  // 2 rows of 4 pixels and one to be skipped
  constexpr size_t stride = 4 * 3 * 4 + 7;
  std::vector<uint8_t> out(3 + 2 * stride, 0xaa);
  l3_output output = {};
  output.data = out.data() + 3;
  output.row_stride = stride;
  output.color = L3_COLOR_RGB;
  output.sample = L3_SAMPLE_F32;
  l3::convert({in.data(), 5 * sizeof(uint16_t), 4, 2, 1, 16}, output);
  const auto is_untouched = [](uint8_t byte) { return byte == 0xaa; };
  for (size_t y = 0; y < 2; y++) {
    const testing::Context context("row %zu", y);
    for (size_t i = 0; i < 12; i++) {
      float value;
      std::memcpy(&value, out.data() + 3 + y * stride + 4 * i, 4);
      CHECK_EQUAL(value, in[5 * y + i / 3] * (1.0f / 65535));
    }
    const auto *gap = out.data() + 3 + y * stride + 48;
    CHECK(std::all_of(gap, gap + 7, is_untouched));
  }
  CHECK(std::all_of(out.begin(), out.begin() + 3, is_untouched));
}

TEST(what_needs_conversion) {
  CHECK(!l3::needs_conversion(3, 8, L3_COLOR_RGB, L3_SAMPLE_U8));
  CHECK(!l3::needs_conversion(1, 16, L3_COLOR_GRAY, L3_SAMPLE_U16));
  CHECK(!l3::needs_conversion(4, 16, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE));
  CHECK(l3::needs_conversion(4, 8, L3_COLOR_RGB, L3_SAMPLE_U8));   // alpha is dropped
  CHECK(l3::needs_conversion(2, 8, L3_COLOR_GRAY, L3_SAMPLE_U8));  // also that of gray
  CHECK(l3::needs_conversion(3, 8, L3_COLOR_BGR, L3_SAMPLE_U8));
  CHECK(l3::needs_conversion(3, 8, L3_COLOR_YCBCR, L3_SAMPLE_U8));
  CHECK(l3::needs_conversion(3, 16, L3_COLOR_RGB, L3_SAMPLE_U8));
  CHECK(l3::needs_conversion(3, 8, L3_COLOR_RGB, L3_SAMPLE_I8));
}
