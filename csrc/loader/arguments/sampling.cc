// Arguments to plans.

#include "arguments/sampling.h"

#include <stdexcept>
#include <utility>

#include "input/arena.h"
#include "plans/file_plan.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "plans/minio_plan.h"
#include "plans/mix_plan.h"

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
    bytes.push_back(whole_pages(entry.file.size));
    for (const File &companion : entry.companions) bytes.back() += whole_pages(companion.size);
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
}

}  // namespace

Sampling multi_format_sampling(const MultiFormatArguments &arguments) {
  const bool mixes = arguments.mix.has_value();
  if (mixes && *arguments.mix != "dataset")
    throw std::invalid_argument("mix is \"" + *arguments.mix + "\", but must be \"dataset\" or None");
  Sampling sampling = mixes ? mix_sampling(arguments.shards, arguments.random_shuffle || arguments.shuffle_after_epoch)
                            : file_sampling(arguments);
  if (mixes && arguments.initial_fill)
    sampling.warnings.emplace_back("mix=\"dataset\" shuffles the whole shard: initial_fill has no effect.");
  if (arguments.shuffle_after_epoch_seed && (mixes || !arguments.shuffle_after_epoch)) {
    sampling.warnings.emplace_back(
        "shuffle_after_epoch_seed has no effect without shuffle_after_epoch, nor with mix=\"dataset\", which shuffles "
        "by seed.");
  }
  return sampling;
}

Sampling liquid_sampling(const LiquidArguments &arguments) {
  check(arguments);
  Sampling sampling = mix_sampling(arguments.shards, true);
  sampling.needs_sizes = true;
  if (arguments.policy != "none") {
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
  }
  if (arguments.policy != "none" && arguments.cache_size == 0)
    sampling.warnings.emplace_back(
        "readers.liquid has no cache_size: it keeps no files in memory and reads all of them from disk in every epoch. "
        "Give a cache_size, or policy=\"none\" if this is meant.");
  if (arguments.has_initial_fill)
    sampling.warnings.emplace_back("readers.liquid shuffles the whole shard: initial_fill has no effect.");
  if (arguments.has_shuffle_after_epoch_seed)
    sampling.warnings.emplace_back("readers.liquid shuffles by seed: shuffle_after_epoch_seed has no effect.");
  if (arguments.shards.num_shards > 1 && !arguments.shards.stick_to_shard)
    sampling.warnings.emplace_back("readers.liquid keeps its shard in all epochs, as with stick_to_shard=True.");
  return sampling;
}

}  // namespace dali_l3::loader
