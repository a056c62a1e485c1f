// Stratified sampling without replacement: every batch of an epoch holds the formats, and of each its hits and its
// misses, in the epoch's own proportions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plans/apportion.h"
#include "plans/random.h"
#include "plans/sample_order.h"
#include "plans/shards.h"

namespace dali_l3::loader {

/** The samples of one format, in the orders in which an epoch delivers them. */
struct Stratum {
  std::vector<uint32_t> hits = {}, misses = {};
  int64_t kept = 0;  ///< samples for the next epoch: as many as there are hits, if there are any
};

/** Deals the samples of an epoch to the segments that batch borders cut it into. */
class StratifiedEpoch {
 public:
  struct Segment {
    std::span<PlannedSample> samples;     ///< by stratum, of each its hits and then its misses; keep is yet to be set
    std::span<const CacheCounts> counts;  ///< of each stratum: samples that are kept, and others
  };

  /** @param strata at least one; their samples add up to those of the segments */
  StratifiedEpoch(std::vector<Stratum> strata, const Segments &segments);

  /** Whether all segments have been dealt. */
  bool done() const { return segment_ == segments_; }

  /** Appends the next segment to `samples`. What it returns is valid until the next call. */
  Segment next(std::vector<PlannedSample> &samples);

 private:
  struct Source {
    Stratum stratum;
    size_t next_hit = 0, next_miss = 0;
  };

  std::vector<Source> sources_;
  const int64_t segments_;
  int64_t segment_ = 0;
  Apportionment apportionment_;
};

/**
 * Replaces `samples` by those of an epoch, dealt to its segments: shuffled, and so the samples of each segment, or each
 * stratum as it is and the samples of each segment by entry.
 */
void deal_epoch(std::vector<Stratum> strata, const Segments &segments, bool shuffled, Random &random,
                std::vector<PlannedSample> &samples);

}  // namespace dali_l3::loader
