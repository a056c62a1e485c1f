// Decoding a label map with a team of 16 lanes, a group of 4 x 2 samples each: the meaning that all back ends are
// tested against. docs/format.md, "Body with predictor 7", in statements.
//
// Masks and ranks are found by prefix sums of the marks before them, so a row pair has no step that is serial across
// groups. Nothing is checked here: parse_label_map accepts only what decodes. A body that it would refuse gives other
// samples, and no read beyond kMaxOverread: whatever the bytes are, a body has at most 256 labels, 8 marks a unit and 8
// a group, and ranks of 8 bits.
#pragma once

#include "format/label_map.h"
#include "lockstep/lockstep_bits.h"

namespace l3::lockstep {

template <Lanes Team, typename Sample>
class LabelMapDecoder {
  using Number = typename Team::Number;
  static_assert(Team::kCount * 4 == L3_TILE);

 public:
  L3_DEVICE LabelMapDecoder(const uint8_t *bytes, const FastChannel &channel, TileShape shape)
      : bytes_(bytes), shape_(shape) {
    locate(channel);
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
      places_[k] = map_.first;
      samples_[k] = channel.first;
    }
  }

  L3_DEVICE void decode(Sample *plane) {
    uint32_t groups_done = 0, pixels_done = 0;
    for (uint32_t pair = 0; pair < shape_.row_pairs(); pair++) {
      const uint32_t units_per_pair = shape_.units_per_row_pair(), first_unit = pair * units_per_pair;
      const uint32_t left_present = uint32_t(map_.units >> first_unit & 1);
      const uint32_t right_present = units_per_pair == 2 ? uint32_t(map_.units >> (first_unit + 1) & 1) : 0;
      Number marked_pixels = 0, rank = 0;  // the group's pixel mask; position of its first rank, bits
      if (left_present | right_present) {
        const Number lane = Team::index(), right_unit = Number(7) < lane;
        const Number unit_mask =
            load_byte(right_unit * left_present + (map_.group_masks + popcount(map_.units & low_bits(first_unit))));
        const Number marked = (unit_mask >> (lane & 7)) & Team::select(right_unit, right_present, left_present);
        const Number groups = Team::prefix_sum(marked);
        marked_pixels = Team::select(marked, load_byte(groups - marked + (map_.pixel_masks + groups_done)), 0);
        const Number count = Team::count_bits(marked_pixels), pixels = Team::prefix_sum(count);
        rank = (pixels - count + pixels_done) * rank_bits_;
        groups_done += Team::broadcast(groups, Team::kCount - 1);
        pixels_done += Team::broadcast(pixels, Team::kCount - 1);
      }
      L3_UNROLL
      for (uint32_t i = 0; i < 2; i++) {
        if (left_present | right_present) {
          L3_UNROLL
          for (uint32_t k = 0; k < 4; k++)
            rank = rank + replace(k, marked_pixels >> (4 * i + k) & 1, rank) * rank_bits_;
        }
        L3_UNROLL
        for (uint32_t k = 0; k < 4; k++)
          Team::store(plane, Team::index() * 4 + ((2 * pair + i) * L3_TILE + k), samples_[k]);
      }
    }
  }

 private:
  // Finds the parts of the body.
  L3_DEVICE void locate(const FastChannel &channel) {
    uint32_t position = channel.palette;
    map_.labels = bytes_[position++] + 1u;
    map_.values = position;
    position += map_.labels * uint32_t(sizeof(Sample));
    map_.units = load<uint64_t>(bytes_ + position) & low_bits(shape_.units());
    position += shape_.unit_bitmap_size();
    map_.group_masks = position;
    const uint32_t units = popcount(map_.units);
    position += units;
    map_.pixel_masks = position;
    const Number lane = Team::index();
    Number marked_groups = 0, smaller = 0;
    for (uint32_t unit = 0; unit < units; unit += Team::kCount)
      marked_groups = marked_groups + Team::select(lane + unit < units,
                                                   Team::count_bits(load_byte(lane + (map_.group_masks + unit))), 0);
    map_.ranks = position + sum(marked_groups);
    // The first sample's place in the table is the number of smaller ones.
    for (uint32_t place = 0; place < map_.labels; place += Team::kCount)
      smaller = smaller + ((lane + place < map_.labels) & (value_at(lane + place) < channel.first));
    map_.first = sum(smaller);
    rank_bits_ = rank_bits(map_.labels);
  }

  // Where `marked` is set, gives sample k of the row at hand the label whose rank stands at bit `rank`. Returns
  // `marked`.
  L3_DEVICE Number replace(uint32_t k, const Number &marked, const Number &rank) {
    const Number bits = read_bits<Team>(bytes_, map_.ranks, rank, rank_bits_);
    const Number place = bits + 1 - (bits < places_[k]);
    places_[k] = Team::select(marked, place, places_[k]);
    samples_[k] = Team::select(marked, value_at(place), samples_[k]);
    return marked;
  }

  L3_DEVICE Number load_byte(const Number &position) const { return Team::load_16(bytes_, position) & 255; }

  L3_DEVICE Number value_at(const Number &place) const {
    if constexpr (sizeof(Sample) == 1)
      return load_byte(place + map_.values);
    else
      return Team::load_16(bytes_, place * 2 + map_.values);
  }

  static L3_DEVICE uint32_t sum(const Number &a) { return Team::broadcast(Team::prefix_sum(a), Team::kCount - 1); }

  const uint8_t *const bytes_;
  const TileShape shape_;
  LabelMap map_;
  uint32_t rank_bits_;
  Number places_[4],
      samples_[4];  // of the row above, later of the row at hand: places in the table, and the values there
};

template <Lanes Team, typename Sample>
L3_DEVICE void decode_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane) {
  LabelMapDecoder<Team, Sample>(bytes, channel, shape).decode(plane);
}

}  // namespace l3::lockstep
