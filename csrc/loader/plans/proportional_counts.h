// Whole numbers in proportion to weights, epoch after epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dali_l3::loader {

/**
 * How many samples of each kind every epoch draws.
 *
 * Of a kind whose share of an epoch is s = total * weight / (sum of the weights), every epoch draws the floor or the
 * ceiling of s, and all kinds together `total`. Who gets what is rounded off changes from epoch to epoch so that the
 * sum over n epochs stays near n * s: the tests have found it less than one away. (Earliest deadline first, with the
 * deadlines of proportionate fairness: Baruah, Cohen, Plaxton and Varvel 1996.)
 */
class ProportionalCounts {
 public:
  /** @param weights finite, not negative, one at least positive; below 2^-62 of the largest they count as 0
   * @param total 1 … kMaxSamples */
  ProportionalCounts(std::span<const double> weights, int64_t total);

  /** The counts of the next epoch, by kind. */
  const std::vector<int64_t> &next();

 private:
  __extension__ typedef __int128 Wide;  // exact for a weight times a number of samples

  // A kind whose share is no whole number.
  struct Fraction {
    uint32_t kind;
    uint64_t precedence;  // among equals
    Wide share;           // the fraction, in units of 1 / whole_
    Wide due = 0;         // what the kind has not been given yet, in the same units
  };
  struct Candidate {
    bool waits;       // what it has been given is ahead of its share
    double deadline;  // epochs until it would lag behind by a whole sample
    uint64_t precedence;
    size_t fraction;
  };

  Wide whole_ = 0;
  int64_t extras_;               // samples of an epoch beyond the floors
  std::vector<int64_t> floors_;  // of each kind's share
  std::vector<Fraction> fractions_;
  std::vector<Candidate> candidates_;
  std::vector<int64_t> counts_;
};

}  // namespace dali_l3::loader
