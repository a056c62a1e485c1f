// DALI's order, transcribed.

#include "plans/file_plan.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "cancellation.h"

namespace dali_l3::loader {

// DALI's order rests on how std::shuffle and std::uniform_int_distribution are written in the library that DALI is
// built with.
static_assert(_GLIBCXX_RELEASE >= 11, "DALI's order needs the random distributions of libstdc++ 11 or newer");

namespace {

std::vector<uint32_t> catalogue_order(int64_t size) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

FilePlan::FilePlan(const FilePlanOptions &options, int64_t catalogue_size)
    : options_(options),
      size_(catalogue_size),
      stick_to_shard_(options.shards.stick_to_shard || options.shuffle_after_epoch) {
  check_shards(options.shards, size_);
  if (options.random_shuffle && options.shuffle_after_epoch) {
    throw std::runtime_error("shuffle_after_epoch and random_shuffle exclude each other");
  }
  if (options.shards.stick_to_shard && options.shuffle_after_epoch) {
    throw std::runtime_error("shuffle_after_epoch and stick_to_shard exclude each other");
  }
  if (options.random_shuffle && options.initial_fill < 1) throw std::runtime_error("initial_fill must be at least 1");
  restart();
}

void FilePlan::restart() {
  std::seed_seq seed{options_.seed};  // first: it may throw
  whole_.clear();
  random_.seed(seed);
  next_epoch_ = 0;
}

// Shuffles the catalogue for an epoch of shuffle_after_epoch.
void FilePlan::shuffle_whole(int64_t epoch) {
  if (whole_.empty() || options_.checkpointing) whole_ = catalogue_order(size_);
  const auto number = static_cast<uint64_t>(epoch) + 1;
  const auto seed = static_cast<uint64_t>(options_.shuffle_after_epoch_seed.value);
  if (options_.shuffle_after_epoch_seed.has_32_bits)
    std::shuffle(whole_.begin(), whole_.end(), std::mt19937(static_cast<uint32_t>(seed + number)));
  else
    std::shuffle(whole_.begin(), whole_.end(), std::mt19937_64(seed + (number << 32)));
}

int FilePlan::shard_of(int64_t epoch) const {
  const ShardOptions &shards = options_.shards;
  return stick_to_shard_ ? shards.shard_id : static_cast<int>((shards.shard_id + epoch) % shards.num_shards);
}

int64_t FilePlan::epoch_size(int64_t epoch) const {
  return shard_size(shard_of(epoch), options_.shards.num_shards, size_);
}

void FilePlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  const bool follows_from_the_one_before =
      options_.random_shuffle || (options_.shuffle_after_epoch && !options_.checkpointing);
  if (!follows_from_the_one_before)
    next_epoch_ = epoch;
  else if (epoch < next_epoch_)
    restart();
  while (next_epoch_ <= epoch) {
    throw_if_cancelled();
    plan_next(samples);
  }
}

void FilePlan::plan_next(std::vector<PlannedSample> &samples) {
  const int shard = shard_of(next_epoch_);
  const int64_t size = epoch_size(next_epoch_), start = shard_start(shard, options_.shards.num_shards, size_);
  samples.assign(size, {});
  if (options_.shuffle_after_epoch) {
    shuffle_whole(next_epoch_);
    for (int64_t i = 0; i < size; i++) samples[i].entry = whole_[start + i];
    if (options_.checkpointing) whole_ = std::vector<uint32_t>();
  } else if (options_.random_shuffle) {
    if (part_of_ != shard) {
      std::vector<uint32_t> order = catalogue_order(size_);
      std::shuffle(order.begin(), order.end(), std::mt19937(kDaliSeed));
      part_.assign(order.begin() + start, order.begin() + start + size);
      part_of_ = shard;
    }
    for (int64_t i = 0; i < size; i++) samples[i].entry = part_[i];
  } else {
    for (int64_t i = 0; i < size; i++) samples[i].entry = static_cast<uint32_t>(start + i);
  }

  // The buffer holds the next initial_fill samples of the shard. DALI delivers one of them at random and the oldest
  // takes its place.
  if (options_.random_shuffle) {
    for (int64_t i = 0; i < size; i++) {
      const int buffered = static_cast<int>(std::min<int64_t>(options_.initial_fill, size - i));
      std::swap(samples[i], samples[i + std::uniform_int_distribution<>(0, buffered - 1)(random_)]);
    }
  }
  next_epoch_++;
}

}  // namespace dali_l3::loader
