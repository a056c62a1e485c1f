// Which samples, in which order, the arguments of a reader ask for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments/weighting.h"
#include "dataset/catalogue.h"
#include "plans/sample_order.h"
#include "plans/shards.h"
#include "settings.h"

namespace dali_l3::loader {

/** How a reader samples its dataset. */
struct Sampling {
  ShardOptions shards;
  bool needs_formats = false, needs_sizes = false;  ///< of every file, in the catalogue
  bool shuffled = false;
  bool follows_sizes = false;  ///< whether the order follows from sizes
  uint64_t cache_bytes = 0;    ///< memory for what the plan keeps
  WeightingArguments weighting = {};
  /** The plan of a shard: `shards` is the member, or that of another shard, or with epochs that begin elsewhere. */
  std::function<std::unique_ptr<EpochPlan>(const Catalogue &catalogue, int64_t seed, const ShardOptions &shards)>
      make_plan;
  Settings settings = {};  ///< the arguments that the order follows from, besides seed and shard_id
  /** The sampling of the same reader with other settings. @throws std::invalid_argument where they are not its own */
  std::function<Sampling(const Settings &settings)> with;
  std::vector<std::string> warnings = {};  ///< a line each: arguments that have no effect

  /** Samples of an epoch over all shards. */
  int64_t epoch_size(const Catalogue &catalogue) const { return weighting.size(catalogue); }
};

/** Whether samples are drawn by weights, by Sampling::settings: the rest of such an epoch is not dealt anew. */
bool draws_by_weights(const Settings &settings);

/** The arguments of readers.multi_format, which are those of fn.readers.file, `mix` and those of weighting. */
struct MultiFormatArguments {
  ShardOptions shards;
  WeightingArguments weighting = {};
  std::optional<std::string> mix = {};
  bool random_shuffle = false, shuffle_after_epoch = false;
  std::optional<int> initial_fill = {};
  std::optional<int64_t> shuffle_after_epoch_seed = {};
  bool epoch_seed_has_32_bits = false;  ///< see EpochSeed
  bool checkpointing = false;           ///< of the pipeline
};

/** @throws std::invalid_argument where an argument has no such value */
Sampling multi_format_sampling(const MultiFormatArguments &arguments);

/** The arguments of readers.liquid. */
struct LiquidArguments {
  ShardOptions shards;
  WeightingArguments weighting = {};
  std::string policy = "liquid", read_order = "random";
  int64_t cache_size = 0;  ///< bytes
  bool random_shuffle = true;
  bool has_initial_fill = false, has_shuffle_after_epoch_seed = false;  ///< whether these are given
};

/** @throws std::invalid_argument where an argument has no such value, or another forbids it */
Sampling liquid_sampling(const LiquidArguments &arguments);

}  // namespace dali_l3::loader
