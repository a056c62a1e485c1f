#include "label_map.h"

#include <algorithm>
#include <bit>

namespace l3 {
namespace {

// The groups of unit `unit` that lie within the tile, as a bit mask.
uint32_t groups_of_unit(TileShape shape, uint32_t unit) {
  uint32_t first = unit % shape.units_per_row_pair() * kUnitGroups;
  return uint32_t(low_bits(std::min(shape.groups() - first, kUnitGroups)));
}

// The pixels of a group that lie within the tile, as a bit mask of its eight values.
uint32_t pixels_of_group(TileShape shape, uint32_t group, uint32_t row_pair) {
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

}  // namespace

template <typename Sample>
const char *decode_label_map(const uint8_t *stream, const FastChannel &channel, TileShape shape, Sample *plane) {
  const uint8_t *position = stream + channel.palette, *const end = stream + channel.end;
  const auto left = [&] { return uint32_t(end - position); };

  if (left() < 1) return "a label map without values";
  const uint32_t labels = *position++ + 1u;
  if (left() < labels * sizeof(Sample)) return "a label map too short for its values";
  Sample values[kMaxLabels];
  std::memcpy(values, position, labels * sizeof(Sample));
  position += labels * sizeof(Sample);
  for (uint32_t i = 1; i < labels; i++)
    if (values[i] <= values[i - 1]) return "label values that do not ascend";
  const uint32_t first = uint32_t(std::lower_bound(values, values + labels, channel.first) - values);
  if (first == labels || values[first] != channel.first) return "a first sample that is not among the label values";

  if (left() < (shape.units() + 7) / 8) return "a label map too short for its unit bitmap";
  uint64_t units;
  if (const char *problem = read_unit_bitmap(position, shape.units(), &units)) return problem;
  position += (shape.units() + 7) / 8;

  const uint32_t present = uint32_t(std::popcount(units));
  if (left() < present) return "a label map too short for its group masks";
  const uint8_t *group_masks = position;
  position += present;
  uint32_t marked_groups = 0;
  for (uint32_t i = 0; i < present; i++) marked_groups += uint32_t(std::popcount(group_masks[i]));
  if (left() < marked_groups) return "a label map too short for its pixel masks";
  const uint8_t *pixel_masks = position;
  position += marked_groups;
  uint32_t marked_pixels = 0;
  for (uint32_t i = 0; i < marked_groups; i++) marked_pixels += uint32_t(std::popcount(pixel_masks[i]));
  const uint32_t bits = rank_bits(labels);
  if (left() != (marked_pixels * bits + 7) / 8) return "a label map that does not fill its body";
  const uint8_t *ranks = position;
  uint32_t rank_position = 0;  // bits

  // The plane holds positions in the table while rows are decoded one from the other; values come last, in one pass.
  uint8_t indices[kPlaneSize];
  const char *problem = for_each_unit(shape, [&](uint32_t unit, uint32_t pair, uint32_t first_group) -> const char * {
    uint8_t *upper = indices + 2 * pair * L3_TILE + 4 * first_group, *lower = upper + L3_TILE;
    if (pair)
      std::memcpy(upper, upper - L3_TILE, 32);
    else
      std::memset(upper, int(first), 32);
    std::memcpy(lower, upper, 32);
    if (!(units >> unit & 1)) return nullptr;
    const uint32_t group_mask = *group_masks++;
    if (group_mask & ~groups_of_unit(shape, unit)) return "a label map that marks a group outside the tile";
    for (uint32_t groups = group_mask; groups; groups &= groups - 1) {
      const uint32_t group = uint32_t(std::countr_zero(groups)), pixel_mask = *pixel_masks++;
      if (pixel_mask & ~pixels_of_group(shape, first_group + group, pair)) return "a label map that marks a pixel outside the tile";
      for (uint32_t k = 0; k < kGroup; k++) {
        uint8_t *pixel = (k < 4 ? upper : lower) + 4 * group + k % 4;
        if (k >= 4) *pixel = pixel[-int(L3_TILE)];
        if (!(pixel_mask >> k & 1)) continue;
        uint32_t rank = 0;
        for (uint32_t bit = 0; bit < bits; bit++, rank_position++) rank |= (ranks[rank_position / 8] >> rank_position % 8 & 1u) << bit;
        const uint32_t index = rank + (rank >= *pixel);
        if (index >= labels) return "a label beyond the table";
        *pixel = uint8_t(index);
      }
    }
    return nullptr;
  });
  if (problem) return problem;
  for (uint32_t y = 0; y < shape.height; y++)
    for (uint32_t x = 0; x < shape.width; x++) plane[y * L3_TILE + x] = values[indices[y * L3_TILE + x]];
  return nullptr;
}

template <typename Sample>
uint32_t encode_label_map(const Sample *plane, uint32_t stride, TileShape shape, uint32_t max_labels, uint8_t *out, uint32_t capacity) {
  Sample values[kMaxLabels];
  uint32_t labels = 0;
  uint8_t indices[kPlaneSize];  // in the order of appearance first, then in that of the values
  for (uint32_t y = 0; y < shape.height; y++) {
    const Sample *row = plane + y * stride;
    uint32_t index = kMaxLabels;
    for (uint32_t x = 0; x < shape.width; x++) {
      if (index == kMaxLabels || values[index] != row[x]) {
        index = uint32_t(std::find(values, values + labels, row[x]) - values);
        if (index == labels) {
          if (labels == max_labels) return 0;
          values[labels++] = row[x];
        }
      }
      indices[y * L3_TILE + x] = uint8_t(index);
    }
  }
  Sample sorted[kMaxLabels];
  std::copy(values, values + labels, sorted);
  std::sort(sorted, sorted + labels);
  uint8_t place[kMaxLabels];
  for (uint32_t i = 0; i < labels; i++) place[i] = uint8_t(std::lower_bound(sorted, sorted + labels, values[i]) - sorted);
  for (uint32_t y = 0; y < shape.height; y++)
    for (uint32_t x = 0; x < shape.width; x++) indices[y * L3_TILE + x] = place[indices[y * L3_TILE + x]];

  uint8_t group_masks[kMaxUnits], pixel_masks[kMaxUnits * kUnitGroups], ranks[kPlaneSize + 1] = {};
  uint32_t marked_units = 0, marked_groups = 0, rank_position = 0;
  uint64_t units = 0;
  const uint32_t bits = rank_bits(labels), first = indices[0];
  for_each_unit(shape, [&](uint32_t unit, uint32_t pair, uint32_t first_group) -> const char * {
    uint32_t group_mask = 0;
    for (uint32_t group = first_group; group < std::min(first_group + kUnitGroups, shape.groups()); group++) {
      const uint32_t inside = pixels_of_group(shape, group, pair);
      uint32_t pixel_mask = 0;
      for (uint32_t k = 0; k < kGroup; k++) {
        if (!(inside >> k & 1)) continue;
        const uint32_t y = 2 * pair + k / 4, at = y * L3_TILE + 4 * group + k % 4;
        const uint32_t index = indices[at], above = y ? indices[at - L3_TILE] : first;
        if (index == above) continue;
        pixel_mask |= 1u << k;
        const uint32_t rank = index - (index > above);
        for (uint32_t bit = 0; bit < bits; bit++, rank_position++)
          ranks[rank_position / 8] = uint8_t(ranks[rank_position / 8] | (rank >> bit & 1) << rank_position % 8);
      }
      if (!pixel_mask) continue;
      group_mask |= 1u << (group - first_group);
      pixel_masks[marked_groups++] = uint8_t(pixel_mask);
    }
    if (group_mask) {
      units |= uint64_t(1) << unit;
      group_masks[marked_units++] = uint8_t(group_mask);
    }
    return nullptr;
  });

  const uint32_t bitmap_size = (shape.units() + 7) / 8, rank_size = (rank_position + 7) / 8;
  const uint32_t size = 1 + labels * uint32_t(sizeof(Sample)) + bitmap_size + marked_units + marked_groups + rank_size;
  if (size > capacity) return 0;
  const auto append = [&out](const void *bytes, size_t count) {
    std::memcpy(out, bytes, count);
    out += count;
  };
  *out++ = uint8_t(labels - 1);
  append(sorted, labels * sizeof(Sample));
  append(&units, bitmap_size);
  append(group_masks, marked_units);
  append(pixel_masks, marked_groups);
  append(ranks, rank_size);
  return size;
}

template const char *decode_label_map(const uint8_t *, const FastChannel &, TileShape, uint8_t *);
template const char *decode_label_map(const uint8_t *, const FastChannel &, TileShape, uint16_t *);
template uint32_t encode_label_map(const uint8_t *, uint32_t, TileShape, uint32_t, uint8_t *, uint32_t);
template uint32_t encode_label_map(const uint16_t *, uint32_t, TileShape, uint32_t, uint8_t *, uint32_t);

}  // namespace l3
