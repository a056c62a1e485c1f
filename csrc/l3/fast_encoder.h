// The encoder of `fast` tiles: which transform, predictors and palettes make a tile smallest, and writing it. Plain loops over rows of 64
// samples, compiled once per instruction set; every back end writes the same bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "fast_tile.h"
#include "label_map.h"
#include "octet.h"
#include "planes.h"

namespace l3::generic {
namespace {

constexpr uint32_t kMaxGroups = L3_TILE / 4;  // in a row pair

template <typename Sample>
using Row = Sample[L3_TILE];

// e(x) -> e(x) - e(x - 1), with e(-1) = 0.
template <typename Sample>
inline void difference_along_row(const Sample *in, Sample *out) {
  Sample shifted[L3_TILE];
  shifted[0] = 0;
  std::memcpy(shifted + 1, in, (L3_TILE - 1) * sizeof(Sample));
  for (uint32_t x = 0; x < L3_TILE; x++) out[x] = Sample(in[x] - shifted[x]);
}

template <typename Sample>
inline void subtract(const Sample *a, const Sample *b, Sample *out) {
  for (uint32_t x = 0; x < L3_TILE; x++) out[x] = Sample(a[x] - b[x]);
}

// The residuals of row `y` under one predictor; zero beyond the tile's right edge.
template <typename Sample>
inline void residuals_of_row(const Sample *plane, uint32_t y, uint32_t predictor, uint32_t width, Sample *out) {
  const Sample *row = plane + y * L3_TILE, *above = row - L3_TILE;
  Row<Sample> base, distance;
  if (y == 0 || predictor == kLeft) {
    const Sample constant = y ? above[0] : row[0];
    for (uint32_t x = 0; x < L3_TILE; x++) base[x] = constant;
  } else if (predictor == kAbove || predictor == kPlane) {
    std::memcpy(base, above, sizeof base);
  } else {
    smooth(above, width, base);
  }
  if (y == 0 || sums_along_row(predictor)) {
    subtract(row, base, distance);
    difference_along_row(distance, out);
  } else {
    subtract(row, base, out);
  }
  for (uint32_t x = width; x < L3_TILE; x++) out[x] = 0;
}

// What the width and the code of a group follow from: the bitwise or, over its values v, of |v| with v < 0 counted as ~v, and the same of -v.
// The first is below 2^(n-1) if and only if code 2n - 1 holds the group, the second if and only if code 2n does.
struct GroupRanges {
  int32_t low[kMaxGroups], high[kMaxGroups];
};

template <typename Sample>
inline GroupRanges ranges_of_groups(const Sample *upper, const Sample *lower) {
  using Signed = std::make_signed_t<Sample>;
  using Word = std::conditional_t<sizeof(Sample) == 1, uint32_t, uint64_t>;  // the four samples of a group's row
  alignas(64) Sample low[L3_TILE], high[L3_TILE];
  const auto fold = [](Sample sample) { return Sample(Signed(sample) < 0 ? ~sample : sample); };
  for (uint32_t x = 0; x < L3_TILE; x++) low[x] = fold(upper[x]) | fold(lower[x]);
  for (uint32_t x = 0; x < L3_TILE; x++) high[x] = fold(Sample(-upper[x])) | fold(Sample(-lower[x]));
  GroupRanges ranges;
  const auto reduce = [](const Sample *samples, int32_t *out) {
    Word words[kMaxGroups];
    std::memcpy(words, samples, sizeof words);
    for (uint32_t g = 0; g < kMaxGroups; g++) {
      Word word = words[g];
      word |= word >> 16 * sizeof(Sample);
      word |= word >> 8 * sizeof(Sample);
      out[g] = Sample(word);
    }
  };
  reduce(low, ranges.low);
  reduce(high, ranges.high);
  return ranges;
}

// The number of bits of values below 2^24, as the exponent of a float: unlike a count of leading zeros, all instruction sets have it in
// vectors.
inline int32_t bit_width_of(int32_t value) {
  const int32_t exponent = (std::bit_cast<int32_t>(float(value)) >> 23) - 126;
  return exponent > 0 ? exponent : 0;
}

// Bytes that a row pair's octets take, with the tightest code for each group.
inline uint32_t octet_bytes(const GroupRanges &ranges) {
  int32_t sum = 0;
  for (uint32_t g = 0; g < kMaxGroups; g++) {
    const int32_t least = ranges.low[g] < ranges.high[g] ? ranges.low[g] : ranges.high[g];
    sum += bit_width_of(least) + ((ranges.low[g] | ranges.high[g]) != 0);
  }
  return uint32_t(sum);
}

// The tightest code of each group of a row pair.
inline void codes_of_groups(const GroupRanges &ranges, uint8_t codes[kMaxGroups]) {
  for (uint32_t g = 0; g < kMaxGroups; g++) {
    const int32_t low = bit_width_of(ranges.low[g]), high = bit_width_of(ranges.high[g]);
    const int32_t code = low <= high ? 2 * low + 1 : 2 * high + 2;
    codes[g] = uint8_t(ranges.low[g] | ranges.high[g] ? code : 0);
  }
}

// Estimated bytes of a channel under each predictor, and how many samples equal the one above.
struct PredictorCosts {
  std::array<uint32_t, kPredictors> bytes{};
  uint32_t repeats = 0;

  uint32_t best() const { return uint32_t(std::min_element(bytes.begin(), bytes.end()) - bytes.begin()); }
  uint32_t least() const { return *std::min_element(bytes.begin(), bytes.end()); }
};

// Looks at every `step`-th row pair.
template <typename Sample>
PredictorCosts predictor_costs(const Sample *plane, TileShape shape, uint32_t step) {
  PredictorCosts costs;
  for (uint32_t pair = std::min(step / 2, shape.row_pairs() - 1); pair < shape.row_pairs(); pair += step) {
    Row<Sample> residuals[kPredictors][2] = {};
    for (uint32_t i = 0; i < 2 && 2 * pair + i < shape.height; i++) {
      const uint32_t y = 2 * pair + i;
      if (y == 0) {
        for (uint32_t p = 0; p < kPredictors; p++) residuals_of_row(plane, y, p, shape.width, residuals[p][i]);
        continue;
      }
      // The five of one row share most of their work.
      const Sample *row = plane + y * L3_TILE, *above = row - L3_TILE;
      Row<Sample> base;
      smooth(above, shape.width, base);
      subtract(row, above, residuals[kAbove][i]);
      subtract(row, base, residuals[kSmoothAbove][i]);
      difference_along_row(row, residuals[kLeft][i]);
      residuals[kLeft][i][0] = residuals[kAbove][i][0];
      difference_along_row(residuals[kAbove][i], residuals[kPlane][i]);
      difference_along_row(residuals[kSmoothAbove][i], residuals[kSmoothPlane][i]);
      for (auto &of_predictor : residuals)
        for (uint32_t x = shape.width; x < L3_TILE; x++) of_predictor[i][x] = 0;
      for (uint32_t x = 0; x < shape.width; x++) costs.repeats += residuals[kAbove][i][x] == 0;
    }
    for (uint32_t p = 0; p < kPredictors; p++) costs.bytes[p] += octet_bytes(ranges_of_groups(residuals[p][0], residuals[p][1]));
  }
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

// Code sets of at most 2^b codes for b = 0, 1, …, found by taking away, from all codes that occur, the one whose groups cost least elsewhere.
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
        const uint32_t cover = cover_of(set & ~(1u << code), code), cost = histogram[code] * (code_width(cover) - code_width(code));
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
  FastTileEncoder(const Planes<Sample> &planes, uint32_t channels, uint32_t effort, TileShape shape)
      : planes_(planes), channels_(channels), effort_(effort), shape_(shape) {}

  uint32_t encode(uint8_t *out) {
    for (uint32_t n = 0; n < channels_; n++) candidates_[n] = consider(planes_.plane[n]);
    const uint32_t transform = channels_ < 3 ? uint32_t(kTransformNone) : choose_transform();
    out[0] = uint8_t(transform);
    uint8_t *body = out + 1 + channels_ * channel_head_size(kBits);
    for (uint32_t n = 0; n < channels_; n++) {
      uint8_t *head = out + 1 + n * channel_head_size(kBits);
      const Candidate &candidate = candidates_[n];
      const uint32_t size = write_body(candidate, head, body);
      store(head + 1, candidate.plane[0]);
      store(head + channel_head_size(kBits) - 2, uint16_t(size));
      body += size;
    }
    return uint32_t(body - out);
  }

 private:
  static constexpr uint32_t kBits = 8 * sizeof(Sample);
  static constexpr uint32_t kMaxIndexBits = max_index_bits(kBits);

  // One way to store a channel.
  struct Candidate {
    const Sample *plane;
    PredictorCosts costs;
    ChannelPlan plan;  // effort 3 only: others plan the channels that are written
    uint32_t cost() const { return plan.size ? plan.size : costs.least(); }
  };

  Candidate consider(const Sample *plane) {
    constexpr uint32_t kSteps[] = {4, 1, 1};
    Candidate candidate{plane, predictor_costs(plane, shape_, kSteps[effort_ - 1]), {}};
    if (effort_ == 3) candidate.plan = best_plan(plane);
    return candidate;
  }

  // Chooses among the transforms and leaves their planes in candidates_.
  uint32_t choose_transform() {
    constexpr uint32_t middle = 1u << (kBits - 1);
    const Sample *green = planes_.plane[0], *red = planes_.plane[1], *blue = planes_.plane[2];
    for (uint32_t i = 0; i < shape_.height * L3_TILE; i++) {
      red_less_green_[i] = Sample(red[i] - green[i] + middle);
      blue_less_green_[i] = Sample(blue[i] - green[i] + middle);
      blue_less_mean_[i] = Sample(blue[i] - (uint32_t(red[i]) + green[i]) / 2 + middle);
    }
    const Candidate red_candidate = consider(red_less_green_), blue_candidates[] = {consider(blue_less_green_), consider(blue_less_mean_)};
    const bool mean = blue_candidates[1].cost() < blue_candidates[0].cost();
    const Candidate &blue_candidate = blue_candidates[mean];
    if (red_candidate.cost() + blue_candidate.cost() >= candidates_[1].cost() + candidates_[2].cost()) return kTransformNone;
    candidates_[1] = red_candidate;
    candidates_[2] = blue_candidate;
    return mean ? kSubtractGreenAndMean : kSubtractGreen;
  }

  // The plan of least size over all predictors. Leaves residuals_ and codes_ of the last one tried.
  ChannelPlan best_plan(const Sample *plane) {
    ChannelPlan best = plan_for(plane, 0);
    for (uint32_t predictor = 1; predictor < kPredictors; predictor++) {
      const ChannelPlan plan = plan_for(plane, predictor);
      if (plan.size < best.size) best = plan;
    }
    return best;
  }

  // Fills residuals_ and codes_.
  void analyse(const Sample *plane, uint32_t predictor) {
    codes_.busy_units = 0;
    for (uint32_t pair = 0; pair < shape_.row_pairs(); pair++) {
      Sample *upper = residuals_ + 2 * pair * L3_TILE, *lower = upper + L3_TILE;
      residuals_of_row(plane, 2 * pair, predictor, shape_.width, upper);
      if (2 * pair + 1 < shape_.height)
        residuals_of_row(plane, 2 * pair + 1, predictor, shape_.width, lower);
      else
        std::memset(lower, 0, L3_TILE * sizeof(Sample));
      uint8_t *codes = codes_.codes[pair];
      codes_of_groups(ranges_of_groups(upper, lower), codes);
      const uint32_t per_pair = shape_.units_per_row_pair();
      for (uint32_t unit = 0; unit < per_pair; unit++)
        codes_.busy_units |= uint64_t(load<uint64_t>(codes + unit * kUnitGroups) != 0) << (pair * per_pair + unit);
    }
  }

  ChannelPlan plan_for(const Sample *plane, uint32_t predictor) {
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
    const ChannelPlan sparse = plan_for(predictor, present, busy, (units + 7) / 8);
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

  // Writes the mode to `head` and the body; returns the body's size.
  uint32_t write_body(const Candidate &candidate, uint8_t *head, uint8_t *body) {
    const ChannelPlan plan = effort_ == 3 ? candidate.plan : plan_for(candidate.plane, candidate.costs.best());
    // Label maps are for channels most of whose samples repeat the one above; others are spared the attempt.
    const uint32_t examined = effort_ == 1 ? shape_.pixels() / 4 : shape_.pixels();
    if (candidate.costs.repeats >= examined / 2) {
      if (const uint32_t size = encode_label_map(candidate.plane, shape_, body, plan.size)) {
        head[0] = kLabelMap;
        return size;
      }
    }
    head[0] = uint8_t(plan.predictor | plan.index_bits << 3 | uint32_t(plan.has_bitmap) << 6);
    if (effort_ == 3) analyse(candidate.plane, plan.predictor);
    return write_residuals(plan, body);
  }

  // Writes the body of residuals_ and codes_ as planned; returns its size.
  uint32_t write_residuals(const ChannelPlan &plan, uint8_t *const body) {
    uint8_t *out = body;
    // The palette, and for each tight code the index and the code that stand for it.
    uint8_t palette[code_count(kBits)] = {}, index_of[code_count(kBits)] = {}, cover[code_count(kBits)] = {};
    const bool identity = plan.index_bits == kMaxIndexBits;
    uint32_t count = 0;
    for (uint32_t rest = plan.codes; rest; rest &= rest - 1) palette[count++] = uint8_t(std::countr_zero(rest));
    for (uint32_t code = 0; code < code_count(kBits); code++) {
      cover[code] = uint8_t(cover_of(plan.codes, code) % code_count(kBits));  // codes that do not occur may have none
      index_of[code] = identity ? cover[code] : uint8_t(std::find(palette, palette + count, cover[code]) - palette);
    }
    if (!identity)
      for (uint32_t i = 0; i < palette_size(plan.index_bits, kBits); i++)
        *out++ = kBits == 16 ? palette[i] : uint8_t(palette[2 * i] | (plan.index_bits ? palette[2 * i + 1] << 4 : 0));
    const uint64_t units = plan.has_bitmap ? codes_.busy_units : low_bits(shape_.units());
    if (plan.has_bitmap) {
      std::memcpy(out, &units, (shape_.units() + 7) / 8);
      out += (shape_.units() + 7) / 8;
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
          const uint32_t tight = codes_.codes[pair][g], code = cover[tight];
          word |= uint64_t(index_of[tight]) << (g - first_group) * plan.index_bits;
          Sample fields[kGroup];
          std::memcpy(fields, upper + 4 * g, 4 * sizeof(Sample));
          std::memcpy(fields + 4, lower + 4 * g, 4 * sizeof(Sample));
          for (Sample &field : fields) field = Sample(field - code_minimum(code));
          payload = pack_octet(fields, code_width(code), payload);
        }
        std::memcpy(indices, &word, plan.index_bits);
        indices += plan.index_bits;
      }
    }
    return uint32_t(payload - body);
  }

  const Planes<Sample> &planes_;
  const uint32_t channels_, effort_;
  const TileShape shape_;
  Candidate candidates_[L3_MAX_CHANNELS];
  ChannelCodes codes_;
  alignas(64) Sample residuals_[kPlaneSize];
  alignas(64) Sample red_less_green_[kPlaneSize], blue_less_green_[kPlaneSize], blue_less_mean_[kPlaneSize];
};

template <typename Sample>
uint32_t encode_tile(const Planes<Sample> &planes, uint32_t channels, uint32_t effort, TileShape shape, uint8_t *out) {
  return FastTileEncoder<Sample>(planes, channels, effort, shape).encode(out);
}

}  // namespace
}  // namespace l3::generic
