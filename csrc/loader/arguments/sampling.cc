// Arguments to plans.

#include "arguments/sampling.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "input/arena.h"
#include "plans/file_plan.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "plans/minio_plan.h"
#include "plans/mix_plan.h"
#include "plans/weighted_plan.h"

namespace dali_l3::loader {
namespace {

std::vector<FormatGroup> groups_of(const Catalogue &catalogue, const ShardOptions &shards, bool draw) {
  std::vector<FileFormat> formats;
  formats.reserve(catalogue.entries.size());
  for (const Entry &entry : catalogue.entries) formats.push_back(entry.format);
  return format_groups(formats, shards, draw);
}

// Bytes of memory that each entry takes up when it is held.
std::vector<uint64_t> memory_of(const Catalogue &catalogue) {
  std::vector<uint64_t> bytes;
  bytes.reserve(catalogue.entries.size());
  for (const Entry &entry : catalogue.entries) {
    bytes.push_back(extents(entry.file.size));
    for (const File &companion : entry.companions) bytes.back() += extents(companion.size);
  }
  return bytes;
}

// The order of fn.readers.file.
Sampling file_sampling(const MultiFormatArguments &arguments) {
  FilePlanOptions options;
  options.shards = arguments.shards;
  options.random_shuffle = arguments.random_shuffle;
  options.initial_fill = arguments.initial_fill.value_or(options.initial_fill);
  options.shuffle_after_epoch = arguments.shuffle_after_epoch;
  options.shuffle_after_epoch_seed = arguments.shuffle_after_epoch_seed.value_or(options.shuffle_after_epoch_seed);
  options.checkpointing = arguments.checkpointing;
  Sampling sampling;
  sampling.shards = arguments.shards;
  sampling.shards.stick_to_shard |= arguments.shuffle_after_epoch;
  sampling.make_plan = [options](const Catalogue &catalogue, int64_t seed) {
    FilePlanOptions seeded = options;
    seeded.seed = seed;
    return std::make_unique<FilePlan>(seeded, static_cast<int64_t>(catalogue.entries.size()));
  };
  return sampling;
}

Sampling mix_sampling(const ShardOptions &shards, bool shuffled) {
  Sampling sampling;
  sampling.shards = shards;
  sampling.shards.stick_to_shard = true;
  sampling.needs_formats = true;
  sampling.make_plan = [shards = sampling.shards, shuffled](const Catalogue &catalogue, int64_t seed) {
    return std::make_unique<MixPlan>(shards, groups_of(catalogue, shards, shuffled), shuffled, seed);
  };
  return sampling;
}

// Draws by weights. What is held, if anything is, is chosen among the draws.
Sampling weighted_sampling(WeightedPlanOptions options, const WeightingArguments &weighting, bool by_format) {
  check_weighting(weighting, options.shards);
  options.shards.stick_to_shard = true;
  Sampling sampling;
  sampling.shards = options.shards;
  sampling.needs_formats = by_format;
  sampling.cache_bytes = options.cache_bytes;
  sampling.weighting = weighting;
  sampling.make_plan = [options, weighting, by_format](const Catalogue &catalogue, int64_t seed) {
    WeightedPlanOptions seeded = options;
    seeded.seed = static_cast<uint64_t>(seed);
    seeded.epoch_size = weighting.size(catalogue);
    check_shards(seeded.shards, seeded.epoch_size);
    WeightedSamples samples = weighted_samples(weighting, catalogue);
    if (!by_format) std::ranges::fill(samples.formats, FileFormat::unknown);
    return std::make_unique<WeightedPlan>(seeded, WeightedDraws(samples, seeded.shards, seeded.epoch_size),
                                          memory_of(catalogue));
  };
  return sampling;
}

// Liquid's own plan, or MinIO's.
Sampling held_sampling(const LiquidArguments &arguments) {
  Sampling sampling = mix_sampling(arguments.shards, true);
  sampling.cache_bytes = static_cast<uint64_t>(arguments.cache_size);
  const LiquidPlanOptions options{.shards = sampling.shards,
                                  .cache_bytes = sampling.cache_bytes,
                                  .sequential = arguments.read_order == "sequential"};
  const bool is_liquid = arguments.policy == "liquid";
  sampling.make_plan = [options, is_liquid](const Catalogue &catalogue, int64_t seed) -> std::unique_ptr<EpochPlan> {
    LiquidPlanOptions seeded = options;
    seeded.seed = static_cast<uint64_t>(seed);
    std::vector<FormatGroup> groups = groups_of(catalogue, options.shards, true);
    const std::vector<uint64_t> bytes = memory_of(catalogue);
    if (is_liquid) return std::make_unique<LiquidPlan>(seeded, std::move(groups), bytes);
    return std::make_unique<MinioPlan>(seeded.shards, std::move(groups), bytes, seeded.cache_bytes, seeded.seed);
  };
  return sampling;
}

void check(const LiquidArguments &arguments) {
  const auto require = [](bool condition, const std::string &message) {
    if (!condition) throw std::invalid_argument(message);
  };
  const std::string &policy = arguments.policy, &order = arguments.read_order;
  require(policy == "liquid" || policy == "minio" || policy == "none",
          "policy is \"" + policy + R"(", but must be "liquid", "minio" or "none")");
  require(order == "random" || order == "sequential",
          "read_order is \"" + order + R"(", but must be "random" or "sequential")");
  require(arguments.cache_size >= 0,
          "cache_size is " + std::to_string(arguments.cache_size) + " bytes, but must not be negative");
  require(arguments.random_shuffle, "readers.liquid always shuffles: without random_shuffle use readers.multi_format");
  require(order == "random" || policy == "liquid", R"(read_order="sequential" needs policy="liquid")");
  require(order == "random" || !arguments.weighting.used(),
          R"(read_order="sequential" cannot be used with weights, proportions of classes or epoch_size)");
}

}  // namespace

Sampling multi_format_sampling(const MultiFormatArguments &arguments) {
  const bool mixes = arguments.mix.has_value();
  if (mixes && *arguments.mix != "dataset")
    throw std::invalid_argument("mix is \"" + *arguments.mix + "\", but must be \"dataset\" or None");
  const bool weights = arguments.weighting.used(), shuffled = arguments.random_shuffle || arguments.shuffle_after_epoch;
  Sampling sampling =
      weights ? weighted_sampling({.shards = arguments.shards, .shuffled = shuffled}, arguments.weighting, mixes)
      : mixes ? mix_sampling(arguments.shards, shuffled)
              : file_sampling(arguments);
  const std::string shuffler = weights && !mixes ? "weighted sampling" : "mix=\"dataset\"";
  if ((mixes || weights) && arguments.initial_fill)
    sampling.warnings.push_back(shuffler + " shuffles the whole shard: initial_fill has no effect.");
  if (arguments.shuffle_after_epoch_seed && (mixes || weights || !arguments.shuffle_after_epoch))
    sampling.warnings.push_back("shuffle_after_epoch_seed has no effect without shuffle_after_epoch, nor with " +
                                shuffler + ", which shuffles by seed.");
  return sampling;
}

Sampling liquid_sampling(const LiquidArguments &arguments) {
  check(arguments);
  const uint64_t cache_bytes = arguments.policy == "none" ? 0 : static_cast<uint64_t>(arguments.cache_size);
  const WeightedPlanOptions weighted{
      .shards = arguments.shards, .cache_bytes = cache_bytes, .constant_hits = arguments.policy == "liquid"};
  Sampling sampling = arguments.weighting.used()   ? weighted_sampling(weighted, arguments.weighting, true)
                      : arguments.policy == "none" ? mix_sampling(arguments.shards, true)
                                                   : held_sampling(arguments);
  sampling.needs_sizes = true;
  if (arguments.has_initial_fill)
    sampling.warnings.emplace_back("readers.liquid shuffles the whole shard: initial_fill has no effect.");
  if (arguments.has_shuffle_after_epoch_seed)
    sampling.warnings.emplace_back("readers.liquid shuffles by seed: shuffle_after_epoch_seed has no effect.");
  if (arguments.shards.num_shards > 1 && !arguments.shards.stick_to_shard)
    sampling.warnings.emplace_back("readers.liquid keeps its shard in all epochs, as with stick_to_shard=True.");
  return sampling;
}

}  // namespace dali_l3::loader
