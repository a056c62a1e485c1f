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
  order_.resize(size_);
  std::iota(order_.begin(), order_.end(), 0);
  if (options_.random_shuffle) {
    shuffle(std::mt19937(kDaliSeed));
  }
  std::seed_seq seed{options_.seed};
  random_.seed(seed);
  next_epoch_ = 0;
}

template <typename Generator>
void FilePlan::shuffle(Generator generator) {
  std::shuffle(order_.begin(), order_.end(), generator);
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
  if (options_.shuffle_after_epoch) {
    if (options_.checkpointing) std::iota(order_.begin(), order_.end(), 0);
    const int64_t number = next_epoch_ + 1;
    const auto [seed, has_32_bits] = options_.shuffle_after_epoch_seed;
    if (has_32_bits)
      shuffle(std::mt19937(static_cast<uint32_t>(static_cast<uint64_t>(seed) + static_cast<uint64_t>(number))));
    else
      shuffle(std::mt19937_64(static_cast<uint64_t>(seed) + (static_cast<uint64_t>(number) << 32)));
  }
  const int64_t size = epoch_size(next_epoch_);
  const int64_t start = shard_start(shard_of(next_epoch_), options_.shards.num_shards, size_);
  samples.assign(size, {});
  for (int64_t i = 0; i < size; i++) samples[i].entry = order_[start + i];

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
