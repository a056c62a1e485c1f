// Epochs in which every batch holds the formats in the shard's own proportions.
#pragma once

#include <cstdint>
#include <vector>

#include "plans/format_groups.h"
#include "plans/sample_order.h"

namespace dali_l3::loader {

/** Nothing is held in memory from one epoch to the next. */
class MixPlan final : public EpochPlan {
 public:
  /**
   * @param groups the shard's, at least one
   * @param shuffled in an order drawn anew for each epoch from the seed, the epoch and the shard; otherwise each format
   * in catalogue order, and so the samples of a batch
   */
  MixPlan(const ShardOptions &options, std::vector<FormatGroup> groups, bool shuffled, uint64_t seed);

  int64_t epoch_size(int64_t) const override { return size_; }
  void plan(int64_t epoch, std::vector<PlannedSample> &samples) override;

 private:
  const ShardOptions options_;
  const std::vector<FormatGroup> groups_;
  const int64_t size_;
  const bool shuffled_;
  const uint64_t seed_;
};

}  // namespace dali_l3::loader
