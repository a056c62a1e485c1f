// Encoding label maps in plain C++ (docs/format.md, "Body with predictor 7").
#pragma once

#include <algorithm>
#include <bit>

#include "cpu/generic_label_map.h"
#include "cpu/quartered_plane.h"
#include "format/label_map.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

// Which pixels of a channel differ from the one above.
struct Marks {
  alignas(64) uint8_t of_groups[L3_TILE / 2][kQuarter];  // the pixel mask of each group
  uint64_t units = 0;                                    // those with any
  uint32_t groups = 0, pixels = 0;

  template <typename Sample>
  Marks(const QuarteredPlane<Sample> &plane, TileShape shape) {
    alignas(64) Sample first[L3_TILE];
    std::fill_n(first, L3_TILE, plane.row(0)[0]);
    uint8_t inside[kQuarter];  // the pixels of a whole row pair that lie within the tile
    for (uint32_t g = 0; g < kQuarter; g++) inside[g] = g < shape.groups() ? uint8_t(pixels_of_group(shape, g, 0)) : 0;
    uint8_t marked[kQuarter] = {};
    const Sample *above = first;
    for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
      const bool has_lower = 2 * pair + 1 < shape.height;
      const Sample *upper = plane.row(2 * pair), *lower = has_lower ? plane.row(2 * pair + 1) : upper;
      uint8_t *const masks = of_groups[pair];
      for (uint32_t g = 0; g < kQuarter; g++) {
        uint8_t mask = 0;
        for (uint32_t k = 0; k < 4; k++) {
          const uint32_t i = k * kQuarter + g;
          mask = uint8_t(mask | (upper[i] != above[i] ? 1 << k : 0) | (lower[i] != upper[i] ? 16 << k : 0));
        }
        masks[g] = mask & inside[g];
        marked[g] = uint8_t(marked[g] + (masks[g] != 0));
      }
      above = lower;
    }
    for (const uint8_t count : marked) groups += count;
    for (uint32_t unit = 0; unit < shape.units(); unit++) {
      const uint64_t masks = of_unit(shape, unit);
      units |= uint64_t(masks != 0) << unit;
      pixels += popcount(masks);
    }
  }

  // The pixel masks of a unit, a byte each.
  uint64_t of_unit(TileShape shape, uint32_t unit) const {
    return load<uint64_t>(of_groups[unit / shape.units_per_row_pair()] +
                          unit % shape.units_per_row_pair() * kUnitGroups);
  }

  // A bit for each byte that is not 0.
  static uint32_t bits_of_bytes(uint64_t bytes) {
    constexpr uint64_t low = 0x7F7F7F7F7F7F7F7F;
    const uint64_t top_bits = (((bytes & low) + low) | bytes) & ~low;
    return uint32_t((top_bits >> 7) * 0x0102040810204080 >> 56);
  }
};

// Calls visit(sample, the one above) for each marked pixel of a group.
template <typename Sample, typename Visit>
inline void for_each_mark(const QuarteredPlane<Sample> &plane, const Marks &marks, uint32_t pair, uint32_t group,
                          Visit visit) {
  const Sample *upper = plane.row(2 * pair) + group, *lower = upper + plane.kStride,
               *above = pair ? upper - plane.kStride : nullptr;
  for (uint32_t mask = marks.of_groups[pair][group]; mask; mask &= mask - 1) {
    const uint32_t k = uint32_t(std::countr_zero(mask)), i = k % 4 * kQuarter;
    if (k >= 4)
      visit(lower[i], upper[i]);
    else
      visit(upper[i], above ? above[i] : plane.row(0)[0]);
  }
}

// The values of a channel, and their places in ascending order.
template <typename Sample>
class Labels {
 public:
  // Returns whether there are no more than `most`.
  bool find(const QuarteredPlane<Sample> &plane, TileShape shape, const Marks &marks, uint32_t most) {
    std::fill_n(values_, kWords, 0);
    // A value that no mark has is that of the first pixel.
    add(plane.row(0)[0]);
    for (uint32_t pair = 0; pair < shape.row_pairs(); pair++)
      for (uint32_t group = 0; group < kQuarter; group++) {
        for_each_mark(plane, marks, pair, group, [&](Sample sample, Sample) { add(sample); });
        if (count_ > most) return false;
      }
    uint32_t before = 0;
    for (uint32_t word = 0; word < kWords; word++) {
      before_[word] = uint8_t(before);
      before += popcount(values_[word]);
    }
    return true;
  }

  uint32_t count() const { return count_; }

  uint32_t place_of(Sample value) const {
    return before_[value / 64] + popcount(values_[value / 64] & low_bits(value % 64));
  }

  // Writes all values; returns the position after them.
  uint8_t *write(uint8_t *out) const {
    for (uint32_t word = 0; word < kWords; word++)
      for (uint64_t rest = values_[word]; rest; rest &= rest - 1, out += sizeof(Sample))
        store(out, Sample(64 * word + uint32_t(std::countr_zero(rest))));
    return out;
  }

 private:
  static constexpr uint32_t kWords = (1u << 8 * sizeof(Sample)) / 64;

  void add(Sample value) {
    uint64_t &word = values_[value / 64];
    const uint64_t bit = uint64_t(1) << value % 64;
    count_ += !(word & bit);
    word |= bit;
  }

  uint64_t values_[kWords];  // a bit for each value
  uint8_t before_[kWords];   // the values in earlier words
  uint32_t count_ = 0;
};

// Writes fields of bits, up to seven bytes past the last.
class BitWriter {
 public:
  explicit BitWriter(uint8_t *out) : out_(out) {}

  void write(uint32_t field, uint32_t bits) {
    pending_ |= uint64_t(field) << count_;
    count_ += bits;
    store(out_, pending_);
    out_ += count_ / 8;
    pending_ >>= count_ / 8 * 8;
    count_ %= 8;
  }

 private:
  uint8_t *out_;
  uint64_t pending_ = 0;
  uint32_t count_ = 0;
};

// Writes the body of a channel to `out`, and up to seven bytes past it. Returns its size, or 0 if it would exceed
// `capacity` bytes or there are more values than a label map can have.
template <typename Sample>
uint32_t encode_label_map(const QuarteredPlane<Sample> &plane, TileShape shape, uint8_t *const out, uint32_t capacity) {
  const Marks marks(plane, shape);
  const uint32_t units = popcount(marks.units), masks_size = shape.unit_bitmap_size() + units + marks.groups;
  const auto size_with = [&](uint32_t labels) {
    return 1 + labels * uint32_t(sizeof(Sample)) + masks_size + (marks.pixels * rank_bits(labels) + 7) / 8;
  };
  uint32_t most = 0;
  for (uint32_t step = kMaxLabels; step; step /= 2)
    if (most + step <= kMaxLabels && size_with(most + step) <= capacity) most += step;
  Labels<Sample> labels;
  if (!most || !labels.find(plane, shape, marks, most)) return 0;

  uint8_t *position = out;
  *position++ = uint8_t(labels.count() - 1);
  position = labels.write(position);
  std::memcpy(position, &marks.units, shape.unit_bitmap_size());
  position += shape.unit_bitmap_size();
  uint8_t *pixel_masks = position + units;
  for (uint64_t rest = marks.units; rest; rest &= rest - 1) {
    const uint64_t masks = marks.of_unit(shape, uint32_t(std::countr_zero(rest)));
    *position++ = uint8_t(Marks::bits_of_bytes(masks));
    for (uint32_t g = 0; g < kUnitGroups; g++) {
      *pixel_masks = uint8_t(masks >> 8 * g);
      pixel_masks += *pixel_masks != 0;
    }
  }
  const uint32_t bits = rank_bits(labels.count());
  BitWriter ranks(pixel_masks);
  for (uint32_t pair = 0; bits && pair < shape.row_pairs(); pair++)
    for (uint32_t group = 0; group < kQuarter; group++)
      for_each_mark(plane, marks, pair, group, [&](Sample sample, Sample above) {
        ranks.write(labels.place_of(sample) - (sample > above), bits);
      });
  return size_with(labels.count());
}

}  // namespace
}  // namespace l3::generic
