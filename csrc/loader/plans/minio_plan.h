// The policy of MinIO in CoorDL: a fixed random part of the shard stays in memory for good.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plans/mix_plan.h"

namespace dali_l3::loader {

/** The order of a shuffled MixPlan. What is held is read in the first epoch and hit in all others, however many a batch
 * has of it. */
class MinioPlan final : public EpochPlan {
 public:
  /**
   * @param groups the shard's, at least one
   * @param bytes of memory that entries take; together below 2^63
   * @param catalogue_size number of entries, of all shards
   * @param cache_bytes limit of what is held
   */
  MinioPlan(const ShardOptions &options, std::vector<FormatGroup> groups, const BytesOf &bytes, size_t catalogue_size,
            uint64_t cache_bytes, uint64_t seed);

  int64_t epoch_size(int64_t epoch) const override { return mix_.epoch_size(epoch); }
  void plan(int64_t epoch, std::vector<PlannedSample> &samples) override;

  double hit_ratio() const override;
  /** Bytes of what is held, at most cache_bytes. */
  uint64_t peak_bytes() const override { return held_bytes_; }
  /** Held samples of each of the groups. */
  const std::vector<int64_t> &held() const { return held_; }

 private:
  std::vector<bool> is_held_;  // of each entry of the catalogue
  std::vector<int64_t> held_;
  uint64_t held_bytes_ = 0;
  MixPlan mix_;
};

}  // namespace dali_l3::loader
