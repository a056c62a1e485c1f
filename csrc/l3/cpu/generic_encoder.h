// The encoder of `fast` tiles: which transform, predictors and palettes make a tile smallest, and writing it. Plain
// loops over rows of 64 samples, compiled once per instruction set; every back end writes the same bytes.
#pragma once

#include "cpu/code_sets.h"
#include "cpu/dispatch.h"
#include "cpu/generic_label_map_encoder.h"
#include "cpu/generic_residuals.h"
#include "cpu/octet_writer.h"
#include "cpu/quartered_plane.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

// The tightest codes of all groups of a channel, and the units that have any but code 0.
struct ChannelCodes {
  alignas(64) GroupBytes codes;
  uint64_t busy_units;
};

// Brings bytes into the cache before they are needed.
inline void prefetch(const uint8_t *bytes, uint32_t size) {
  for (uint32_t i = 0; i < size; i += kCacheLine) __builtin_prefetch(bytes + i);
}

// How a channel is to be written.
struct ChannelPlan {
  uint32_t predictor;
  uint32_t index_bits;
  bool has_bitmap;
  uint32_t codes;  // the palette, as a set
  uint32_t size;   // of the body
};

template <typename Sample, typename Loader>
class FastTileEncoder {
 public:
  FastTileEncoder(const TilePixels &pixels, uint32_t effort)
      : channels_(pixels.channels), effort_(effort), shape_(pixels.shape), masks_(pixels.shape.width) {
    const auto [data, stride, channels, shape] = pixels;
    const uint8_t *row = data;
    const uint32_t row_size = shape.width * channels * uint32_t(sizeof(Sample));
    for (uint32_t y = 0; y < shape.height; y++, row += stride) {
      // Rows are far apart: processors do not guess where those of the next tile begin.
      prefetch(row + row_size, row_size);
      switch (channels) {
        case 1: load_row<1>(row, y); break;
        case 2: load_row<2>(row, y); break;
        case 3: load_row<3>(row, y); break;
        default: load_row<4>(row, y);
      }
    }
    if constexpr (kBits == 16) divide_by_scale();
    for (uint32_t n = 0; n < channels; n++) surround(planes_[n]);
  }

  uint32_t encode(uint8_t *out) {
    const uint32_t transform = choose_transform();
    if (transform != kTransformNone) apply(transform);
    out[0] = uint8_t(first_byte_of(transform, scale_));
    uint8_t *body = out + fast_heads_size(channels_, kBits);
    for (uint32_t n = 0; n < channels_; n++) {
      ChannelHead head{0, planes_[n].row(0)[0], 0};
      head.body_size = write_body(planes_[n], choices_[n].predictor, &head.mode, body);
      write_channel_head(head, n, kBits, out);
      body += head.body_size;
    }
    return uint32_t(body - out);
  }

 private:
  static constexpr uint32_t kBits = 8 * sizeof(Sample);
  static constexpr uint32_t kMaxIndexBits = max_index_bits(kBits);
  static constexpr uint32_t kSteps[] = {4, 2, 1};  // by effort: one row pair in so many is examined

  using Plane = QuarteredPlane<Sample>;

  // How a plane is best stored, as far as was examined, and a number that is less for better ones.
  struct Choice {
    uint32_t predictor, cost;
  };

  template <uint32_t channels>
  void load_row(const uint8_t *pixels, uint32_t y) {
    Sample *rows[channels];
    for (uint32_t n = 0; n < channels; n++) rows[channel_of_plane(n, channels)] = planes_[n].row(y);
    if (shape_.width == L3_TILE)
      Loader::load(pixels, rows);
    else
      load_narrow_row(pixels, shape_.width, rows);
  }

  // Finds the scale that leaves the smallest samples, and leaves those.
  void divide_by_scale() {
    Sample set_bits = 0, differing_bits = 0;  // in any sample; in the low byte, those unlike the high byte's
    const auto repeats_byte = [&] { return (differing_bits & 255) == 0; };
    for (uint32_t n = 0; n < channels_; n++)
      for (uint32_t y = 0; y < shape_.height; y++) {
        const Sample *row = planes_[n].row(y);
        for (uint32_t i = 0; i < L3_TILE; i++) {
          set_bits |= row[i];
          differing_bits |= Sample(row[i] ^ row[i] >> 8);
        }
        if (set_bits % 2 && !repeats_byte()) return;  // most images are through after a row
      }
    if (set_bits == 0) return;
    scale_ = repeats_byte() ? kRepeatByte : std::min(uint32_t(std::countr_zero(set_bits)), kMaxShift);
    const uint32_t shift = repeats_byte() ? 8 : scale_;
    for (uint32_t n = 0; n < channels_; n++)
      for (uint32_t y = 0; y < shape_.height; y++) {
        Sample *row = planes_[n].row(y);
        for (uint32_t i = 0; i < L3_TILE; i++) row[i] = Sample(row[i] >> shift);
      }
  }

  void surround(Plane &plane) {
    for (uint32_t y = 0; y < shape_.height; y++) plane.surround(y);
  }

  uint32_t step() const { return kSteps[effort_ - 1]; }
  // Of the row pairs that are examined.
  uint32_t first_pair() const { return std::min(step() / 2, shape_.row_pairs() - 1); }

  Choice choose_predictor(const Plane &plane) {
    if (effort_ < 3) {
      const PredictorCosts costs = predictor_costs(plane, shape_, masks_, first_pair(), step());
      const uint32_t best = best_predictor(costs);
      return {best, costs[best]};
    }
    Choice best{0, UINT32_MAX};
    for (uint32_t predictor = 0; predictor < kPredictors; predictor++) {
      const ChannelPlan plan = plan_for(plane, predictor);
      if (plan.size < best.cost) best = {predictor, plan.size};
    }
    return best;
  }

  // Chooses the transform and the predictors.
  uint32_t choose_transform() {
    for (uint32_t n = 0; n < channels_; n++) choices_[n] = choose_predictor(planes_[n]);
    if (channels_ < 3) return kTransformNone;
    // Of the planes that transforms make, only the rows that are examined, and those above them.
    for (uint32_t pair = first_pair(); pair < shape_.row_pairs(); pair += step())
      for (uint32_t y = pair ? 2 * pair - 1 : 0; y < std::min(2 * pair + 2, shape_.height); y++) {
        subtract(y, kSubtractGreen, red_less_green_.row(y), blue_less_green_.row(y));
        subtract(y, kSubtractGreenAndMean, red_less_green_.row(y), blue_less_mean_.row(y));
        for (Plane *plane : {&red_less_green_, &blue_less_green_, &blue_less_mean_}) plane->surround(y);
      }
    const Choice red = choose_predictor(red_less_green_),
                 blues[] = {choose_predictor(blue_less_green_), choose_predictor(blue_less_mean_)};
    const bool mean = blues[1].cost < blues[0].cost;
    if (red.cost + blues[mean].cost >= choices_[1].cost + choices_[2].cost) return kTransformNone;
    choices_[1] = red;
    choices_[2] = blues[mean];
    return mean ? kSubtractGreenAndMean : kSubtractGreen;
  }

  // What stands for red and blue in row `y` under a transform; may replace them.
  void subtract(uint32_t y, uint32_t transform, Sample *red_out, Sample *blue_out) const {
    constexpr uint32_t middle = 1u << (kBits - 1);
    const Sample *greens = planes_[0].row(y), *reds = planes_[1].row(y), *blues = planes_[2].row(y);
    with_color_transform(transform, [&](auto constant) {
      for (uint32_t i = 0; i < L3_TILE; i++) {
        const uint32_t green = greens[i], red = reds[i],
                       reference = constant == kSubtractGreen ? green : (red + green) / 2;
        blue_out[i] = Sample(blues[i] - reference + middle);
        red_out[i] = Sample(red - green + middle);
      }
    });
  }

  void apply(uint32_t transform) {
    for (uint32_t y = 0; y < shape_.height; y++) subtract(y, transform, planes_[1].row(y), planes_[2].row(y));
    surround(planes_[1]);
    surround(planes_[2]);
  }

  // Fills residuals_ and codes_.
  void analyse(const Plane &plane, uint32_t predictor) {
    GroupRanges<Sample, kMaxGroups> ranges;
    for (uint32_t pair = 0; pair < shape_.row_pairs(); pair++) {
      Sample *const upper = residuals_ + 2 * pair * L3_TILE, *const lower = upper + L3_TILE;
      residuals_of_row(plane, 2 * pair, predictor, masks_, upper);
      if (2 * pair + 1 < shape_.height)
        residuals_of_row(plane, 2 * pair + 1, predictor, masks_, lower);
      else
        std::memset(lower, 0, L3_TILE * sizeof(Sample));
      find_ranges(upper, lower, ranges.above + pair * kQuarter, ranges.below + pair * kQuarter);
    }
    find_codes(ranges.above, ranges.below, shape_.row_pairs() * kQuarter, codes_.codes);
    codes_.busy_units = 0;
    for (uint32_t unit = 0; unit < shape_.units(); unit++)
      codes_.busy_units |= uint64_t(load<uint64_t>(codes_.codes + first_group_of(unit)) != 0) << unit;
  }

  // The place of a unit's first group among those of the channel.
  uint32_t first_group_of(uint32_t unit) const {
    const uint32_t per_pair = shape_.units_per_row_pair();
    return unit / per_pair * kQuarter + unit % per_pair * kUnitGroups;
  }

  // A unit's groups that are not outside the tile.
  uint32_t groups_of(uint32_t unit) const {
    return std::min(kUnitGroups, shape_.groups() - first_group_of(unit) % kQuarter);
  }

  ChannelPlan plan_for(const Plane &plane, uint32_t predictor) {
    analyse(plane, predictor);
    const uint32_t groups = shape_.row_pairs() * kQuarter;
    Histogram<Sample> all = count_codes<Sample>(codes_.codes, groups);
    all[0] -= groups - shape_.row_pairs() * shape_.groups();  // those outside the tile
    const uint32_t busy = uint32_t(std::popcount(codes_.busy_units)), units = shape_.units();
    const ChannelPlan plain = plan_for(predictor, all, units, 0);
    if (busy == units) return plain;
    // Without the idle units, whose groups are all of code 0.
    Histogram<Sample> present = all;
    for (uint32_t unit = 0; unit < units; unit++)
      if (!(codes_.busy_units >> unit & 1)) present[0] -= groups_of(unit);
    const ChannelPlan sparse = plan_for(predictor, present, busy, shape_.unit_bitmap_size());
    return sparse.size < plain.size ? sparse : plain;
  }

  ChannelPlan plan_for(uint32_t predictor, const Histogram<Sample> &histogram, uint32_t units, uint32_t bitmap_size) {
    const std::array<CodeSet, 6> sets = choose_code_sets<Sample>(histogram);
    ChannelPlan best{predictor, 0, bitmap_size != 0, 0, UINT32_MAX};
    for (uint32_t bits = 0; bits <= kMaxIndexBits; bits++) {
      const uint32_t size = palette_size(bits, kBits) + bitmap_size + units * bits + sets[bits].bytes;
      if (size < best.size) {
        best.index_bits = bits;
        best.codes = sets[bits].codes;
        best.size = size;
      }
    }
    return best;
  }

  // Sets the mode and writes the body; returns the body's size.
  uint32_t write_body(const Plane &plane, uint32_t predictor, uint32_t *mode, uint8_t *body) {
    const ChannelPlan plan = plan_for(plane, predictor);
    if (const uint32_t size = encode_label_map(plane, shape_, body, plan.size - 1)) {
      *mode = kLabelMap;
      return size;
    }
    *mode = mode_of(plan.predictor, plan.index_bits, plan.has_bitmap);
    return write_residuals(plan, body);
  }

  // Writes the body of residuals_ and codes_ as planned; returns its size.
  uint32_t write_residuals(const ChannelPlan &plan, uint8_t *const body) {
    uint8_t palette[code_count(kBits)] = {}, *out = body;
    uint32_t count = 0;
    for (uint32_t rest = plan.codes; rest; rest &= rest - 1) palette[count++] = uint8_t(std::countr_zero(rest));
    out = write_palette(palette, plan.index_bits, kBits, out);
    const uint64_t units = plan.has_bitmap ? codes_.busy_units : low_bits(shape_.units());
    if (plan.has_bitmap) {
      std::memcpy(out, &units, shape_.unit_bitmap_size());
      out += shape_.unit_bitmap_size();
    }

    const Symbols<Sample> symbols(plan.codes, plan.index_bits);
    const uint32_t groups = shape_.row_pairs() * kQuarter;
    // Writing goes past the end of what is written: index words first, as octets follow them.
    if (plan.index_bits) {
      GroupBytes indices;
      look_up(symbols.index, codes_.codes, groups, indices);
      for (uint64_t rest = units; rest; rest &= rest - 1) {
        const uint32_t unit = uint32_t(std::countr_zero(rest));
        const uint64_t word = pack_bytes(load<uint64_t>(indices + first_group_of(unit)), plan.index_bits);
        store(out, word & low_bits(groups_of(unit) * plan.index_bits));  // those outside are 0
        out += plan.index_bits;
      }
    }
    const Octets<Sample> octets(residuals_, codes_.codes, groups, symbols);
    for (uint64_t rest = units; rest; rest &= rest - 1) {
      const uint32_t unit = uint32_t(std::countr_zero(rest)), begin = first_group_of(unit);
      out = octets.write(begin, begin + groups_of(unit), out);
    }
    return uint32_t(out - body);
  }

  const uint32_t channels_, effort_;
  const TileShape shape_;
  const ColumnMasks<Sample> masks_;
  uint32_t scale_ = 0;
  Plane planes_[L3_MAX_CHANNELS], red_less_green_, blue_less_green_, blue_less_mean_;
  Choice choices_[L3_MAX_CHANNELS];
  ChannelCodes codes_;
  alignas(64) Sample residuals_[kPlaneSize];
};

template <typename Sample, typename Loader = RowLoader>
uint32_t encode_tile(const TilePixels &pixels, uint32_t effort, uint8_t *out) {
  return FastTileEncoder<Sample, Loader>(pixels, effort).encode(out);
}

}  // namespace
}  // namespace l3::generic
