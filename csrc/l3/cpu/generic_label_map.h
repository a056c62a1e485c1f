// Label maps in plain C++, compiled once per instruction set (docs/format.md, "Body with predictor 7").
#pragma once

#include <algorithm>
#include <bit>

#include "format/label_map.h"
#include "format/octet.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

// The groups of unit `unit` that lie within the tile, as a bit mask.
inline uint32_t groups_of_unit(TileShape shape, uint32_t unit) {
  uint32_t first = unit % shape.units_per_row_pair() * kUnitGroups;
  return uint32_t(low_bits(std::min(shape.groups() - first, kUnitGroups)));
}

// The pixels of a group that lie within the tile, as a bit mask of its eight values.
inline uint32_t pixels_of_group(TileShape shape, uint32_t group, uint32_t row_pair) {
  uint32_t row = uint32_t(low_bits(std::min(shape.width - 4 * group, 4u)));
  return 2 * row_pair + 1 < shape.height ? row | row << 4 : row;
}

// Calls visit(unit, row pair, first group of the unit) for the tile's units in order, until it returns non-null.
template <typename Visit>
const char *for_each_unit(TileShape shape, Visit visit) {
  const uint32_t per_pair = shape.units_per_row_pair();
  for (uint32_t unit = 0; unit < shape.units(); unit++)
    if (const char *problem = visit(unit, unit / per_pair, unit % per_pair * kUnitGroups)) return problem;
  return nullptr;
}

// Null, or what is wrong with the masks, all of which are there.
inline const char *check_masks(const LabelMap &map, const uint8_t *group_masks, const uint8_t *pixel_masks,
                               TileShape shape) {
  // Where all units are whole, there is nothing outside to mark.
  if (shape.width % (4 * kUnitGroups) == 0 && shape.height % 2 == 0) return nullptr;
  return for_each_unit(shape, [&](uint32_t unit, uint32_t pair, uint32_t first_group) -> const char * {
    if (!(map.units >> unit & 1)) return nullptr;
    const uint32_t group_mask = *group_masks++;
    if (group_mask & ~groups_of_unit(shape, unit)) return "a label map that marks a group outside the tile";
    for (uint32_t groups = group_mask; groups; groups &= groups - 1)
      if (*pixel_masks++ & ~pixels_of_group(shape, first_group + uint32_t(std::countr_zero(groups)), pair))
        return "a label map that marks a pixel outside the tile";
    return nullptr;
  });
}

// How many bits are set.
inline uint32_t count_bits(const uint8_t *bytes, uint32_t size) {
  uint32_t count = 0, i = 0;
  for (; i + 8 <= size; i += 8) count += popcount(load<uint64_t>(bytes + i));
  for (; i < size; i++) count += popcount(bytes[i]);
  return count;
}

// Reads and validates a channel's body but for its ranks. Returns null, or what is wrong.
template <typename Sample>
const char *parse_all_but_ranks(const uint8_t *bytes, const FastChannel &channel, TileShape shape, LabelMap *map) {
  uint32_t position = channel.palette;
  const auto left = [&] { return channel.end - position; };

  if (left() < 1) return "a label map without values";
  const uint32_t labels = map->labels = bytes[position++] + 1u;
  if (left() < labels * sizeof(Sample)) return "a label map too short for its values";
  map->values = position;
  position += labels * uint32_t(sizeof(Sample));
  Sample values[kMaxLabels];
  std::memcpy(values, bytes + map->values, labels * sizeof(Sample));
  for (uint32_t i = 1; i < labels; i++)
    if (values[i] <= values[i - 1]) return "label values that do not ascend";
  map->first = uint32_t(std::lower_bound(values, values + labels, channel.first) - values);
  if (map->first == labels || values[map->first] != channel.first)
    return "a first sample that is not among the label values";

  if (left() < shape.unit_bitmap_size()) return "a label map too short for its unit bitmap";
  if (const char *problem = read_unit_bitmap(bytes + position, shape, &map->units)) return problem;
  position += shape.unit_bitmap_size();

  const uint32_t marked_units = popcount(map->units);
  if (left() < marked_units) return "a label map too short for its group masks";
  map->group_masks = position;
  position += marked_units;
  const uint32_t marked_groups = count_bits(bytes + map->group_masks, marked_units);
  if (left() < marked_groups) return "a label map too short for its pixel masks";
  map->pixel_masks = position;
  position += marked_groups;
  map->pixels = count_bits(bytes + map->pixel_masks, marked_groups);
  if (left() != (map->pixels * rank_bits(labels) + 7) / 8) return "a label map that does not fill its body";
  map->ranks = position;
  return check_masks(*map, bytes + map->group_masks, bytes + map->pixel_masks, shape);
}

constexpr const char *kBeyondTable = "a label beyond the table";

// Unpacks all ranks, a byte each. Returns null, or what is wrong with them.
inline const char *unpack_ranks(const uint8_t *bytes, const FastChannel &channel, const LabelMap &map,
                                uint8_t ranks[kMaxRanks]) {
  const uint32_t bits = rank_bits(map.labels);
  if (bits == 0) {
    std::memset(ranks, 0, map.pixels);
    return map.pixels && map.labels == 1 ? kBeyondTable : nullptr;
  }
  uint32_t position = map.ranks;
  for (uint32_t i = 0; i < map.pixels; i += 8, position += bits) {
    uint64_t octet = 0;
    if (position + 8 <= channel.end)
      octet = load<uint64_t>(bytes + position);
    else
      std::memcpy(&octet, bytes + position, channel.end - position);
    store(ranks + i, spread_octet(octet, bits));
  }
  // The label at hand leaves one place less, whichever it is: a rank stays in the table just if it is one of labels - 1
  // places.
  uint8_t greatest = 0;
  for (uint32_t i = 0; i < map.pixels; i++) greatest = std::max(greatest, ranks[i]);
  return map.pixels && greatest >= map.labels - 1 ? kBeyondTable : nullptr;
}

// Reads and validates a channel's body and unpacks its ranks. Returns null, or what is wrong.
template <typename Sample>
const char *read_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, LabelMap *map,
                           uint8_t ranks[kMaxRanks]) {
  if (const char *problem = parse_all_but_ranks<Sample>(bytes, channel, shape, map)) return problem;
  return unpack_ranks(bytes, channel, *map, ranks);
}

// A byte of ones for each bit that is set.
inline uint64_t bytes_of_bits(uint32_t bits) {
#if defined(__BMI2__)
  return _pdep_u64(bits, 0x0101010101010101) * 255;
#else
  const uint64_t in_place = bits * 0x0101010101010101ull & 0x8040201008040201;  // bit k in byte k
  return ((in_place + 0x7F7F7F7F7F7F7F7F) >> 7 & 0x0101010101010101) * 255;
#endif
}

// Moves the first bytes of `packed` to the bytes that a mask of bits names.
inline uint64_t expand_bytes(uint64_t packed, uint32_t mask) {
#if defined(__BMI2__)
  return _pdep_u64(packed, bytes_of_bits(mask));
#else
  uint64_t expanded = 0;
  for (; mask; mask &= mask - 1, packed >>= 8) expanded |= (packed & 255) << 8 * std::countr_zero(mask);
  return expanded;
#endif
}

// Four pixels: the places of their labels, given those above, and for pixels that are marked (bytes of ones) the ranks
// of theirs, which are less than 255.
inline uint32_t replace_places(uint32_t above, uint32_t ranks, uint32_t marked) {
  constexpr uint32_t top = 0x80808080;
  const uint32_t difference = (ranks | top) - (above & ~top);
  const uint32_t not_below =
      ((ranks & ~above) | (~(ranks ^ above) & difference)) & top;  // ranks >= above, byte by byte
  return ((ranks + (not_below >> 7)) & marked) | (above & ~marked);
}

// Decodes a map of any number of labels, group by group.
template <typename Sample>
void decode_marked_groups(const uint8_t *bytes, const LabelMap &map, TileShape shape, const uint8_t *rank,
                          Sample *plane) {
  const uint8_t *group_masks = bytes + map.group_masks, *pixel_masks = bytes + map.pixel_masks;
  Sample values[kMaxLabels];
  std::memcpy(values, bytes + map.values, map.labels * sizeof(Sample));

  uint8_t places[L3_TILE];  // of the labels of the row at hand, in the table
  Sample first_row[L3_TILE];
  std::memset(places, int(map.first), sizeof places);
  std::fill_n(first_row, L3_TILE, values[map.first]);
  const Sample *above = first_row;
  uint64_t units = map.units;
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    Sample *const upper = plane + 2 * pair * L3_TILE, *const lower = upper + L3_TILE;
    std::memcpy(upper, above, L3_TILE * sizeof(Sample));
    std::memcpy(lower, above, L3_TILE * sizeof(Sample));
    above = lower;
    for (uint32_t first = 0; first < shape.groups(); first += kUnitGroups, units >>= 1) {
      if (!(units & 1)) continue;
      for (uint32_t groups = *group_masks++; groups; groups &= groups - 1) {
        const uint32_t x = 4 * (first + uint32_t(std::countr_zero(groups))), mask = *pixel_masks++;
        const uint64_t group_ranks = expand_bytes(load<uint64_t>(rank), mask), marked = bytes_of_bits(mask);
        rank += popcount(mask);
        const uint32_t of_upper = replace_places(load<uint32_t>(places + x), uint32_t(group_ranks), uint32_t(marked));
        const uint32_t of_lower = replace_places(of_upper, uint32_t(group_ranks >> 32), uint32_t(marked >> 32));
        store(places + x, of_lower);
        for (uint32_t k = 0; k < 4; k++) {
          upper[x + k] = values[of_upper >> 8 * k & 255];
          lower[x + k] = values[of_lower >> 8 * k & 255];
        }
      }
    }
  }
}

// Parses a channel's body and decodes it into `plane` (rows L3_TILE apart). Returns null, or what is wrong.
template <typename Sample>
const char *decode_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane) {
  LabelMap map;
  uint8_t ranks[kMaxRanks];
  if (const char *problem = read_label_map<Sample>(bytes, channel, shape, &map, ranks)) return problem;
  decode_marked_groups(bytes, map, shape, ranks, plane);
  return nullptr;
}

}  // namespace
}  // namespace l3::generic
