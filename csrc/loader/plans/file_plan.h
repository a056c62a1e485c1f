// The order of DALI's fn.readers.file.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "plans/sample_order.h"

namespace dali_l3::loader {

/** DALI's default of shuffle_after_epoch_seed, and the seed of the shuffle that random_shuffle begins with. */
inline constexpr int64_t kDaliSeed = 524287;

/** What shuffle_after_epoch is seeded with, beside the number of the epoch. */
struct EpochSeed {
  int64_t value = kDaliSeed;
  bool has_32_bits = false;  ///< as in DALI before 2.2: a generator of 32 bits, seeded with the sum of the two
};

struct FilePlanOptions {
  ShardOptions shards;
  bool random_shuffle = false;       ///< excludes shuffle_after_epoch
  int initial_fill = 1024;           ///< size of random_shuffle's buffer, samples; at least 1
  int64_t seed = 0;                  ///< of random_shuffle
  bool shuffle_after_epoch = false;  ///< implies stick_to_shard
  EpochSeed shuffle_after_epoch_seed = {};
  bool checkpointing = false;  ///< changes the order of shuffle_after_epoch from the second epoch on, as in DALI
};

/** Sample for sample what fn.readers.file of DALI 1.53 to 2.4 delivers. */
class FilePlan final : public EpochPlan {
 public:
  /** @throws std::runtime_error where the options contradict each other or do not suit a catalogue of this size */
  FilePlan(const FilePlanOptions &options, int64_t catalogue_size);

  int64_t epoch_size(int64_t epoch) const override;
  void plan(int64_t epoch, std::vector<PlannedSample> &samples) override;

 private:
  void restart();
  void shuffle_whole(int64_t epoch);
  void plan_next(std::vector<PlannedSample> &samples);
  int shard_of(int64_t epoch) const;

  const FilePlanOptions options_;
  const int64_t size_;
  const bool stick_to_shard_;
  // With shuffle_after_epoch, unless it is found anew for each epoch: the order of the whole catalogue, from which the
  // next one follows.
  std::vector<uint32_t> whole_;
  // With random_shuffle: what a shard gets of the order that it begins with.
  std::vector<uint32_t> part_;
  int part_of_ = -1;          // that shard
  std::minstd_rand0 random_;  // of random_shuffle's buffer; runs on across epochs
  int64_t next_epoch_ = 0;
};

}  // namespace dali_l3::loader
