// What a reader did: counted per batch and per epoch.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "dataset/file_format.h"
#include "input/storage.h"

namespace dali_l3::loader {

/** Samples of one format. */
struct FormatCounts {
  int64_t hits = 0;    ///< delivered from memory
  int64_t misses = 0;  ///< delivered from disk
};

/** What was delivered of one epoch; in a batch or as a whole. Padding counts for nothing. */
struct BatchPart {
  int64_t batch = 0;  ///< its number; of an epoch, that of the latest batch
  int64_t epoch = 0;
  int64_t samples = 0;
  int64_t files_read = 0;  ///< from disk, companions and the files tried in place of bad ones included
  int64_t bytes_read = 0;
  std::array<FormatCounts, kFormats> formats{};  ///< by FileFormat
  int64_t bad_samples = 0;    ///< whose files could not be read; another was delivered in the place of each
  int64_t current_bytes = 0;  ///< in memory, for this epoch, after the last batch counted here
  int64_t next_bytes = 0;     ///< in memory, kept for the next epoch
  double wait_seconds = 0;    ///< of the consumer, for files that were not in memory yet
};

struct Statistics {
  /** At most so many of the latest parts are remembered, in either list. */
  static constexpr size_t kRemembered = 4096;

  std::deque<BatchPart> epochs;     ///< one for each epoch; the last one is under way
  std::deque<BatchPart> batches;    ///< one for each batch, two or more where it crosses an epoch's border
  double hit_ratio = 0;             ///< the plan's; see EpochPlan
  int64_t rest_batches = 0;         ///< the first batches, which hold what another world has left of an epoch
  int64_t cache_bytes_planned = 0;  ///< the most that the plan keeps within cache_size in the first three epochs
  int64_t cache_bytes_used = 0;  ///< of cache_size: held for an epoch, or evicted and not yet released by the pipeline
  int64_t cache_bytes_peak = 0;
  int64_t other_bytes_used = 0;  ///< of files in memory beyond that: what had no room in cache_size when it was read
  int64_t other_bytes_peak = 0;
  int64_t idle_bytes = 0;      ///< of memory that is used no more and kept for files to come
  StorageCounts storage = {};  ///< what buckets have been asked for, since the dataset was listed and by listing it

  void add(const BatchPart &part);
};

/** JSON: an object with the members of Statistics; formats by their names, those without samples left out. */
std::string to_json(const Statistics &statistics);

}  // namespace dali_l3::loader
