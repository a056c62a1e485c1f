// Arguments to plans.

#include "arguments/sampling.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "plans/file_plan.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "plans/minio_plan.h"
#include "plans/mix_plan.h"

namespace dali_l3::loader {
namespace {

std::vector<FormatGroup> groups_of(const Catalogue &catalogue, const ShardOptions &shards, bool draw) {
  return format_groups(formats_of(catalogue), shards, draw);
}

std::vector<uint64_t> memory_of(const Catalogue &catalogue) {
  std::vector<uint64_t> bytes;
  bytes.reserve(catalogue.entries.size());
  for (const Entry &entry : catalogue.entries) bytes.push_back(memory_of(entry));
  return bytes;
}

// Every argument that the order follows from, besides seed and shard_id, by the name that users know it by, and none
// that has no effect beside those before it. What is listed here is compared when a reader goes on from a checkpoint,
// and what the checkpoint's own order is found from. @{
template <typename Visit>
void visit_shards(ShardOptions &shards, bool keeps_shard, Visit visit) {
  visit("batch_size", shards.batch_size);
  visit("num_shards", shards.num_shards);
  if (shards.num_shards > 1 && !keeps_shard) visit("stick_to_shard", shards.stick_to_shard);
  visit("pad_last_batch", shards.pad_last_batch);
}

template <typename Visit>
void visit_settings(MultiFormatArguments &arguments, Visit visit) {
  visit("mix", arguments.mix);
  const bool mixes = arguments.mix.has_value();
  bool &shuffles = arguments.random_shuffle, &shuffles_after = arguments.shuffle_after_epoch;
  if (mixes) shuffles |= std::exchange(shuffles_after, false);  // of the two either has the same effect
  visit("random_shuffle", shuffles);
  if (shuffles && !mixes) {
    arguments.initial_fill = arguments.initial_fill.value_or(FilePlanOptions{}.initial_fill);
    visit("initial_fill", *arguments.initial_fill);
  }
  if (!mixes) visit("shuffle_after_epoch", shuffles_after);
  if (shuffles_after) {
    arguments.shuffle_after_epoch_seed = arguments.shuffle_after_epoch_seed.value_or(kDaliSeed);
    visit("shuffle_after_epoch_seed", *arguments.shuffle_after_epoch_seed);
    visit("enable_checkpointing", arguments.checkpointing);
  }
  visit_shards(arguments.shards, mixes || shuffles_after, visit);
}

template <typename Visit>
void visit_settings(LiquidArguments &arguments, Visit visit) {
  visit("policy", arguments.policy);
  if (arguments.policy == "liquid") {
    visit("read_order", arguments.read_order);
    visit("cache_size", arguments.cache_size);
  }
  visit_shards(arguments.shards, true, visit);
}
// @}

[[noreturn]] void fail_setting(const std::string &name) {
  throw std::invalid_argument("The checkpoint does not suit this reader: it has no such value of " + name);
}

constexpr const char *name_of(const MultiFormatArguments *) { return "multi_format"; }
constexpr const char *name_of(const LiquidArguments *) { return "liquid"; }

template <typename Arguments>
Settings settings_of(Arguments arguments) {
  Settings settings{{"reader", name_of(&arguments)}};
  visit_settings(arguments, [&](const char *name, const auto &value) { settings.push_back({name, to_text(value)}); });
  return settings;
}

template <typename Arguments>
Arguments from_settings(const Settings &settings) {
  Arguments arguments;
  const auto value_of = [&](const char *name) {
    const auto setting = std::ranges::find(settings, name, &Setting::name);
    if (setting == settings.end()) fail_setting(name);
    return setting->value;
  };
  if (value_of("reader") != name_of(&arguments)) fail_setting("reader");
  visit_settings(arguments, [&](const char *name, auto &value) {
    if (!from_text(value_of(name), value)) fail_setting(name);
  });
  return arguments;
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
  sampling.shuffled = arguments.random_shuffle || arguments.shuffle_after_epoch;
  sampling.make_plan = [options](const Catalogue &catalogue, int64_t seed, const ShardOptions &shards) {
    FilePlanOptions seeded = options;
    seeded.shards = shards;
    seeded.shards.stick_to_shard = options.shards.stick_to_shard;  // which shuffle_after_epoch excludes, and implies
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
  sampling.shuffled = shuffled;
  sampling.make_plan = [shuffled](const Catalogue &catalogue, int64_t seed, const ShardOptions &shards) {
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
  sampling.settings = settings_of(arguments);
  sampling.with = [](const Settings &settings) {
    return multi_format_sampling(from_settings<MultiFormatArguments>(settings));
  };
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
    const bool is_liquid = arguments.policy == "liquid", is_sequential = arguments.read_order == "sequential";
    sampling.follows_sizes = is_liquid;
    sampling.make_plan = [cache_bytes = sampling.cache_bytes, is_liquid, is_sequential](
                             const Catalogue &catalogue, int64_t seed_value,
                             const ShardOptions &shards) -> std::unique_ptr<EpochPlan> {
      const auto seed = static_cast<uint64_t>(seed_value);
      std::vector<FormatGroup> groups = groups_of(catalogue, shards, true);
      const std::vector<uint64_t> bytes = memory_of(catalogue);
      if (!is_liquid) return std::make_unique<MinioPlan>(shards, std::move(groups), bytes, cache_bytes, seed);
      const LiquidPlanOptions options{
          .shards = shards, .cache_bytes = cache_bytes, .seed = seed, .sequential = is_sequential};
      return std::make_unique<LiquidPlan>(options, std::move(groups), bytes);
    };
  }
  sampling.settings = settings_of(arguments);
  sampling.with = [](const Settings &settings) { return liquid_sampling(from_settings<LiquidArguments>(settings)); };
  if (arguments.has_initial_fill)
    sampling.warnings.emplace_back("readers.liquid shuffles the whole shard: initial_fill has no effect.");
  if (arguments.has_shuffle_after_epoch_seed)
    sampling.warnings.emplace_back("readers.liquid shuffles by seed: shuffle_after_epoch_seed has no effect.");
  if (arguments.shards.num_shards > 1 && !arguments.shards.stick_to_shard)
    sampling.warnings.emplace_back("readers.liquid keeps its shard in all epochs, as with stick_to_shard=True.");
  return sampling;
}

}  // namespace dali_l3::loader
