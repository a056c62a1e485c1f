#include "format/label_map.h"

#include <algorithm>

#include "cpu/generic_label_map.h"

namespace l3 {
namespace {

using generic::for_each_unit;
using generic::pixels_of_group;

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
  uint8_t ranks[kMaxRanks];
  return generic::read_label_map<Sample>(bytes, channel, shape, map, ranks);
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
template uint32_t encode_label_map(const uint8_t *, uint32_t, TileShape, uint32_t, uint8_t *, uint32_t);
template uint32_t encode_label_map(const uint16_t *, uint32_t, TileShape, uint32_t, uint8_t *, uint32_t);

}  // namespace l3
