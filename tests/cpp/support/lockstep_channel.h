// Decoding a channel of a `fast` tile with a team of 16 lanes, a group of 4 x 2 samples each: the meaning that all back
// ends are tested against. docs/format.md, "Body with predictors 0 … 4", in statements.
#pragma once

#include "format/fast_tile.h"
#include "lockstep/lockstep_bits.h"

namespace l3::lockstep {

template <Lanes Team, typename Sample>
class ChannelDecoder {
  using Number = typename Team::Number;
  static constexpr uint32_t kBits = 8 * sizeof(Sample);
  static_assert(Team::kCount * 4 == L3_TILE);

 public:
  L3_DEVICE ChannelDecoder(const uint8_t *bytes, const FastChannel &channel, TileShape shape)
      : bytes_(bytes), channel_(channel), shape_(shape) {
    for (Number &sample : above_) sample = channel.first;
  }

  // Decodes the channel into `plane`; returns the position after the last octet.
  L3_DEVICE uint32_t decode(Sample *plane) {
    uint32_t payload = channel_.payload;
    for (uint32_t pair = 0; pair < shape_.row_pairs(); pair++) {
      Number residuals[kGroup];
      payload += unpack_groups(pair, payload, residuals);
      for (uint32_t i = 0; i < 2; i++) {
        reconstruct_row(residuals + 4 * i, pair == 0 && i == 0);
        for (uint32_t k = 0; k < 4; k++)
          Team::store(plane, Team::index() * 4 + (2 * pair + i) * L3_TILE + k, above_[k]);
      }
    }
    return payload;
  }

 private:
  L3_DEVICE Number read_bits(const Number &byte, const Number &bit, const Number &width) const {
    return lockstep::read_bits<Team>(bytes_, byte, bit, width);
  }

  // The codes of a row pair's groups; 0 for groups that are absent or outside the tile.
  L3_DEVICE Number codes_of(uint32_t pair) const {
    const Number lane = Team::index(), right_unit = Number(7) < lane;
    const uint32_t units_per_pair = shape_.units_per_row_pair(), first_unit = pair * units_per_pair;
    const uint32_t present[2] = {uint32_t(channel_.units >> first_unit & 1),
                                 units_per_pair == 2 ? uint32_t(channel_.units >> (first_unit + 1) & 1) : 0};
    const uint32_t words_before = popcount(channel_.units & low_bits(first_unit));
    const Number word = right_unit * present[0] + words_before;  // in the channel
    const Number index =
        read_bits(word * channel_.index_bits + channel_.indices, (lane & 7) * channel_.index_bits, channel_.index_bits);
    constexpr uint32_t kEntryBits = palette_entry_bits(kBits);
    Number code = index;
    if (has_palette(channel_.index_bits, kBits)) code = read_bits(channel_.palette, index * kEntryBits, kEntryBits);
    const Number counts = Team::select(right_unit, present[1], present[0]) & (lane < shape_.groups());
    return Team::select(counts, code, 0);
  }

  // Unpacks the octets of a row pair; returns their bytes.
  L3_DEVICE uint32_t unpack_groups(uint32_t pair, uint32_t payload, Number residuals[kGroup]) const {
    const Number code = codes_of(pair), width = Team::apply(code_width, code),
                 minimum = Team::apply(code_minimum, code);
    const Number octet_end = Team::prefix_sum(width), octet = octet_end - width + payload;
    for (uint32_t k = 0; k < kGroup; k++)
      residuals[k] = read_octet_value<Team, Sample>(bytes_, octet, width, k) + minimum;
    return Team::broadcast(octet_end, Team::kCount - 1);
  }

  L3_DEVICE Number average(const Number &a, const Number &b) const { return (a + b + 1) >> 1; }

  // Turns four residuals a lane into samples, from the row above in above_, where the new row takes its place.
  L3_DEVICE void reconstruct_row(Number row[4], bool first_row) {
    if (first_row || sums_along_row(channel_.predictor)) {
      for (uint32_t k = 1; k < 4; k++) row[k] = row[k] + row[k - 1];
      const Number before = Team::prefix_sum(row[3]) - row[3];
      for (uint32_t k = 0; k < 4; k++) row[k] = row[k] + before;
    }
    Number base[4];
    for (uint32_t k = 0; k < 4; k++) base[k] = above_[k];
    if (!first_row && channel_.predictor == kLeft) {
      for (Number &sample : base) sample = Team::broadcast(above_[0], 0);
    } else if (!first_row && (channel_.predictor == kSmoothAbove || channel_.predictor == kSmoothPlane)) {
      const Number lane = Team::index();
      const Number before = Team::select(lane == 0, above_[0], Team::from_left(above_[3])),
                   after = Team::from_right(above_[0]);
      for (uint32_t k = 0; k < 4; k++) {
        const Number north_west = k ? above_[k - 1] : before, north_east = k < 3 ? above_[k + 1] : after;
        const Number at_edge = lane * 4 + k == shape_.width - 1;
        base[k] = average(average(north_west, Team::select(at_edge, above_[k], north_east)), above_[k]);
      }
    }
    for (uint32_t k = 0; k < 4; k++) above_[k] = (row[k] + base[k]) & ((1u << kBits) - 1);
  }

  const uint8_t *const bytes_;
  const FastChannel &channel_;
  const TileShape shape_;
  Number above_[4];  // the row above, later the row at hand
};

// As SampleKernels::decode_channel.
template <Lanes Team, typename Sample>
L3_DEVICE uint32_t decode_channel(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane) {
  return ChannelDecoder<Team, Sample>(bytes, channel, shape).decode(plane);
}

}  // namespace l3::lockstep
