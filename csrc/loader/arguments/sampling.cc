// Arguments to plans.

#include "arguments/sampling.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "dataset/checksum.h"
#include "plans/file_plan.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "plans/minio_plan.h"
#include "plans/mix_plan.h"
#include "plans/weighted_plan.h"

namespace dali_l3::loader {
namespace {

// Of a list that an error can show.
constexpr size_t kNumbersInCheckpoint = 32;

std::vector<FormatGroup> groups_of(const Catalogue &catalogue, const ShardOptions &shards, bool draw) {
  return format_groups(formats_of(catalogue), shards, draw);
}

BytesOf memory_of(const Catalogue &catalogue) {
  return [&entries = catalogue.entries](uint32_t entry) { return entries.memory(entry); };
}

EpochSeed epoch_seed(const MultiFormatArguments &arguments) {
  return {arguments.shuffle_after_epoch_seed.value_or(kDaliSeed), arguments.epoch_seed_has_32_bits};
}

// In a checkpoint: 524287, or 524287/32bit. @{
using loader::from_text;
using loader::to_text;

constexpr std::string_view k32Bits = "/32bit";

std::string to_text(const EpochSeed &seed) {
  return std::to_string(seed.value) + std::string(seed.has_32_bits ? k32Bits : "");
}

bool from_text(const std::string &text, EpochSeed &seed) {
  seed.has_32_bits = text.ends_with(k32Bits);
  return loader::from_text(text.substr(0, text.size() - (seed.has_32_bits ? k32Bits.size() : 0)), seed.value);
}
// @}

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
  const bool mixes = arguments.mix || arguments.weighting.used();  // either shuffles the whole shard
  bool &shuffles = arguments.random_shuffle, &shuffles_after = arguments.shuffle_after_epoch;
  if (mixes) shuffles |= std::exchange(shuffles_after, false);  // of the two either has the same effect
  visit("random_shuffle", shuffles);
  if (shuffles && !mixes) {
    arguments.initial_fill = arguments.initial_fill.value_or(FilePlanOptions{}.initial_fill);
    visit("initial_fill", *arguments.initial_fill);
  }
  if (!mixes) visit("shuffle_after_epoch", shuffles_after);
  if (shuffles_after) {
    EpochSeed seed = epoch_seed(arguments);
    visit("shuffle_after_epoch_seed", seed);
    arguments.shuffle_after_epoch_seed = seed.value;
    arguments.epoch_seed_has_32_bits = seed.has_32_bits;
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

// The numbers of a short list; of a longer one how many there are, and their checksum.
std::string text_of(const std::optional<std::vector<float>> &values) {
  if (!values) return "None";
  if (values->size() > kNumbersInCheckpoint) {
    Checksum checksum;
    checksum.add(values->data(), values->size() * sizeof(float));
    return std::to_string(values->size()) + "_numbers_of_checksum_" + checksum.text();
  }
  std::string text;
  for (const float value : *values) {
    char digits[32];
    text.append(text.empty() ? "[" : ",").append(digits, std::to_chars(digits, std::end(digits), value).ptr);
  }
  return text + "]";
}

// Compared, but not found again from a checkpoint: see draws_by_weights().
Settings settings_of(const WeightingArguments &weighting) {
  return {{"weights", text_of(weighting.weights)},
          {"class_proportions", weighting.balanced() ? "balanced" : text_of(weighting.class_proportions)},
          {"epoch_size", weighting.epoch_size ? to_text(*weighting.epoch_size) : "None"}};
}

[[noreturn]] void fail_setting(const std::string &name) {
  throw std::invalid_argument("The checkpoint does not suit this reader: it has no such value of " + name);
}

constexpr const char *name_of(const MultiFormatArguments *) { return "multi_format"; }
constexpr const char *name_of(const LiquidArguments *) { return "liquid"; }

template <typename Arguments>
Settings settings_of(Arguments arguments) {
  Settings settings{{"reader", name_of(&arguments)}};
  visit_settings(arguments, [&](const char *name, const auto &value) { settings.push_back({name, to_text(value)}); });
  std::ranges::copy(settings_of(arguments.weighting), std::back_inserter(settings));
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
  options.shuffle_after_epoch_seed = epoch_seed(arguments);
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

// Draws by weights. What is held, if anything is, is chosen among the draws.
Sampling weighted_sampling(WeightedPlanOptions options, const WeightingArguments &weighting, bool by_format) {
  check_weighting(weighting, options.shards);
  options.shards.stick_to_shard = true;
  Sampling sampling;
  sampling.shards = options.shards;
  sampling.needs_formats = by_format;
  sampling.cache_bytes = options.cache_bytes;
  sampling.weighting = weighting;
  sampling.shuffled = options.shuffled;
  sampling.make_plan = [options, weighting, by_format](const Catalogue &catalogue, int64_t seed,
                                                       const ShardOptions &shards) {
    WeightedPlanOptions seeded = options;
    seeded.shards = shards;
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
  const bool is_liquid = arguments.policy == "liquid", is_sequential = arguments.read_order == "sequential";
  sampling.make_plan = [cache_bytes = sampling.cache_bytes, is_liquid, is_sequential](
                           const Catalogue &catalogue, int64_t seed_value,
                           const ShardOptions &shards) -> std::unique_ptr<EpochPlan> {
    const auto seed = static_cast<uint64_t>(seed_value);
    std::vector<FormatGroup> groups = groups_of(catalogue, shards, true);
    const BytesOf bytes = memory_of(catalogue);
    if (!is_liquid)
      return std::make_unique<MinioPlan>(shards, std::move(groups), bytes, catalogue.entries.size(), cache_bytes, seed);
    const LiquidPlanOptions options{
        .shards = shards, .cache_bytes = cache_bytes, .seed = seed, .sequential = is_sequential};
    return std::make_unique<LiquidPlan>(options, groups, bytes);
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

bool draws_by_weights(const Settings &settings) {
  const Settings unused = settings_of(WeightingArguments{});
  return !std::ranges::all_of(unused, [&](const Setting &setting) { return std::ranges::count(settings, setting); });
}

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
  sampling.settings = settings_of(arguments);
  sampling.with = [](const Settings &settings) {
    const auto saved = from_settings<MultiFormatArguments>(settings);
    // Without it a pipeline makes no checkpoints, and every epoch has to be shuffled to find the one after it.
    if (saved.shuffle_after_epoch && !saved.checkpointing) fail_setting("enable_checkpointing");
    return multi_format_sampling(saved);
  };
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
  sampling.follows_sizes = arguments.policy == "liquid";
  sampling.settings = settings_of(arguments);
  sampling.with = [](const Settings &settings) { return liquid_sampling(from_settings<LiquidArguments>(settings)); };
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
