// The order in which a reader delivers samples: epochs come from a plan, batches are cut from them here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plans/shards.h"

namespace dali_l3::loader {

/** One place in a batch. */
struct PlannedSample {
  uint32_t entry = 0;  ///< index into the catalogue's entries
  /** Held in memory since it was last kept, perhaps earlier in the same batch; not in memory if it comes for the first
   * time. */
  bool hit : 1 = false;
  bool keep : 1 = false;  ///< to be held in memory until it comes again
  /** Repeats the sample before it, which may be in the batch before; neither hit nor keep. */
  bool padding : 1 = false;
  uint32_t epoch : 29 = 0;  ///< 0-based; that of the padded sample for padding
};
static_assert(sizeof(PlannedSample) == 8);  // there is one for each sample of a shard

/** Bytes of memory that an entry of the catalogue takes. */
using BytesOf = std::function<uint64_t(uint32_t entry)>;

/** In the place of the next epoch's number, while an epoch that follows from the one before is found. Whoever finds it
 * there later begins anew: planning has ended with an exception, such as std::bad_alloc. */
inline constexpr int64_t kBetweenEpochs = INT64_MAX;

/** What one reader delivers, epoch by epoch: a pure function of the plan's options and the epoch's number, also after
 * plan() has thrown. */
class EpochPlan {
 public:
  virtual ~EpochPlan() = default;

  /** Number of the epoch that comes first. */
  virtual int64_t first_epoch() const { return 0; }

  /** Samples of an epoch, at least 1, without padding. */
  virtual int64_t epoch_size(int64_t epoch) const = 0;

  /** Samples of an epoch over all shards, where these are not the whole catalogue. If there are fewer than shards, an
   * epoch_size() may be 0. */
  virtual std::optional<int64_t> total_size(int64_t /*epoch*/) const { return {}; }

  /** Replaces `samples` by those of an epoch, all but `epoch` set; by one of padding, to be repeated, if it has none.
   * Cheapest for the epoch after the one planned last. */
  virtual void plan(int64_t epoch, std::vector<PlannedSample> &samples) = 0;

  /** The part of the samples that are hits from the second epoch on, from 0 (nothing fits) to 1 (everything does). */
  virtual double hit_ratio() const { return 0; }
  /** The most bytes that are held after any batch of the epochs planned so far. */
  virtual uint64_t peak_bytes() const { return 0; }
};

/** The endless sequence of batches of one reader: a pure function of the options and the batch's number. */
class SampleOrder {
 public:
  /** @param catalogue_size number of entries, of all shards; options and plan suit it */
  SampleOrder(const ShardOptions &options, int64_t catalogue_size, std::unique_ptr<EpochPlan> plan);

  /** Replaces `batch` by the next one, always of batch_size samples. If that throws, such as std::bad_alloc, the batch
   * is still the next one. */
  void next_batch(std::vector<PlannedSample> &batch);

  /** Makes batch number `batch` (0-based) the next one. Throws std::runtime_error where there can be no such batch.
   * Whatever it throws, the next one is still that of before. */
  void seek(int64_t batch);

  /** Where a batch begins. */
  struct Place {
    int64_t epoch, position;  ///< `position` samples, with padding, are before it in its epoch
  };
  /** Throws as seek(). */
  Place place_of(int64_t batch) const;

  /** The first batches that hold samples of epochs which are not the whole catalogue; see EpochPlan::total_size(). */
  int64_t rest_batches() const;

  const EpochPlan &plan() const { return *plan_; }
  EpochPlan &plan() { return *plan_; }

 private:
  int64_t padded_size(int64_t epoch) const;
  void plan_epoch(int64_t epoch);

  const ShardOptions options_;
  const int64_t catalogue_size_;
  const std::unique_ptr<EpochPlan> plan_;
  Place next_;  // that next_batch() begins at

  static constexpr int64_t kNone = -1;
  int64_t planned_ = kNone;             // epoch; none also after planning has failed
  std::vector<PlannedSample> samples_;  // of it
  int64_t epoch_end_ = 0;               // of them, with padding
};

}  // namespace dali_l3::loader
