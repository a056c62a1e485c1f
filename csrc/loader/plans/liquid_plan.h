// Liquid's sampling: of every format, each batch takes a constant part from memory and leaves as many samples in memory
// for the next epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plans/apportion.h"
#include "plans/format_groups.h"
#include "plans/random.h"
#include "plans/sample_order.h"
#include "plans/stratified_epoch.h"

namespace dali_l3::loader {

struct LiquidPlanOptions {
  ShardOptions shards;
  uint64_t cache_bytes = 0;  ///< limit of what is held
  uint64_t seed = 0;
  bool sequential = false;  ///< what is read from disk comes in catalogue order, not in one drawn anew for each epoch
};

/**
 * Each epoch hits the samples that the one before has kept, and misses the others.
 *
 * Of a format with n samples, every epoch but the first hits floor(h n), with one hit ratio h for all formats. Every
 * batch holds the floor or the ceiling of each format's share, of its hits and of its misses, and keeps as many samples
 * of a format as it has hits of it (in the first epoch: as it would have), chosen at random among all samples of the
 * format in the batch. The samples of a batch are shuffled.
 *
 * Held after a batch are the samples kept for the rest of its epoch and for the next one. With the ratio h they stay
 * within the limit for three epochs; with some ratio that is larger by at most 1 / kRatioSteps, or by 1 / (samples of
 * the shard) if that is more, they would not. Where a later epoch would pass the limit, the batch keeps more of its
 * hits and fewer of its misses, so the limit holds for ever.
 */
class LiquidPlan final : public EpochPlan {
 public:
  /** How closely h is found: to 1 / kRatioSteps. */
  static constexpr int64_t kRatioSteps = 10'000;

  /**
   * @param groups the shard's, at least one
   * @param bytes of memory that entries take; together below 2^63
   */
  LiquidPlan(const LiquidPlanOptions &options, const std::vector<FormatGroup> &groups, const BytesOf &bytes);

  int64_t epoch_size(int64_t) const override { return size_; }
  void plan(int64_t epoch, std::vector<PlannedSample> &samples) override;

  /** Below h by less than a sample of each format. */
  double hit_ratio() const override;
  /** Samples of each of the groups that every epoch keeps. */
  const std::vector<int64_t> &held() const { return held_; }
  /** At most cache_bytes; of the first three epochs at least. */
  uint64_t peak_bytes() const override { return static_cast<uint64_t>(peak_bytes_); }

 private:
  enum class Purpose { order, rehearsal };

  void find_ratio();
  int64_t guess_ratio(uint64_t total_units) const;
  bool first_epochs_fit(int64_t ratio);
  void restart(int64_t ratio);
  bool plan_next(std::vector<PlannedSample> &samples, Purpose purpose);
  std::vector<Stratum> draw_strata(bool first_epoch, Random &random) const;
  void set_keep(PlannedSample &sample, bool keep) { kept_[sample.entry] = sample.keep = keep; }
  int64_t size_of(const PlannedSample &sample) const { return static_cast<int64_t>(units_[sample.entry] * unit_); }
  void keep_more_hits(std::span<PlannedSample> segment, std::span<const CacheCounts> counts);

  const LiquidPlanOptions options_;
  // While an epoch is planned, entries are their numbers in the shard: one group after the other. @{
  std::vector<uint32_t> entries_;  // of the catalogue
  std::vector<size_t> ends_;       // of each group
  std::vector<uint32_t> units_;    // of memory
  uint64_t unit_ = 1;              // bytes
  // @}
  const int64_t size_;  // samples of the shard
  int64_t ratio_ = 0;   // h in units of 1 / size_
  std::vector<int64_t> held_;

  // As of the end of the last epoch planned.
  int64_t next_epoch_ = 0;
  std::vector<bool> kept_;  // of every entry: to be hit in the next epoch
  int64_t held_bytes_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace dali_l3::loader
