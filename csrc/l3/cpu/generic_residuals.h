// The residuals of tiles under the predictors, and what their groups need. Plain loops that compilers vectorise.
#pragma once

#include <array>
#include <bit>
#include <numeric>
#include <type_traits>

#include "cpu/generic_decoder.h"
#include "cpu/quartered_plane.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

template <typename Sample>
using Row = Sample[L3_TILE];

// All ones where a row's sample is that of column 0, and where it is within the tile.
template <typename Sample>
struct ColumnMasks {
  alignas(64) Row<Sample> first, inside;

  explicit ColumnMasks(uint32_t width) {
    for (uint32_t i = 0; i < L3_TILE; i++) {
      first[i] = Sample(i == 0 ? ~0 : 0);
      inside[i] = Sample(column_at(i) < width ? ~0 : 0);
    }
  }
};

// The residual of a sample under `predictor`. `row` and `above` point at the sample and the one above it, `first` is
// its column's mask.
template <typename Sample>
[[gnu::always_inline]] inline Sample residual(const Sample *row, const Sample *above, Sample first,
                                              uint32_t predictor) {
  const auto select = [first](Sample if_first, Sample otherwise) {
    return Sample((if_first & first) | (otherwise & ~first));
  };
  const Sample from_above = Sample(row[0] - above[0]), left = Sample(row[0] - neighbour<-1>(row));
  if (predictor == kAbove) return from_above;
  if (predictor == kLeft) return select(from_above, left);
  if (predictor == kPlane) return select(from_above, Sample(left - (above[0] - neighbour<-1>(above))));
  const Sample smooth = average(average(neighbour<-1>(above), neighbour<1>(above)), above[0]),
               smooth_left = average(average(neighbour<-2>(above), above[0]), neighbour<-1>(above)),
               from_smooth = Sample(row[0] - smooth);
  if (predictor == kSmoothAbove) return from_smooth;
  return select(from_smooth, Sample(left - (smooth - smooth_left)));
}

// In row 0 all predictors are the sample to the left, and the residual at (0, 0) is 0: what kLeft gives of a row below
// its like.
template <typename Sample>
void residuals_of_row(const QuarteredPlane<Sample> &plane, uint32_t y, uint32_t predictor,
                      const ColumnMasks<Sample> &masks, Sample *__restrict out) {
  const Sample *row = plane.row(y), *above = plane.row(y ? y - 1 : 0);
  with_predictor(y ? predictor : uint32_t(kLeft), [&](auto constant) {
    for (uint32_t i = 0; i < L3_TILE; i++)
      out[i] = residual(row + i, above + i, masks.first[i], constant) & masks.inside[i];
  });
}

// The residuals under each predictor.
template <typename Sample>
void residuals_of_row(const QuarteredPlane<Sample> &plane, uint32_t y, const ColumnMasks<Sample> &masks,
                      Row<Sample> *__restrict out) {
  if (y == 0) {
    for (uint32_t predictor = 0; predictor < kPredictors; predictor++)
      residuals_of_row(plane, 0, predictor, masks, out[predictor]);
    return;
  }
  const Sample *row = plane.row(y), *above = plane.row(y - 1);
  for (uint32_t i = 0; i < L3_TILE; i++) {
    const auto take = [&](uint32_t predictor) {
      out[predictor][i] = residual(row + i, above + i, masks.first[i], predictor) & masks.inside[i];
    };
    take(kAbove);
    take(kSmoothAbove);
    take(kLeft);
    take(kPlane);
    take(kSmoothPlane);
  }
}

// Of the residuals v of the groups of some row pairs, the greatest v, and the greatest -v; 0 if there is none above.
template <typename Sample, uint32_t groups>
struct GroupRanges {
  Sample above[groups], below[groups];
};

// Finds those of a row pair.
template <typename Sample>
inline void find_ranges(const Sample *upper, const Sample *lower, Sample *__restrict above, Sample *__restrict below) {
  using Signed = std::make_signed_t<Sample>;
  alignas(64) Row<Signed> greatest, least;
  for (uint32_t i = 0; i < L3_TILE; i++) {
    greatest[i] = std::max(Signed(upper[i]), Signed(lower[i]));
    least[i] = std::min(Signed(upper[i]), Signed(lower[i]));
  }
  // Of the quarters, then of 0.
  for (uint32_t i = 0; i < 2 * kQuarter; i++) {
    greatest[i] = std::max(greatest[i], greatest[2 * kQuarter + i]);
    least[i] = std::min(least[i], least[2 * kQuarter + i]);
  }
  for (uint32_t g = 0; g < kQuarter; g++) {
    above[g] = Sample(std::max(std::max(greatest[g], greatest[kQuarter + g]), Signed(0)));
    below[g] = Sample(-std::min(std::min(least[g], least[kQuarter + g]), Signed(0)));
  }
}

// A number of as many bits as a group's octet has bytes. Width n holds -2^(n-1) … 2^(n-1) - 1 or 1 - 2^(n-1) …
// 2^(n-1): twice the greater of both sides, or one less, as one of the sides may reach further than the other.
template <typename Sample>
[[gnu::always_inline]] inline Sample magnitude(Sample above, Sample below) {
  return Sample(2 * std::max(above, below) - (above != below));
}

// The number of bits of values below 2^24, as the exponent of a float: unlike a count of leading zeros, all instruction
// sets have it in vectors.
[[gnu::always_inline]] inline int32_t bit_width_of(int32_t value) {
  const int32_t exponent = (std::bit_cast<int32_t>(float(value)) >> 23) - 126;
  return exponent > 0 ? exponent : 0;
}

// The tightest code of each of `count` groups: the even one of its width only if the range reaches 2^(n-1).
template <typename Sample>
inline void find_codes(const Sample *above, const Sample *below, uint32_t count, uint8_t *__restrict codes) {
  for (uint32_t i = 0; i < count; i++) {
    const Sample magnitude = generic::magnitude(above[i], below[i]);
    const bool even = above[i] > below[i] && (above[i] & (above[i] - 1)) == 0;
    codes[i] = uint8_t(2 * bit_width_of(magnitude) - (magnitude != 0) + even);
  }
}

// The bytes of the octets of some row pairs, under each predictor.
using PredictorCosts = std::array<uint32_t, kPredictors>;

inline uint32_t best_predictor(const PredictorCosts &costs) {
  return uint32_t(std::min_element(costs.begin(), costs.end()) - costs.begin());
}

// The costs of row pairs `pair`, `pair + step`, ….
template <typename Sample>
PredictorCosts predictor_costs(const QuarteredPlane<Sample> &plane, TileShape shape, const ColumnMasks<Sample> &masks,
                               uint32_t pair, uint32_t step) {
  int32_t bytes[kPredictors * kQuarter] = {};  // of the octets of each group
  for (; pair < shape.row_pairs(); pair += step) {
    alignas(64) Row<Sample> upper[kPredictors], lower[kPredictors];
    residuals_of_row(plane, 2 * pair, masks, upper);
    const bool has_lower = 2 * pair + 1 < shape.height;
    if (has_lower) residuals_of_row(plane, 2 * pair + 1, masks, lower);
    Sample magnitudes[kPredictors * kQuarter];
    for (uint32_t predictor = 0; predictor < kPredictors; predictor++) {
      GroupRanges<Sample, kQuarter> ranges;
      find_ranges(upper[predictor], has_lower ? lower[predictor] : upper[predictor], ranges.above, ranges.below);
      for (uint32_t g = 0; g < kQuarter; g++)
        magnitudes[predictor * kQuarter + g] = magnitude(ranges.above[g], ranges.below[g]);
    }
    for (uint32_t i = 0; i < kPredictors * kQuarter; i++) bytes[i] += bit_width_of(magnitudes[i]);
  }
  PredictorCosts costs;
  for (uint32_t predictor = 0; predictor < kPredictors; predictor++) {
    const int32_t *const groups = bytes + predictor * kQuarter;
    costs[predictor] = uint32_t(std::accumulate(groups, groups + kQuarter, 0));
  }
  return costs;
}

}  // namespace
}  // namespace l3::generic
