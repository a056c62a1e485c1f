// How a catalogue is divided into shards, and a shard's epochs into batches: by the rules of DALI's readers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace dali_l3::loader {

/** Largest catalogue: products of two sample counts stay below 2^62. */
inline constexpr int64_t kMaxSamples = INT32_MAX;

/** The arguments of a DALI reader that say which samples of the catalogue form an epoch and how epochs become batches.
 */
struct ShardOptions {
  int shard_id = 0, num_shards = 1;
  bool stick_to_shard = false;  ///< the same shard in every epoch; otherwise the next one, in a circle
  bool pad_last_batch = false;  ///< every epoch begins a batch, and all shards deliver equally many batches
  int batch_size = 1;
  int64_t begun = 0;  ///< samples in the batch in which epoch 0 begins, without padding
};

/** Throws std::runtime_error where the options are out of range for a catalogue of `size` entries. */
inline void check_shards(const ShardOptions &options, int64_t size) {
  const auto require = [](bool condition, const std::string &message) {
    if (!condition) throw std::runtime_error(message);
  };
  require(options.batch_size >= 1,
          "The batch size is " + std::to_string(options.batch_size) + ", but must be at least 1");
  require(options.num_shards >= 1, "num_shards is " + std::to_string(options.num_shards) + ", but must be at least 1");
  require(options.shard_id >= 0 && options.shard_id < options.num_shards,
          "shard_id is " + std::to_string(options.shard_id) +
              ", but must be at least 0 and below num_shards, which is " + std::to_string(options.num_shards));
  require(size >= options.num_shards, "There are fewer samples (" + std::to_string(size) + ") than shards (" +
                                          std::to_string(options.num_shards) + ")");
  require(size <= kMaxSamples, "There are too many samples: " + std::to_string(size));
}

/** First of the catalogue's `size` entries that belongs to a shard; `size` itself for shard `num_shards`. */
inline int64_t shard_start(int64_t shard, int64_t num_shards, int64_t size) { return size * shard / num_shards; }

inline int64_t shard_size(int64_t shard, int64_t num_shards, int64_t size) {
  return shard_start(shard + 1, num_shards, size) - shard_start(shard, num_shards, size);
}

inline int64_t largest_shard(int64_t num_shards, int64_t size) { return (size + num_shards - 1) / num_shards; }

/** Batches of an epoch, the same for all shards. Only with pad_last_batch does an epoch have batches of its own. */
inline int64_t padded_epoch_batches(const ShardOptions &options, int64_t size) {
  return (largest_shard(options.num_shards, size) + options.batch_size - 1) / options.batch_size;
}

/** ReaderMeta's epoch_size_padded: samples of an epoch over all shards, those that DALI adds to make shards equal
 * included. */
inline int64_t padded_epoch_size(const ShardOptions &options, int64_t size) {
  return options.pad_last_batch ? largest_shard(options.num_shards, size) * options.num_shards : size;
}

/** The parts of an epoch that fall into one batch each: at most one at either end is smaller than a batch. */
struct Segments {
  int64_t first = 0;  ///< samples of the part that completes the batch in which the epoch before ended; 0: none
  int64_t full_count = 0, full = 0;  ///< whole batches and their size
  int64_t last = 0;                  ///< samples of the part that begins a batch without filling it; 0: none

  int64_t count() const { return (first > 0) + full_count + (last > 0); }
};

/** Where batch borders cut an epoch of a shard that has `epoch_size` samples in every epoch. */
inline Segments segments_of(const ShardOptions &options, int64_t epoch_size, int64_t epoch) {
  const int64_t batch = options.batch_size;
  const int64_t begun = options.pad_last_batch ? 0 : (options.begun + epoch % batch * (epoch_size % batch)) % batch;
  const int64_t first = begun == 0 ? 0 : std::min(batch - begun, epoch_size), rest = epoch_size - first;
  return {.first = first, .full_count = rest / batch, .full = batch, .last = rest % batch};
}

/** The options with which an epoch, of a shard that has `epoch_size` samples in every epoch, begins `position` samples
 * after the border of a batch. */
inline ShardOptions with_epoch_at(ShardOptions options, int64_t position, int64_t epoch_size, int64_t epoch) {
  const int64_t batch = options.batch_size;
  options.begun = (position % batch + (batch - epoch % batch) * (epoch_size % batch)) % batch;
  return options;
}

}  // namespace dali_l3::loader
