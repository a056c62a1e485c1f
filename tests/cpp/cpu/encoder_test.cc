// The parts of the encoder against what docs/format.md says of codes, octets and label maps. That tiles decode again is
// tested elsewhere; here it is that nothing is larger than it need be.
#include <algorithm>
#include <vector>

#include "cpu/generic_encoder.h"
#include "images.h"
#include "testing.h"

using namespace l3;

namespace {

// What a code of width `width` > 0 holds: -2^(n-1) … 2^(n-1) - 1 if odd, 1 - 2^(n-1) … 2^(n-1) if even.
bool holds(uint32_t code, int above, int below) {
  const uint32_t width = (code + 1) / 2;
  if (width == 0) return above == 0 && below == 0;
  const int half = 1 << (width - 1), even = code % 2 == 0;
  return above <= half - 1 + even && below <= half - even;
}

// Of residuals from -below to above.
template <typename Sample>
void check_tightest_code(int above, int below) {
  const testing::Context context("residuals from %d to %d", -below, above);
  const Sample most = Sample(above), least = Sample(below);
  uint8_t code;
  generic::find_codes(&most, &least, 1, &code);
  uint32_t tightest = 0;
  while (!holds(tightest, above, below)) tightest++;
  CHECK_EQUAL(uint32_t(code), tightest);
  CHECK_EQUAL(uint32_t(generic::bit_width_of(generic::magnitude(most, least))), (tightest + 1) / 2);
}

template <typename Sample>
void check_octets() {
  constexpr uint32_t bits = 8 * sizeof(Sample), codes = code_count(bits), count = generic::kMaxGroups;
  Random random(1);
  for (uint32_t i = 0; i < 50; i++) {
    // A palette of all codes, so that each group has its own. Residuals as wide as their codes.
    const generic::Symbols<Sample> symbols(~0u >> (32 - codes), max_index_bits(bits));
    generic::GroupBytes group_codes;
    std::vector<Sample> residuals(kPlaneSize);
    std::vector<bool> expected;
    for (uint32_t g = 0; g < count; g++) {
      const uint32_t code = random.below(codes), width = code_width(code);
      group_codes[g] = uint8_t(code);
      std::vector<uint32_t> values(kGroup);
      for (uint32_t k = 0; k < kGroup; k++) {
        values[k] = random.below(1u << width);
        residuals[g / generic::kQuarter * 2 * L3_TILE + k * generic::kQuarter + g % generic::kQuarter] =
            Sample(values[k] + code_minimum(code));
      }
      // Eight bits of each value, then those above.
      for (uint32_t first = 0; first < width; first += 8)
        for (const uint32_t value : values)
          for (uint32_t bit = first; bit < std::min(width, first + 8); bit++) expected.push_back(value >> bit & 1);
    }
    const generic::Octets<Sample> octets(residuals.data(), group_codes, count, symbols);
    std::vector<uint8_t> out(kPlaneSize * sizeof(Sample) + 16);
    const uint8_t *end = octets.write(0, count, out.data());
    CHECK_EQUAL(size_t(end - out.data()) * 8, expected.size());
    for (size_t bit = 0; bit < expected.size(); bit++) CHECK(bool(out[bit / 8] >> bit % 8 & 1) == expected[bit]);
  }
}

// A label map is written where it fits, and only there.
template <typename Sample>
void check_capacity() {
  Random random(2);
  for (uint32_t i = 0; i < 200; i++) {
    const TileShape shape{random.between(1, 64), random.between(1, 64)};
    const uint32_t labels = random.between(1, 20);
    const testing::Context context("%u labels, %u x %u", labels, shape.width, shape.height);
    generic::QuarteredPlane<Sample> plane;
    for (uint32_t y = 0; y < shape.height; y++)
      for (uint32_t at = 0; at < L3_TILE; at++)
        plane.row(y)[at] = y && random.below(4) ? plane.row(y - 1)[at] : Sample(random.below(labels) * 7);
    Bytes roomy(sizeof plane), tight(sizeof plane);
    const uint32_t size = generic::encode_label_map(plane, shape, roomy.data(), uint32_t(roomy.size()));
    CHECK(size > 0);
    CHECK_EQUAL(generic::encode_label_map(plane, shape, tight.data(), size), size);
    CHECK(std::equal(roomy.begin(), roomy.begin() + size, tight.begin()));
    CHECK_EQUAL(generic::encode_label_map(plane, shape, tight.data(), size - 1), 0u);
  }
}

// A channel of more values than a label map can have.
void check_too_many_labels() {
  generic::QuarteredPlane<uint16_t> plane;
  for (uint32_t y = 0; y < L3_TILE; y++)
    for (uint32_t at = 0; at < L3_TILE; at++) plane.row(y)[at] = uint16_t(y < 5 ? y * L3_TILE + at : 256);
  Bytes out(sizeof plane);
  const TileShape shape{L3_TILE, L3_TILE};
  CHECK_EQUAL(generic::encode_label_map(plane, shape, out.data(), uint32_t(out.size())), 0u);
  for (uint32_t at = 0; at < L3_TILE; at++) plane.row(4)[at] = 3 * L3_TILE;  // 256 are left
  for (uint32_t y = 5; y < L3_TILE; y++) std::copy_n(plane.row(4), L3_TILE, plane.row(y));
  CHECK(generic::encode_label_map(plane, shape, out.data(), uint32_t(out.size())) > 0);
}

// Decoders ignore the indices of groups outside the tile; they must be 0, also without a palette that has code 0.
template <typename Sample>
void check_indices_outside() {
  constexpr uint32_t bits = 8 * sizeof(Sample), groups = 15;  // in a row pair, and one outside
  const TileShape shape{4 * groups, bits / 4};
  Random random(3);
  // Each group has a code of its own: in every other row, what it holds is added to the row above.
  std::vector<Sample> pixels(shape.pixels(), 100);
  for (uint32_t y = 1; y < shape.height; y++)
    for (uint32_t x = 0; x < shape.width; x++) {
      const uint32_t code = (y / 2 * groups + x / 4) % (code_count(bits) - 1) + 1, half = 1u << (code_width(code) - 1);
      const uint32_t extreme = code % 2 ? 0u - half : half, inner = random.below(2 * half) + code_minimum(code);
      const uint32_t residual = y % 2 == 0 ? 0 : x % 4 == 0 ? extreme : inner;
      pixels[y * shape.width + x] = Sample(pixels[(y - 1) * shape.width + x] + residual);
    }
  Bytes tile(sizeof(Planes<Sample>));
  const TilePixels source{reinterpret_cast<const uint8_t *>(pixels.data()), shape.width * sizeof(Sample), 1, shape};
  const uint32_t size = generic::encode_tile<Sample>(source, 3, tile.data());
  FastTile parsed;
  CHECK(!parse_fast_tile(tile.data(), size, 1, bits, shape, &parsed));
  const FastChannel &channel = parsed.channels[0];
  CHECK_EQUAL(channel.predictor, uint32_t(kAbove));
  CHECK_EQUAL(channel.index_bits, max_index_bits(bits));
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    const uint64_t word = load<uint64_t>(tile.data() + channel.indices + (2 * pair + 1) * channel.index_bits);
    CHECK_EQUAL(word >> 7 * channel.index_bits & low_bits(channel.index_bits), 0u);
  }
}

}  // namespace

TEST(tightest_codes_of_8_bits) {
  for (int above = 0; above < 128; above++)
    for (int below = 0; below <= 128; below++) check_tightest_code<uint8_t>(above, below);
}

TEST(tightest_codes_of_16_bits) {
  // Around the powers of two, where codes change.
  std::vector<int> edges{0};
  for (int power = 1; power <= 32768; power *= 2)
    for (int edge : {power - 1, power, power + 1}) edges.push_back(edge);
  for (int above : edges)
    for (int below : edges)
      if (above <= 32767 && below <= 32768) check_tightest_code<uint16_t>(above, below);
}

TEST(octets_of_8_bits) { check_octets<uint8_t>(); }
TEST(octets_of_16_bits) { check_octets<uint16_t>(); }
TEST(indices_outside_tiles_of_8_bits) { check_indices_outside<uint8_t>(); }
TEST(indices_outside_tiles_of_16_bits) { check_indices_outside<uint16_t>(); }
TEST(capacity_of_label_maps_of_8_bits) { check_capacity<uint8_t>(); }
TEST(capacity_of_label_maps_of_16_bits) { check_capacity<uint16_t>(); }
TEST(more_values_than_a_label_map_has) { check_too_many_labels(); }
