// Planes of samples as the encoder holds them: in an order that lets plain loops over vectors work on all groups of a
// row pair at once, whatever the instruction set.
#pragma once

#include <algorithm>

#include "cpu/kernels.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

// The groups of a row pair. A row stands in four quarters: quarter k holds column 4g + k of every group g.
constexpr uint32_t kQuarter = L3_TILE / 4;
constexpr uint32_t place_of_column(uint32_t x) { return x % 4 * kQuarter + x / 4; }
constexpr uint32_t column_at(uint32_t place) { return place % kQuarter * 4 + place / kQuarter; }

// A channel of a tile. Around each row stand copies of quarters, moved by a group, so that the neighbours of all
// samples are a fixed distance away. Beyond the tile's edges, columns repeat; rows do not.
template <typename Sample>
struct QuarteredPlane {
  static constexpr uint32_t kStride = 7 * kQuarter;
  alignas(64) Sample samples[L3_TILE * kStride];

  Sample *row(uint32_t y) { return samples + y * kStride + 2 * kQuarter; }
  const Sample *row(uint32_t y) const { return samples + y * kStride + 2 * kQuarter; }

  // Fills what surrounds row `y`.
  void surround(uint32_t y) {
    Sample *const quarters = row(y);
    constexpr size_t size = kQuarter * sizeof(Sample);
    std::memcpy(quarters - kQuarter, quarters + 3 * kQuarter - 1, size);
    std::memcpy(quarters - 2 * kQuarter, quarters + 2 * kQuarter - 1, size);
    std::memcpy(quarters + 4 * kQuarter, quarters + 1, size);
    quarters[-int(kQuarter)] = quarters[-2 * int(kQuarter)] = quarters[0];
    quarters[5 * kQuarter - 1] = quarters[4 * kQuarter - 1];
  }
};

// The sample so many columns to the right of the one that `sample` points at.
template <int columns, typename Sample>
[[gnu::always_inline]] inline Sample neighbour(const Sample *sample) {
  static_assert(columns >= -2 && columns <= 1);
  return sample[columns * int(kQuarter)];
}

// Loads the rows of tiles: interleaved pixels to rows of planes. The pixels are L3_TILE.
struct RowLoader {
  template <uint32_t channels, typename Sample>
  static void load(const uint8_t *pixels, Sample *const (&rows)[channels]) {
    for (uint32_t c = 0; c < channels; c++)
      for (uint32_t place = 0; place < L3_TILE; place++)
        rows[c][place] = l3::load<Sample>(pixels + (channels * column_at(place) + c) * sizeof(Sample));
  }
};

// The same for rows of `width` pixels.
template <uint32_t channels, typename Sample>
void load_narrow_row(const uint8_t *pixels, uint32_t width, Sample *const (&rows)[channels]) {
  for (uint32_t x = 0; x < L3_TILE; x++)
    for (uint32_t c = 0; c < channels; c++)
      rows[c][place_of_column(x)] = l3::load<Sample>(pixels + (channels * std::min(x, width - 1) + c) * sizeof(Sample));
}

}  // namespace
}  // namespace l3::generic
