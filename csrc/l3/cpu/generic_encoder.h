// The encoder of `fast` tiles: which transform, predictors and palettes make a tile smallest, and writing it. Plain
// loops over rows of 64 samples, compiled once per instruction set; every back end writes the same bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "cpu/dispatch.h"
#include "cpu/generic_decoder.h"
#include "cpu/prefetch.h"
#include "format/label_map.h"

namespace l3::generic {
namespace {

constexpr uint32_t kMaxGroups = L3_TILE / 4;  // in a row pair

// A channel with its edges repeated: the neighbours of every sample of a row are read at once, without special cases.
// Rows are kStride samples apart, and row(y)[-2] to row(y)[L3_TILE] may be read.
template <typename Sample>
struct PaddedPlane {
  static constexpr uint32_t kMargin = 16, kStride = L3_TILE + 2 * kMargin;
  alignas(64) Sample samples[L3_TILE * kStride];

  Sample *row(uint32_t y) { return samples + y * kStride + kMargin; }
  const Sample *row(uint32_t y) const { return samples + y * kStride + kMargin; }

  void repeat_edges(TileShape shape) {
    for (uint32_t y = 0; y < shape.height; y++) {
      Sample *samples = row(y);
      samples[-2] = samples[-1] = samples[0];
      std::fill(samples + shape.width, samples + L3_TILE + 1, samples[shape.width - 1]);
    }
  }
};

template <typename Sample>
using Row = Sample[L3_TILE];

// All ones where x = 0, and where x is within the tile.
template <typename Sample>
struct ColumnMasks {
  alignas(64) Row<Sample> first, inside;

  explicit ColumnMasks(uint32_t width) {
    for (uint32_t x = 0; x < L3_TILE; x++) {
      first[x] = Sample(x == 0 ? ~0 : 0);
      inside[x] = Sample(x < width ? ~0 : 0);
    }
  }
};

// The residual of sample x of a row under `predictor`, not yet masked to the tile. `row` and `above` point at the
// sample and the one above it, `first` is the column's mask. In row 0 `above` is not read.
template <typename Sample>
[[gnu::always_inline]] inline Sample residual(const Sample *row, const Sample *above, Sample first, uint32_t predictor,
                                              bool row_0) {
  const auto select = [first](Sample if_first, Sample otherwise) {
    return Sample((if_first & first) | (otherwise & ~first));
  };
  const Sample left = Sample(row[0] - row[-1]);
  if (row_0) return select(0, left);
  const Sample from_above = Sample(row[0] - above[0]);
  if (predictor == kAbove) return from_above;
  if (predictor == kLeft) return select(from_above, left);
  if (predictor == kPlane) return select(from_above, Sample(left - (above[0] - above[-1])));
  const Sample smooth = average(average(above[-1], above[1]), above[0]),
               smooth_left = average(average(above[-2], above[0]), above[-1]);
  const Sample from_smooth = Sample(row[0] - smooth);
  if (predictor == kSmoothAbove) return from_smooth;
  return select(from_smooth, Sample(left - (smooth - smooth_left)));
}

// What the widths and the codes of groups follow from, sample by sample and for several row pairs at once: the bitwise
// or, over the two rows of a pair, of the residuals v with v < 0 counted as ~v, and the same of -v. Over a group, the
// first is below 2^(n-1) if and only if code 2n - 1 holds it, the second if and only if code 2n does.
template <typename Sample, uint32_t row_pairs>
struct Magnitudes {
  alignas(64) Row<Sample> low[row_pairs], high[row_pairs];

  [[gnu::always_inline]] void add(uint32_t pair, uint32_t x, Sample residual) {
    const auto fold = [](Sample sample) { return Sample(std::make_signed_t<Sample>(sample) < 0 ? ~sample : sample); };
    low[pair][x] |= fold(residual);
    high[pair][x] |= fold(Sample(-residual));
  }
};

// Joins the magnitudes of the four columns of each group.
template <typename Sample>
inline void join_groups(const Sample *magnitudes, uint32_t groups, int32_t *out) {
  using Word = std::conditional_t<sizeof(Sample) == 1, uint32_t, uint64_t>;  // four samples
  for (uint32_t g = 0; g < groups; g++) {
    Word word = load<Word>(reinterpret_cast<const uint8_t *>(magnitudes + 4 * g));
    word |= word >> 16 * sizeof(Sample);
    word |= word >> 8 * sizeof(Sample);
    out[g] = Sample(word);
  }
}

// The number of bits of values below 2^24, as the exponent of a float: unlike a count of leading zeros, all instruction
// sets have it in vectors.
inline int32_t bit_width_of(int32_t value) {
  const int32_t exponent = (std::bit_cast<int32_t>(float(value)) >> 23) - 126;
  return exponent > 0 ? exponent : 0;
}

// The tightest code of each group.
template <typename Sample, uint32_t row_pairs>
inline void codes_of_groups(const Magnitudes<Sample, row_pairs> &magnitudes, uint32_t used_row_pairs, uint8_t *codes) {
  int32_t low[row_pairs * kMaxGroups], high[row_pairs * kMaxGroups];
  const uint32_t groups = used_row_pairs * kMaxGroups;
  join_groups(magnitudes.low[0], groups, low);
  join_groups(magnitudes.high[0], groups, high);
  for (uint32_t g = 0; g < groups; g++) {
    const int32_t low_width = bit_width_of(low[g]), high_width = bit_width_of(high[g]);
    const int32_t code = low_width <= high_width ? 2 * low_width + 1 : 2 * high_width + 2;
    codes[g] = uint8_t(low[g] | high[g] ? code : 0);
  }
}

// What looking at some of a channel's row pairs tells.
struct PredictorCosts {
  std::array<uint32_t, kPredictors> bytes{};  // of octets, under each predictor
  uint32_t changed_groups = 0;                // those with a sample unlike the one above it
  uint32_t changed_samples = 0;

  uint32_t best() const { return uint32_t(std::min_element(bytes.begin(), bytes.end()) - bytes.begin()); }
  uint32_t least() const { return *std::min_element(bytes.begin(), bytes.end()); }
};

// Looks at every `step`-th row pair.
template <typename Sample>
PredictorCosts predictor_costs(const PaddedPlane<Sample> &plane, TileShape shape, const ColumnMasks<Sample> &masks,
                               uint32_t step) {
  constexpr uint32_t groups = kPredictors * kMaxGroups;
  int32_t bytes[groups] = {};
  uint32_t changed_groups = 0;
  alignas(64) Row<uint8_t> changes{};  // in each column
  for (uint32_t pair = std::min(step / 2, shape.row_pairs() - 1); pair < shape.row_pairs(); pair += step) {
    Magnitudes<Sample, kPredictors> magnitudes{};  // of the same row pair under each predictor
    for (uint32_t y = 2 * pair; y < std::min(2 * pair + 2, shape.height); y++) {
      const Sample *row = plane.row(y), *above = plane.row(y ? y - 1 : 0);
      const auto add = [&](uint32_t x, uint32_t predictor, bool row_0) {
        magnitudes.add(predictor, x, residual(row + x, above + x, masks.first[x], predictor, row_0) & masks.inside[x]);
      };
      if (y == 0) {
        for (uint32_t predictor = 0; predictor < kPredictors; predictor++)
          for (uint32_t x = 0; x < L3_TILE; x++) add(x, predictor, true);
        continue;
      }
      for (uint32_t x = 0; x < L3_TILE; x++) {
        add(x, kAbove, false);
        add(x, kSmoothAbove, false);
        add(x, kLeft, false);
        add(x, kPlane, false);
        add(x, kSmoothPlane, false);
      }
      for (uint32_t x = 0; x < L3_TILE; x++)
        changes[x] = uint8_t(changes[x] + ((row[x] != above[x]) & masks.inside[x]));
    }
    int32_t low[groups], high[groups];
    join_groups(magnitudes.low[0], groups, low);
    join_groups(magnitudes.high[0], groups, high);
    static_assert(kAbove == 0);
    for (uint32_t g = 0; g < kMaxGroups; g++) changed_groups += (low[g] | high[g]) != 0;
    for (uint32_t g = 0; g < groups; g++)
      bytes[g] += bit_width_of(low[g] < high[g] ? low[g] : high[g]) + ((low[g] | high[g]) != 0);
  }
  PredictorCosts costs;
  for (uint32_t g = 0; g < groups; g++) costs.bytes[g / kMaxGroups] += uint32_t(bytes[g]);
  for (uint32_t x = 0; x < L3_TILE; x++) costs.changed_samples += changes[x];
  costs.changed_groups = changed_groups;
  return costs;
}

// The tightest codes of all groups of a channel, and the units that have any but code 0.
struct ChannelCodes {
  uint8_t codes[L3_TILE / 2][kMaxGroups];
  uint64_t busy_units;
};

template <typename Sample>
using Histogram = std::array<uint32_t, code_count(8 * sizeof(Sample))>;

// A set of codes, as a bit mask, that can stand for all groups of a channel; and the bytes of their octets.
struct CodeSet {
  uint32_t codes;
  uint32_t bytes;
};

// The code of least width in `set` that can hold groups of code `code`: itself, or any wider one.
inline uint32_t cover_of(uint32_t set, uint32_t code) {
  if (set >> code & 1) return code;
  const uint32_t wider = set & ~uint32_t(low_bits(2 * code_width(code) + 1));
  return uint32_t(std::countr_zero(wider));
}

// Code sets of at most 2^b codes for b = 0, 1, …, found by taking away, from all codes that occur, the one whose groups
// cost least elsewhere.
template <typename Sample>
std::array<CodeSet, 6> choose_code_sets(Histogram<Sample> histogram) {
  constexpr uint32_t kMaxBits = max_index_bits(8 * sizeof(Sample));
  uint32_t set = 0, bytes = 0;
  for (uint32_t code = 0; code < histogram.size(); code++) {
    if (!histogram[code]) continue;
    set |= 1u << code;
    bytes += histogram[code] * code_width(code);
  }
  if (!set) set = 1;
  std::array<CodeSet, 6> sets{};
  for (int bits = int(kMaxBits); bits >= 0; bits--) {
    while (std::popcount(set) > 1 << bits) {
      const uint32_t widest = code_width(31 - uint32_t(std::countl_zero(set)));
      // Two codes of the greatest width can only be joined in the next width.
      uint32_t best_code = 0, best_cover = 0, best_cost = UINT32_MAX;
      for (uint32_t rest = set; rest; rest &= rest - 1) {
        const uint32_t code = uint32_t(std::countr_zero(rest));
        if (code_width(code) == widest) break;
        const uint32_t cover = cover_of(set & ~(1u << code), code),
                       cost = histogram[code] * (code_width(cover) - code_width(code));
        if (cost < best_cost) best_code = code, best_cover = cover, best_cost = cost;
      }
      const uint32_t narrow_top = 2 * widest - 1, wide_top = 2 * widest;
      if ((set >> narrow_top & 3) == 3 && histogram[narrow_top] + histogram[wide_top] < best_cost) {
        set &= ~(3u << narrow_top);
        const uint32_t joined = wide_top + 1;
        set |= 1u << joined;
        histogram[joined] = histogram[narrow_top] + histogram[wide_top];
        bytes += histogram[joined];
      } else {
        set &= ~(1u << best_code);
        histogram[best_cover] += histogram[best_code];
        bytes += best_cost;
      }
    }
    sets[size_t(bits)] = {set, bytes};
  }
  return sets;
}

// How a channel is to be written.
struct ChannelPlan {
  uint32_t predictor;
  uint32_t index_bits;
  bool has_bitmap;
  uint32_t codes;  // the palette, as a set
  uint32_t size;   // of the body
};

template <typename Sample>
class FastTileEncoder {
 public:
  FastTileEncoder(const TilePixels &pixels, uint32_t effort)
      : channels_(pixels.channels), effort_(effort), shape_(pixels.shape), masks_(pixels.shape.width) {
    const auto [data, stride, channels, shape] = pixels;
    const uint8_t *row = data;
    for (uint32_t y = 0; y < shape.height; y++, row += stride) {
      // Rows are far apart: processors do not guess where the next ones are.
      if (y + kRowsAhead < shape.height)
        prefetch(row + kRowsAhead * stride, shape.width * channels * uint32_t(sizeof(Sample)));
      switch (channels) {
        case 1: load_row<1>(row, y); break;
        case 2: load_row<2>(row, y); break;
        case 3: load_row<3>(row, y); break;
        default: load_row<4>(row, y);
      }
    }
    if constexpr (kBits == 16) divide_by_scale();
    for (uint32_t n = 0; n < channels; n++) planes_[n].repeat_edges(shape);
  }

  uint32_t encode(uint8_t *out) {
    for (uint32_t n = 0; n < channels_; n++) candidates_[n] = consider(planes_[n]);
    const uint32_t transform = channels_ < 3 ? uint32_t(kTransformNone) : choose_transform();
    out[0] = uint8_t(first_byte_of(transform, scale_));
    uint8_t *body = out + fast_heads_size(channels_, kBits);
    for (uint32_t n = 0; n < channels_; n++) {
      ChannelHead head{0, candidates_[n].plane->row(0)[0], 0};
      head.body_size = write_body(candidates_[n], &head.mode, body);
      write_channel_head(head, n, kBits, out);
      body += head.body_size;
    }
    return uint32_t(body - out);
  }

 private:
  static constexpr uint32_t kBits = 8 * sizeof(Sample);
  static constexpr uint32_t kMaxIndexBits = max_index_bits(kBits);
  static constexpr uint32_t kRowsAhead = 4;        // of those that are loaded, others are prefetched
  static constexpr uint32_t kSteps[] = {4, 2, 1};  // by effort: one row pair in so many is examined

  // One way to store a channel.
  struct Candidate {
    const PaddedPlane<Sample> *plane;
    PredictorCosts costs;
    ChannelPlan plan;  // effort 3 only: others plan the channels that are written
    uint32_t cost() const { return plan.size ? plan.size : costs.least(); }
  };

  template <uint32_t channels>
  void load_row(const uint8_t *pixels, uint32_t y) {
    Sample *rows[channels];
    for (uint32_t n = 0; n < channels; n++) rows[channel_of_plane(n, channels)] = planes_[n].row(y);
    if (shape_.width == L3_TILE)
      deinterleave<channels>(pixels, L3_TILE, rows);  // of constant length, for the vectoriser
    else
      deinterleave<channels>(pixels, shape_.width, rows);
  }

  template <uint32_t channels>
  [[gnu::always_inline]] static void deinterleave(const uint8_t *pixels, uint32_t width,
                                                  Sample *const (&rows)[channels]) {
    for (uint32_t x = 0; x < width; x++)
      for (uint32_t c = 0; c < channels; c++) rows[c][x] = load<Sample>(pixels + (channels * x + c) * sizeof(Sample));
  }

  // Finds the scale that leaves the smallest samples, and leaves those.
  void divide_by_scale() {
    Sample set_bits = 0, differing_bits = 0;  // in any sample; in the low byte, those unlike the high byte's
    const auto repeats_byte = [&] { return (differing_bits & 255) == 0; };
    for (uint32_t n = 0; n < channels_; n++)
      for (uint32_t y = 0; y < shape_.height; y++) {
        const Sample *row = planes_[n].row(y);
        for (uint32_t x = 0; x < shape_.width; x++) {
          set_bits |= row[x];
          differing_bits |= Sample(row[x] ^ row[x] >> 8);
        }
        if (set_bits % 2 && !repeats_byte()) return;  // most images are through after a row
      }
    if (set_bits == 0) return;
    scale_ = repeats_byte() ? kRepeatByte : std::min(uint32_t(std::countr_zero(set_bits)), kMaxShift);
    const uint32_t shift = repeats_byte() ? 8 : scale_;
    for (uint32_t n = 0; n < channels_; n++)
      for (uint32_t y = 0; y < shape_.height; y++) {
        Sample *row = planes_[n].row(y);
        for (uint32_t x = 0; x < shape_.width; x++) row[x] = Sample(row[x] >> shift);
      }
  }

  Candidate consider(const PaddedPlane<Sample> &plane) {
    Candidate candidate{&plane, predictor_costs(plane, shape_, masks_, kSteps[effort_ - 1]), {}};
    if (effort_ == 3) candidate.plan = best_plan(plane);
    return candidate;
  }

  // Chooses among the transforms and puts their planes into candidates_.
  uint32_t choose_transform() {
    constexpr uint32_t middle = 1u << (kBits - 1);
    for (uint32_t y = 0; y < shape_.height; y++) {
      const Sample *green = planes_[0].row(y), *red = planes_[1].row(y), *blue = planes_[2].row(y);
      Sample *red_out = red_less_green_.row(y), *blue_out = blue_less_green_.row(y), *mean_out = blue_less_mean_.row(y);
      for (uint32_t x = 0; x < L3_TILE; x++) {
        red_out[x] = Sample(red[x] - green[x] + middle);
        blue_out[x] = Sample(blue[x] - green[x] + middle);
        mean_out[x] = Sample(blue[x] - (uint32_t(red[x]) + green[x]) / 2 + middle);
      }
    }
    for (PaddedPlane<Sample> *plane : {&red_less_green_, &blue_less_green_, &blue_less_mean_})
      plane->repeat_edges(shape_);
    const Candidate red_candidate = consider(red_less_green_),
                    blue_candidates[] = {consider(blue_less_green_), consider(blue_less_mean_)};
    const bool mean = blue_candidates[1].cost() < blue_candidates[0].cost();
    const Candidate &blue_candidate = blue_candidates[mean];
    if (red_candidate.cost() + blue_candidate.cost() >= candidates_[1].cost() + candidates_[2].cost())
      return kTransformNone;
    candidates_[1] = red_candidate;
    candidates_[2] = blue_candidate;
    return mean ? kSubtractGreenAndMean : kSubtractGreen;
  }

  // The plan of least size over all predictors. Leaves residuals_ and codes_ of the last one tried.
  ChannelPlan best_plan(const PaddedPlane<Sample> &plane) {
    ChannelPlan best = plan_for(plane, 0);
    for (uint32_t predictor = 1; predictor < kPredictors; predictor++) {
      const ChannelPlan plan = plan_for(plane, predictor);
      if (plan.size < best.size) best = plan;
    }
    return best;
  }

  // Fills residuals_ and codes_.
  void analyse(const PaddedPlane<Sample> &plane, uint32_t predictor) {
    with_predictor(predictor, [&](auto constant) { analyse<constant>(plane); });
  }

  template <uint32_t predictor>
  void analyse(const PaddedPlane<Sample> &plane) {
    Magnitudes<Sample, L3_TILE / 2> magnitudes;
    for (uint32_t pair = 0; pair < shape_.row_pairs(); pair++) {
      std::memset(magnitudes.low[pair], 0, sizeof magnitudes.low[pair]);
      std::memset(magnitudes.high[pair], 0, sizeof magnitudes.high[pair]);
      for (uint32_t y = 2 * pair; y < 2 * pair + 2; y++) {
        Sample *out = residuals_ + y * L3_TILE;
        if (y >= shape_.height) {
          std::memset(out, 0, L3_TILE * sizeof(Sample));
          continue;
        }
        const Sample *row = plane.row(y), *above = plane.row(y ? y - 1 : 0);
        const auto take = [&](uint32_t x, bool row_0) {
          const Sample value = residual(row + x, above + x, masks_.first[x], predictor, row_0) & masks_.inside[x];
          out[x] = value;
          magnitudes.add(pair, x, value);
        };
        if (y == 0)
          for (uint32_t x = 0; x < L3_TILE; x++) take(x, true);
        else
          for (uint32_t x = 0; x < L3_TILE; x++) take(x, false);
      }
    }
    codes_of_groups(magnitudes, shape_.row_pairs(), codes_.codes[0]);
    const uint32_t per_pair = shape_.units_per_row_pair();
    codes_.busy_units = 0;
    for (uint32_t unit = 0; unit < shape_.units(); unit++)
      codes_.busy_units |= uint64_t(load<uint64_t>(codes_.codes[unit / per_pair] + unit % per_pair * kUnitGroups) != 0)
                           << unit;
  }

  ChannelPlan plan_for(const PaddedPlane<Sample> &plane, uint32_t predictor) {
    analyse(plane, predictor);
    Histogram<Sample> all{};
    for (uint32_t pair = 0; pair < shape_.row_pairs(); pair++)
      for (uint32_t g = 0; g < shape_.groups(); g++) all[codes_.codes[pair][g]]++;
    const uint32_t busy = uint32_t(std::popcount(codes_.busy_units)), units = shape_.units();
    const ChannelPlan plain = plan_for(predictor, all, units, 0);
    if (busy == units) return plain;
    // Without the idle units, whose groups are all of code 0.
    Histogram<Sample> present = all;
    for (uint32_t unit = 0; unit < units; unit++) {
      const uint32_t first_group = unit % shape_.units_per_row_pair() * kUnitGroups;
      if (!(codes_.busy_units >> unit & 1)) present[0] -= std::min(kUnitGroups, shape_.groups() - first_group);
    }
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
  uint32_t write_body(const Candidate &candidate, uint32_t *mode, uint8_t *body) {
    const ChannelPlan plan = effort_ == 3 ? candidate.plan : plan_for(*candidate.plane, candidate.costs.best());
    const uint32_t step = kSteps[effort_ - 1],
                   max_labels = max_labels_below(plan.size, candidate.costs.changed_groups * step,
                                                 candidate.costs.changed_samples * step, sizeof(Sample));
    if (max_labels) {
      if (const uint32_t size = encode_label_map(candidate.plane->row(0), PaddedPlane<Sample>::kStride, shape_,
                                                 max_labels, body, plan.size - 1)) {
        *mode = kLabelMap;
        return size;
      }
    }
    *mode = mode_of(plan.predictor, plan.index_bits, plan.has_bitmap);
    if (effort_ == 3) analyse(*candidate.plane, plan.predictor);
    return write_residuals(plan, body);
  }

  // Writes the body of residuals_ and codes_ as planned; returns its size.
  uint32_t write_residuals(const ChannelPlan &plan, uint8_t *const body) {
    uint8_t *out = body;
    // The palette, and what stands for the groups of each tight code.
    struct Symbol {
      uint8_t index, width;
      Sample minimum;
    };
    uint8_t palette[code_count(kBits)] = {};
    Symbol symbols[code_count(kBits)];
    const bool identity = !has_palette(plan.index_bits, kBits);
    uint32_t count = 0;
    for (uint32_t rest = plan.codes; rest; rest &= rest - 1) palette[count++] = uint8_t(std::countr_zero(rest));
    for (uint32_t tight = 0; tight < code_count(kBits); tight++) {
      const uint32_t code = cover_of(plan.codes, tight) % code_count(kBits);  // codes that do not occur may have none
      const uint32_t index = identity ? code : uint32_t(std::find(palette, palette + count, code) - palette);
      symbols[tight] = {uint8_t(index), uint8_t(code_width(code)), Sample(code_minimum(code))};
    }
    out = write_palette(palette, plan.index_bits, kBits, out);
    const uint64_t units = plan.has_bitmap ? codes_.busy_units : low_bits(shape_.units());
    if (plan.has_bitmap) {
      std::memcpy(out, &units, shape_.unit_bitmap_size());
      out += shape_.unit_bitmap_size();
    }

    uint8_t *indices = out, *payload = out + uint32_t(std::popcount(units)) * plan.index_bits;
    uint32_t unit = 0;
    for (uint32_t pair = 0; pair < shape_.row_pairs(); pair++) {
      const Sample *upper = residuals_ + 2 * pair * L3_TILE, *lower = upper + L3_TILE;
      for (uint32_t first_group = 0; first_group < shape_.groups(); first_group += kUnitGroups, unit++) {
        if (!(units >> unit & 1)) continue;
        uint64_t word = 0;
        const uint32_t end = std::min(first_group + kUnitGroups, shape_.groups());
        for (uint32_t g = first_group; g < end; g++) {
          const Symbol symbol = symbols[codes_.codes[pair][g]];
          word |= uint64_t(symbol.index) << (g - first_group) * plan.index_bits;
          Sample fields[kGroup];
          std::memcpy(fields, upper + 4 * g, 4 * sizeof(Sample));
          std::memcpy(fields + 4, lower + 4 * g, 4 * sizeof(Sample));
          for (Sample &field : fields) field = Sample(field - symbol.minimum);
          payload = pack_octet(fields, symbol.width, payload);
        }
        std::memcpy(indices, &word, plan.index_bits);
        indices += plan.index_bits;
      }
    }
    return uint32_t(payload - body);
  }

  const uint32_t channels_, effort_;
  const TileShape shape_;
  const ColumnMasks<Sample> masks_;
  uint32_t scale_ = 0;
  PaddedPlane<Sample> planes_[L3_MAX_CHANNELS], red_less_green_, blue_less_green_, blue_less_mean_;
  Candidate candidates_[L3_MAX_CHANNELS];
  ChannelCodes codes_;
  alignas(64) Sample residuals_[kPlaneSize];
};

template <typename Sample>
uint32_t encode_tile(const TilePixels &pixels, uint32_t effort, uint8_t *out) {
  return FastTileEncoder<Sample>(pixels, effort).encode(out);
}

}  // namespace
}  // namespace l3::generic
