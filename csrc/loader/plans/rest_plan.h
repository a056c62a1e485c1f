// What the shards of an earlier world have left of an epoch, dealt to other shards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dataset/file_format.h"
#include "plans/sample_order.h"

namespace dali_l3::loader {

/** What a world has left of the epochs that it has begun. */
struct Rest {
  int64_t first_epoch = 0;  ///< that is not complete
  /** Of this epoch and those after it of which any shard has delivered something: the entries that none has delivered,
   * ascending. It is one epoch at most, unless shards differ in size and are not padded. */
  std::vector<std::vector<uint32_t>> epochs;

  bool operator==(const Rest &) const = default;
};

/**
 * The rest after each of `shards` shards, at least one, has delivered `batches` batches.
 *
 * @param order_of the order of a shard
 * @param aligned whether all shards end their epochs with the same batch
 * @throws std::runtime_error if there are no such batches, or the shards are too many epochs apart
 */
Rest find_rest(int shards, bool aligned, int64_t batches,
               const std::function<std::unique_ptr<SampleOrder>(int shard_id)> &order_of);

/** A shard's part of the rest, nothing of it held in memory, and then the epochs of another plan. */
class RestPlan final : public EpochPlan {
 public:
  /**
   * @param formats of every entry of the catalogue: each batch holds them in the proportions of the rest
   * @param shuffled in an order drawn from the seed, the epoch and the shard, otherwise in that of the catalogue
   * @param make_next makes the plan of what comes then, with options that say where its epochs begin
   */
  RestPlan(Rest rest, const ShardOptions &options, std::vector<FileFormat> formats, bool shuffled, uint64_t seed,
           const std::function<std::unique_ptr<EpochPlan>(const ShardOptions &options)> &make_next);

  int64_t first_epoch() const override { return rest_.first_epoch; }
  int64_t epoch_size(int64_t epoch) const override;
  std::optional<int64_t> total_size(int64_t epoch) const override;
  void plan(int64_t epoch, std::vector<PlannedSample> &samples) override;

  double hit_ratio() const override { return next_->hit_ratio(); }
  uint64_t peak_bytes() const override { return next_->peak_bytes(); }

 private:
  int64_t first_next_epoch() const { return rest_.first_epoch + static_cast<int64_t>(rest_.epochs.size()); }
  int64_t position_of(int64_t epoch) const;

  const Rest rest_;
  const ShardOptions options_;
  const std::vector<FileFormat> formats_;
  const bool shuffled_;
  const uint64_t seed_;
  std::unique_ptr<EpochPlan> next_;
};

}  // namespace dali_l3::loader
