// Epochs in which some samples come more often than others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plans/sample_order.h"
#include "plans/stratified_epoch.h"
#include "plans/weighted_draws.h"

namespace dali_l3::loader {

struct WeightedPlanOptions {
  ShardOptions shards = {};
  int64_t epoch_size = 1;  ///< over all shards
  bool shuffled = true;    ///< otherwise each format comes in catalogue order, and so the samples of a batch
  uint64_t seed = 0;
  uint64_t cache_bytes = 0;    ///< limit of what is held
  bool constant_hits = false;  ///< every batch holds the floor or the ceiling of its share of the epoch's hits
};

/**
 * Every batch holds the formats in the epoch's own proportions.
 *
 * Held in memory, for good, are the samples that the shard draws most often, as many as fit; which of those that are
 * drawn equally often is drawn at random. All their draws are hits, except each sample's first.
 */
class WeightedPlan final : public EpochPlan {
 public:
  /** @param bytes of memory that entries take; together below 2^63 */
  WeightedPlan(const WeightedPlanOptions &options, WeightedDraws draws, const BytesOf &bytes);

  int64_t epoch_size(int64_t) const override { return size_; }
  void plan(int64_t epoch, std::vector<PlannedSample> &samples) override;

  /** On average over many epochs. */
  double hit_ratio() const override { return hit_ratio_; }
  /** Bytes of what is held, at most cache_bytes. */
  uint64_t peak_bytes() const override { return held_bytes_; }

 private:
  void hold(const BytesOf &bytes);
  Stratum stratum_of(const FormatGroup &group);

  const WeightedPlanOptions options_;
  WeightedDraws draws_;
  const int64_t size_;         // of the shard's epochs
  std::vector<bool> is_held_;  // of each entry of the catalogue
  double hit_ratio_ = 0;
  uint64_t held_bytes_ = 0;

  // As of the end of the last epoch planned.
  std::vector<bool> is_read_;  // of each entry of the catalogue: drawn at least once
  int64_t next_epoch_ = 0;
};

}  // namespace dali_l3::loader
