// Constant proportions in whole numbers: how many samples of each format, hits and misses, every batch of an epoch
// holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plans/shards.h"

namespace dali_l3::loader {

/** Samples of one format. */
struct CacheCounts {
  int64_t hits = 0, misses = 0;
};

/**
 * Spreads items of several kinds evenly over a number of steps: every step gets equally many items, at most one of a
 * kind, and each kind stays near its exact rate all the time.
 */
class EvenSpread {
 public:
  /**
   * @param totals items of each kind, at most `steps`; together a multiple of `steps`
   * @param lead of the first kind: by how many items, times `steps`, it is ahead of the others; within -steps … steps
   */
  EvenSpread(std::vector<int64_t> totals, int64_t steps, int64_t lead = 0);

  /** Which kinds the next step gets an item of. At most `steps` calls. */
  const std::vector<bool> &next();

 private:
  int64_t lag(size_t kind) const { return totals_[kind] * step_ - given_[kind] * steps_ + (kind == 0 ? lead_ : 0); }

  std::vector<int64_t> totals_;
  int64_t steps_, lead_, items_, step_ = 0;  // items_: of a step
  std::vector<int64_t> given_;               // items of each kind so far
  std::vector<size_t> kinds_;                // all, in an order of precedence
  std::vector<bool> chosen_;
};

/**
 * The counts of every segment of an epoch.
 *
 * With n samples of a kind among an epoch's N, a segment of s samples has the exact share n s / N of them. For every
 * format, its hits and its misses, every segment gets the floor or the ceiling of that share; the counts of a segment
 * add up to s and those of all segments to n. What is rounded off is carried over, so that the sums over the segments
 * so far stay near the exact ones too. Formats of which every batch has equally many hits get one more in turns, not
 * all in the same batches.
 */
class Apportionment {
 public:
  /** @param totals of each format in the epoch, at least one; they add up to the samples of the segments, at most
   * kMaxSamples */
  Apportionment(std::span<const CacheCounts> totals, const Segments &segments);

  /** The counts of each format in the next segment; at most segments.count() calls. */
  const std::vector<CacheCounts> &next();

 private:
  // A format in the whole batches. Each holds the floors of its hits and misses and up to two more.
  struct Format {
    CacheCounts floors;
    int64_t floor;      // of hits and misses together
    EvenSpread single;  // whether one more is a hit or a miss, in the batches that hold just one more
  };

  const Segments segments_;
  int64_t segment_ = 0;
  std::vector<CacheCounts> first_, last_, counts_;
  std::vector<Format> formats_;
  EvenSpread extra_;  // formats of which a whole batch holds the ceiling
};

}  // namespace dali_l3::loader
