// Where the octets of a 16-bit channel's groups start, found by lanes from its index words: four units a lane.
#pragma once

#include "unit_bitmap.h"

namespace l3 {

// In shared memory: of each group, row pair by row pair.
struct GroupRecords {
  alignas(16) uint16_t positions[kMaxUnits * kUnitGroups];  // of the octets, bytes from the start of the tile's
  alignas(16) uint8_t codes[kMaxUnits * kUnitGroups];
};

// The eight codes of the index word at each lane's `position`, a byte each. The palette is of 16 entries, a byte each.
template <WordLanes Team, typename Number = typename Team::Number>
L3_DEVICE void codes_of_word16(const uint8_t *bytes, const Number &position, uint32_t index_bits,
                               const Number (&palette)[4], Number (&codes)[2]) {
  constexpr uint32_t kBytes = 0x01010101;
  Number words[3];
  Team::template load_words<3>(bytes, position & ~3u, words);
  const Number low = Team::funnel_shift(words[0], words[1], position << 3),
               high = Team::funnel_shift(words[1], words[2], position << 3);
  const Number fours[2] = {low, Team::funnel_shift(low, high, 4 * index_bits)};
  const uint32_t field = ((1u << index_bits) - 1) * 0x00010001;
  L3_UNROLL
  for (uint32_t half = 0; half < 2; half++) {
    const Number pairs = Team::permute_bytes(fours[half], fours[half] >> 2 * index_bits, 0x5410);
    const Number indices = (pairs & field) + (pairs >> index_bits & field) * 256;
    const Number selector = Team::permute_bytes(indices | indices >> 4, 0, 0x4420) & 0x7777;
    const Number upper = (indices >> 3 & kBytes) * 255;  // entries from 8 on
    const Number looked_up = (Team::permute_bytes(palette[0], palette[1], selector) & ~upper) |
                             (Team::permute_bytes(palette[2], palette[3], selector) & upper);
    codes[half] = has_palette(index_bits, 16) ? looked_up : indices;
  }
}

// Expands the index words of the channel whose body stands at `body`, and writes the records, where `here` is set.
// Returns which lanes have a group with fields of more than eight bits.
template <WordLanes Team, typename Number = typename Team::Number>
L3_DEVICE Number expand_groups(const uint8_t *bytes, uint32_t body, const ChannelHead &head, TileShape shape, bool here,
                               GroupRecords &records) {
  constexpr uint32_t kBytes = 0x01010101, kHalves = 0x00010001;
  const uint32_t index_bits = head.index_bits(), bitmap = body + palette_size(index_bits, 16),
                 first_word = bitmap + (head.has_bitmap() ? shape.unit_bitmap_size() : 0);
  const UnitBitmap<Team> present(bytes, bitmap, head.has_bitmap(), shape);
  Number palette[4];
  L3_UNROLL
  for (uint32_t k = 0; k < 4; k++)
    palette[k] = lockstep::load_unaligned<Team>(bytes, Number(body + 4 * k)) & kBytes * (code_count(16) - 1);

  const Number first_unit = UnitBitmap<Team>::first_unit(), of_lane = present.of_lane();
  Number word = present.before_lane() * index_bits + first_word, size = 0, wide = 0;
  Number codes[kLaneUnits][2], before[kLaneUnits][2], start[kLaneUnits];
  L3_UNROLL
  for (uint32_t j = 0; j < kLaneUnits; j++) {
    const Number is_present = of_lane >> j & 1;
    // Groups of the row from this unit on, at most eight of which are the unit's.
    const Number groups = shape.groups() - ((first_unit + j) & (shape.units_per_row_pair() - 1)) * kUnitGroups;
    const Number inside[2] = {ones<Team>(groups * 8), ones<Team>(Team::select(groups < 4, 0, groups - 4) * 8)};
    codes_of_word16<Team>(bytes, word, index_bits, palette, codes[j]);
    start[j] = size;
    Number in_unit = 0;
    L3_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
      codes[j][half] = codes[j][half] & inside[half] & (0u - is_present);
      const Number widths = (codes[j][half] + kBytes) >> 1 & kBytes * 31;  // code_width() of each
      before[j][half] = widths * 0x01010100 + in_unit * kBytes;
      in_unit = Team::dot_bytes(widths, kBytes, in_unit);
      wide = wide | ((widths + kBytes * 7) & kBytes * 16);
    }
    size = size + in_unit;
    word = word + is_present * index_bits;
  }
  const Number octets = present.count() * index_bits + first_word + Team::prefix_sum(size) - size;
  L3_UNROLL
  for (uint32_t j = 0; j < kLaneUnits; j++) {
    const Number place = record_place<Team>(shape, first_unit + j);
    const Number twice = ((octets + start[j]) & 0xFFFF) * kHalves;
    const Number positions[4] = {
        Team::permute_bytes(before[j][0], 0, 0x4140) + twice, Team::permute_bytes(before[j][0], 0, 0x4342) + twice,
        Team::permute_bytes(before[j][1], 0, 0x4140) + twice, Team::permute_bytes(before[j][1], 0, 0x4342) + twice};
    Team::template store_words<4>(reinterpret_cast<uint8_t *>(records.positions), place * 16, positions, here);
    Team::template store_words<2>(records.codes, place * 8, codes[j], here);
  }
  return wide & Team::select(here, ~0u, 0);
}

}  // namespace l3
