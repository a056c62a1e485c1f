#include "format/label_map.h"

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

// The rank of `bits` bits at a position, in bits, of the string of ranks.
uint32_t read_rank(const uint8_t *ranks, uint32_t position, uint32_t bits) {
  uint32_t rank = 0;
  for (uint32_t bit = 0; bit < bits; bit++, position++) rank |= (ranks[position / 8] >> position % 8 & 1u) << bit;
  return rank;
}

// Null, or what is wrong with the masks, all of which are there.
const char *check_masks(const LabelMap &map, const uint8_t *group_masks, const uint8_t *pixel_masks, TileShape shape) {
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

// The values of a channel in ascending order, and the place among them of each sample.
template <typename Sample>
struct Labels {
  uint32_t count = 0;
  Sample values[kMaxLabels];
  uint8_t places[kPlaneSize];  // rows are L3_TILE apart

  // Returns whether there are no more than `most` values.
  bool find(const Sample *plane, uint32_t stride, TileShape shape, uint32_t most) {
    for (uint32_t y = 0; y < shape.height; y++) {
      const Sample *row = plane + y * stride;
      uint32_t place = kMaxLabels;
      for (uint32_t x = 0; x < shape.width; x++) {
        if (place == kMaxLabels || values[place] != row[x]) {
          place = uint32_t(std::find(values, values + count, row[x]) - values);
          if (place == count) {
            if (count == most) return false;
            values[count++] = row[x];
          }
        }
        places[y * L3_TILE + x] = uint8_t(place);
      }
    }
    sort(shape);
    return true;
  }

 private:
  // From the order of appearance to that of the values.
  void sort(TileShape shape) {
    Sample sorted[kMaxLabels];
    std::copy(values, values + count, sorted);
    std::sort(sorted, sorted + count);
    uint8_t place[kMaxLabels];
    for (uint32_t i = 0; i < count; i++)
      place[i] = uint8_t(std::lower_bound(sorted, sorted + count, values[i]) - sorted);
    std::copy(sorted, sorted + count, values);
    for (uint32_t y = 0; y < shape.height; y++)
      for (uint32_t x = 0; x < shape.width; x++) places[y * L3_TILE + x] = place[places[y * L3_TILE + x]];
  }
};

// Where a channel differs from the row above, and by which of `labels` values it does.
struct Marks {
  uint64_t units = 0;
  uint32_t unit_count = 0, group_count = 0;  // of those that are marked
  uint32_t rank_position = 0;                // bits of ranks
  uint8_t group_masks[kMaxUnits], pixel_masks[kMaxUnits * kUnitGroups], ranks[kPlaneSize + 1] = {};

  Marks(const uint8_t *places, uint32_t labels, TileShape shape) {
    const uint32_t bits = rank_bits(labels);
    for_each_unit(shape, [&](uint32_t unit, uint32_t pair, uint32_t first_group) -> const char * {
      uint32_t group_mask = 0;
      for (uint32_t group = first_group; group < std::min(first_group + kUnitGroups, shape.groups()); group++) {
        const uint32_t pixel_mask = mark_group(places, shape, group, pair, bits);
        if (!pixel_mask) continue;
        group_mask |= 1u << (group - first_group);
        pixel_masks[group_count++] = uint8_t(pixel_mask);
      }
      if (group_mask) {
        units |= uint64_t(1) << unit;
        group_masks[unit_count++] = uint8_t(group_mask);
      }
      return nullptr;
    });
  }

 private:
  // Appends the ranks of a group's pixels that differ from those above, and returns which do.
  uint32_t mark_group(const uint8_t *places, TileShape shape, uint32_t group, uint32_t pair, uint32_t bits) {
    const uint32_t inside = pixels_of_group(shape, group, pair);
    uint32_t pixel_mask = 0;
    for (uint32_t k = 0; k < kGroup; k++) {
      if (!(inside >> k & 1)) continue;
      const uint32_t y = 2 * pair + k / 4, at = y * L3_TILE + 4 * group + k % 4;
      const uint32_t place = places[at], above = y ? places[at - L3_TILE] : places[0];
      if (place == above) continue;
      pixel_mask |= 1u << k;
      const uint32_t rank = place - (place > above);
      for (uint32_t bit = 0; bit < bits; bit++, rank_position++)
        ranks[rank_position / 8] = uint8_t(ranks[rank_position / 8] | (rank >> bit & 1) << rank_position % 8);
    }
    return pixel_mask;
  }
};

}  // namespace

template <typename Sample>
const char *parse_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, LabelMap *map) {
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
  uint32_t marked_groups = 0;
  for (uint32_t i = 0; i < marked_units; i++) marked_groups += popcount(bytes[map->group_masks + i]);
  if (left() < marked_groups) return "a label map too short for its pixel masks";
  map->pixel_masks = position;
  position += marked_groups;
  uint32_t marked_pixels = 0;
  for (uint32_t i = 0; i < marked_groups; i++) marked_pixels += popcount(bytes[map->pixel_masks + i]);
  const uint32_t bits = rank_bits(labels);
  if (left() != (marked_pixels * bits + 7) / 8) return "a label map that does not fill its body";
  map->ranks = position;

  if (const char *problem = check_masks(*map, bytes + map->group_masks, bytes + map->pixel_masks, shape))
    return problem;
  // The label at hand leaves one place less, whichever it is: a rank stays in the table just if it is one of labels - 1
  // places.
  for (uint32_t i = 0; i < marked_pixels; i++)
    if (read_rank(bytes + map->ranks, i * bits, bits) >= labels - 1) return "a label beyond the table";
  return nullptr;
}

template <typename Sample>
const char *decode_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane) {
  LabelMap map;
  if (const char *problem = parse_label_map<Sample>(bytes, channel, shape, &map)) return problem;
  const uint8_t *group_masks = bytes + map.group_masks, *pixel_masks = bytes + map.pixel_masks;
  const uint32_t bits = rank_bits(map.labels);
  uint32_t rank_position = 0;  // bits

  // The plane holds places in the table while rows are decoded one from the other; values come last, in one pass.
  uint8_t places[kPlaneSize];
  for_each_unit(shape, [&](uint32_t unit, uint32_t pair, uint32_t first_group) -> const char * {
    uint8_t *upper = places + 2 * pair * L3_TILE + 4 * first_group, *lower = upper + L3_TILE;
    if (pair)
      std::memcpy(upper, upper - L3_TILE, 32);
    else
      std::memset(upper, int(map.first), 32);
    std::memcpy(lower, upper, 32);
    if (!(map.units >> unit & 1)) return nullptr;
    for (uint32_t groups = *group_masks++; groups; groups &= groups - 1) {
      const uint32_t group = uint32_t(std::countr_zero(groups)), pixel_mask = *pixel_masks++;
      for (uint32_t k = 0; k < kGroup; k++) {
        uint8_t *pixel = (k < 4 ? upper : lower) + 4 * group + k % 4;
        if (k >= 4) *pixel = pixel[-int(L3_TILE)];
        if (!(pixel_mask >> k & 1)) continue;
        const uint32_t rank = read_rank(bytes + map.ranks, rank_position, bits);
        rank_position += bits;
        *pixel = uint8_t(rank + (rank >= *pixel));
      }
    }
    return nullptr;
  });
  Sample values[kMaxLabels];
  std::memcpy(values, bytes + map.values, map.labels * sizeof(Sample));
  for (uint32_t y = 0; y < shape.height; y++)
    for (uint32_t x = 0; x < shape.width; x++) plane[y * L3_TILE + x] = values[places[y * L3_TILE + x]];
  return nullptr;
}

template <typename Sample>
uint32_t encode_label_map(const Sample *plane, uint32_t stride, TileShape shape, uint32_t max_labels, uint8_t *out,
                          uint32_t capacity) {
  Labels<Sample> labels;
  if (!labels.find(plane, stride, shape, max_labels)) return 0;
  const Marks marks(labels.places, labels.count, shape);

  const uint32_t values_size = labels.count * uint32_t(sizeof(Sample)), bitmap_size = shape.unit_bitmap_size();
  const uint32_t ranks_size = (marks.rank_position + 7) / 8;
  const uint32_t size = 1 + values_size + bitmap_size + marks.unit_count + marks.group_count + ranks_size;
  if (size > capacity) return 0;
  const auto append = [&out](const void *bytes, size_t count) {
    std::memcpy(out, bytes, count);
    out += count;
  };
  *out++ = uint8_t(labels.count - 1);
  append(labels.values, values_size);
  append(&marks.units, bitmap_size);
  append(marks.group_masks, marks.unit_count);
  append(marks.pixel_masks, marks.group_count);
  append(marks.ranks, ranks_size);
  return size;
}

template const char *parse_label_map<uint8_t>(const uint8_t *, const FastChannel &, TileShape, LabelMap *);
template const char *parse_label_map<uint16_t>(const uint8_t *, const FastChannel &, TileShape, LabelMap *);
template const char *decode_label_map(const uint8_t *, const FastChannel &, TileShape, uint8_t *);
template const char *decode_label_map(const uint8_t *, const FastChannel &, TileShape, uint16_t *);
template uint32_t encode_label_map(const uint8_t *, uint32_t, TileShape, uint32_t, uint8_t *, uint32_t);
template uint32_t encode_label_map(const uint16_t *, uint32_t, TileShape, uint32_t, uint8_t *, uint32_t);

}  // namespace l3
