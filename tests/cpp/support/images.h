// Images to test with, and the codec's functions on them. Buffers are vectors made in one step, which allocate exactly
// their size, so that a sanitizer sees what lies beyond it being touched.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "l3/l3.h"

namespace l3 {

using Bytes = std::vector<uint8_t>;

// Random numbers, the same in every run.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t operator()() { return engine_(); }
  uint32_t below(uint32_t limit) { return engine_() % limit; }
  uint32_t between(uint32_t least, uint32_t most) { return least + below(most - least + 1); }
  Bytes bytes(size_t count);

 private:
  std::mt19937 engine_;
};

struct Image {
  uint32_t width, height, channels, bits;
  Bytes pixels = {};  // interleaved, rows without gaps
  bool two_dimensional = false;

  size_t pixel_size() const { return channels * bits / 8; }
  size_t row_size() const { return width * pixel_size(); }
};

// kShifted: with zeros in the low bits; kRepeated: with two equal bytes, where samples have two.
enum class Kind { kNoise, kExtremes, kSlope, kLabels, kConstant, kShifted, kRepeated };
constexpr Kind kKinds[] = {Kind::kNoise,    Kind::kExtremes, Kind::kSlope,   Kind::kLabels,
                           Kind::kConstant, Kind::kShifted,  Kind::kRepeated};

Image make_image(Random &random, uint32_t width, uint32_t height, uint32_t channels, uint32_t bits, Kind kind);

// The pixels of a rectangle of an image.
Bytes crop(const Image &image, const l3_rect &rect);

l3_image view_of(const Image &image);
l3_encode_options encode_options(l3_profile profile, uint32_t effort = 2, bool checksums = true);

// The image as a file. Fails the test where that fails.
Bytes encode(const Image &image, const l3_encode_options &options);

// A decoded region of a file, or why there is none. Its buffer has exactly its size.
struct Decoded {
  l3_status status;
  std::string message;
  Bytes pixels;
};
Decoded decode(const Bytes &file, const l3_rect *roi = nullptr, uint32_t options = 0);

}  // namespace l3
