// Rounding of shares in turns.

#include "plans/proportional_counts.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "plans/random.h"

namespace dali_l3::loader {
namespace {

// The largest weight as an integer has this many bits. With 2^31 kinds and samples, products fit into 124 bits.
constexpr int kBits = 62;

}  // namespace

ProportionalCounts::ProportionalCounts(std::span<const double> weights, int64_t total) : extras_(total) {
  int exponent;
  std::frexp(*std::max_element(weights.begin(), weights.end()), &exponent);
  std::vector<int64_t> integers;
  for (const double weight : weights) {
    integers.push_back(static_cast<int64_t>(std::ldexp(weight, kBits - exponent)));
    whole_ += integers.back();
  }
  for (size_t kind = 0; kind < weights.size(); kind++) {
    const Wide share = Wide{integers[kind]} * total;
    floors_.push_back(static_cast<int64_t>(share / whole_));
    extras_ -= floors_.back();
    if (share % whole_ != 0) fractions_.push_back({static_cast<uint32_t>(kind), Random{kind}.next(), share % whole_});
  }
}

const std::vector<int64_t> &ProportionalCounts::next() {
  candidates_.clear();
  for (size_t i = 0; i < fractions_.size(); i++) {
    Fraction &fraction = fractions_[i];
    fraction.due += fraction.share;
    candidates_.push_back({fraction.due <= 0,
                           static_cast<double>(whole_ - fraction.due) / static_cast<double>(fraction.share),
                           fraction.precedence, i});
  }
  // Fractions are below 1 and add up to the extras, so there are more candidates than extras, or neither.
  std::nth_element(candidates_.begin(), candidates_.begin() + extras_, candidates_.end(),
                   [](const Candidate &a, const Candidate &b) {
                     return std::tie(a.waits, a.deadline, a.precedence, a.fraction) <
                            std::tie(b.waits, b.deadline, b.precedence, b.fraction);
                   });
  counts_ = floors_;
  for (int64_t i = 0; i < extras_; i++) {
    Fraction &chosen = fractions_[candidates_[static_cast<size_t>(i)].fraction];
    counts_[chosen.kind]++;
    chosen.due -= whole_;
  }
  return counts_;
}

}  // namespace dali_l3::loader
