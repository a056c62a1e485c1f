// The marks of label maps, for the back ends that take whole rows of them; needs BMI2.
#pragma once

#include <immintrin.h>

#include "cpu/generic_label_map.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

// The marks of a tile, unit by unit.
class MarkReader {
 public:
  MarkReader(const uint8_t *bytes, const LabelMap &map)
      : units_(map.units), group_masks_(bytes + map.group_masks), pixel_masks_(bytes + map.pixel_masks) {}

  // The next unit's pixel masks, a byte a group. Reads eight bytes from the masks on.
  uint64_t next() {
    const uint64_t present = units_ & 1;
    units_ >>= 1;
    const uint32_t groups = *group_masks_ & uint32_t(-present);
    group_masks_ += present;
    const uint64_t masks = expand_bytes(load<uint64_t>(pixel_masks_), groups);
    pixel_masks_ += popcount(groups);
    return masks;
  }

 private:
  uint64_t units_;
  const uint8_t *group_masks_, *pixel_masks_;
};

// The pixels of a unit's upper row that are marked, a bit each. In the masks the rows of the groups alternate, as in
// octets: four bits of the upper, four of the lower.
inline uint32_t upper_marks(uint64_t masks) { return uint32_t(_pext_u64(masks, 0x0F0F0F0F0F0F0F0F)); }
inline uint32_t lower_marks(uint64_t masks) { return upper_marks(masks >> 4); }

// Decodes a map of at most two labels: a mark turns the one into the other. `Row` is a row of a tile:
//   Row(label, difference)  pixels of one label, which differs from the other by an exclusive or
//   toggle(marks)           turns the pixels that are marked, a bit each
//   write(samples)
template <typename Row, typename Sample>
void decode_two_labels(const uint8_t *bytes, const LabelMap &map, TileShape shape, Sample *plane) {
  const auto value = [&](uint32_t place) { return load<Sample>(bytes + map.values + place * sizeof(Sample)); };
  Row row(value(map.first), Sample(value(0) ^ value(map.labels - 1)));
  MarkReader marks(bytes, map);
  const bool two_units = shape.units_per_row_pair() == 2;
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++, plane += 2 * L3_TILE) {
    const uint64_t left = marks.next(), right = two_units ? marks.next() : 0;
    row.toggle(upper_marks(left) | uint64_t(upper_marks(right)) << 32);
    row.write(plane);
    row.toggle(lower_marks(left) | uint64_t(lower_marks(right)) << 32);
    row.write(plane + L3_TILE);
  }
}

}  // namespace
}  // namespace l3::generic
