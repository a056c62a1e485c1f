// Which plan a reader builds for which arguments, and which arguments it refuses.
#include "arguments/sampling.h"

#include <cstdint>

#include "listed_memory.h"
#include "orders.h"
#include "plans/file_plan.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "plans/minio_plan.h"
#include "plans/mix_plan.h"
#include "plans/weighted_plan.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

constexpr int64_t kSize = 90, kSeed = -7;
constexpr ShardOptions kShards{.shard_id = 1, .num_shards = 2, .batch_size = 8};
constexpr ShardOptions kSticky{.shard_id = 1, .num_shards = 2, .stick_to_shard = true, .batch_size = 8};

// Files of three formats and of many sizes, every other with a companion.
Catalogue catalogue() {
  Catalogue made;
  for (uint64_t i = 0; i < kSize; i++) {
    Entry entry;
    entry.file = {.path = std::to_string(i), .size = 1 + 1000 * (i * i % 31)};
    entry.format = static_cast<FileFormat>(1 + i * i % 3);
    if (i % 2) entry.companions = {{.path = "mask", .size = 5000}};
    made.entries.push_back(std::move(entry));
  }
  return made;
}

std::vector<FormatGroup> groups(bool draw) {
  std::vector<FileFormat> formats;
  for (const Entry &entry : catalogue().entries) formats.push_back(entry.format);
  return format_groups(formats, kSticky, draw);
}

// Whole pages, companions' included.
std::vector<uint64_t> pages() {
  std::vector<uint64_t> bytes;
  for (uint64_t i = 0; i < kSize; i++) bytes.push_back((i * i % 31 * 1000 + 4096) / 4096 * 4096 + i % 2 * 8192);
  return bytes;
}

std::vector<PlannedSample> samples(EpochPlan &plan) {
  std::vector<PlannedSample> all, epoch;
  for (int i = 0; i < 4; i++) {
    plan.plan(i, epoch);
    all.insert(all.end(), epoch.begin(), epoch.end());
  }
  return all;
}

// Checks that the arguments ask for a plan of this kind that delivers what `expected` does.
template <typename Plan>
void check_plan(const Sampling &sampling, Plan expected) {
  const std::unique_ptr<EpochPlan> plan = sampling.make_plan(catalogue(), kSeed, sampling.shards);
  CHECK(dynamic_cast<Plan *>(plan.get()));
  CHECK_EQUAL(plan->hit_ratio(), expected.hit_ratio());
  CHECK(samples(*plan) == samples(expected));
}

void check_shards(const Sampling &sampling, bool stick_to_shard) {
  CHECK_EQUAL(sampling.shards.shard_id, 1);
  CHECK_EQUAL(sampling.shards.num_shards, 2);
  CHECK_EQUAL(sampling.shards.batch_size, 8);
  CHECK_EQUAL(sampling.shards.stick_to_shard, stick_to_shard);
}

std::string warnings(const Sampling &sampling) {
  std::string text;
  for (const std::string &warning : sampling.warnings) text += warning + "|";
  return text;
}

// ---- readers.multi_format -------------------------------------------------------------------------------------------

TEST(without_mix_the_order_is_that_of_the_file_reader) {
  const Sampling plain = multi_format_sampling({.shards = kShards});
  check_plan(plain, FilePlan({.shards = kShards}, kSize));
  check_shards(plain, false);
  CHECK(!plain.needs_formats && !plain.needs_sizes);
  CHECK_EQUAL(plain.cache_bytes, 0u);
  check_shards(multi_format_sampling({.shards = kSticky}), true);

  check_plan(multi_format_sampling({.shards = kShards, .random_shuffle = true}),
             FilePlan({.shards = kShards, .random_shuffle = true, .initial_fill = 1024, .seed = kSeed}, kSize));
  check_plan(multi_format_sampling({.shards = kShards, .random_shuffle = true, .initial_fill = 5}),
             FilePlan({.shards = kShards, .random_shuffle = true, .initial_fill = 5, .seed = kSeed}, kSize));
}

TEST(shuffle_after_epoch_keeps_the_shard) {
  const Sampling sampling = multi_format_sampling({.shards = kShards, .shuffle_after_epoch = true});
  check_plan(sampling, FilePlan({.shards = kShards, .shuffle_after_epoch = true}, kSize));
  check_shards(sampling, true);
  check_plan(
      multi_format_sampling(
          {.shards = kShards, .shuffle_after_epoch = true, .shuffle_after_epoch_seed = 3, .checkpointing = true}),
      FilePlan({.shards = kShards, .shuffle_after_epoch = true, .shuffle_after_epoch_seed = {3}, .checkpointing = true},
               kSize));
  check_plan(
      multi_format_sampling({.shards = kShards, .shuffle_after_epoch = true, .epoch_seed_has_32_bits = true}),
      FilePlan({.shards = kShards, .shuffle_after_epoch = true, .shuffle_after_epoch_seed = {kDaliSeed, true}}, kSize));
}

TEST(arguments_of_the_file_reader_that_exclude_each_other) {
  const auto error = [](const MultiFormatArguments &arguments) {
    return testing::error_of([&] { multi_format_sampling(arguments).make_plan(catalogue(), 0, kShards); });
  };
  CHECK_EQUAL(error({.shards = kShards, .random_shuffle = true, .shuffle_after_epoch = true}),
              "shuffle_after_epoch and random_shuffle exclude each other");
  CHECK_EQUAL(error({.shards = kSticky, .shuffle_after_epoch = true}),
              "shuffle_after_epoch and stick_to_shard exclude each other");
  CHECK_EQUAL(error({.shards = kShards, .random_shuffle = true, .initial_fill = 0}), "initial_fill must be at least 1");
}

TEST(mix_is_shuffled_by_either_argument) {
  for (const bool random_shuffle : {false, true}) {
    for (const bool shuffle_after_epoch : {false, true}) {
      const Sampling sampling = multi_format_sampling({.shards = kShards,
                                                       .mix = "dataset",
                                                       .random_shuffle = random_shuffle,
                                                       .shuffle_after_epoch = shuffle_after_epoch});
      const bool shuffled = random_shuffle || shuffle_after_epoch;
      check_plan(sampling, MixPlan(kSticky, groups(shuffled), shuffled, kSeed));
      check_shards(sampling, true);
      CHECK(sampling.needs_formats && !sampling.needs_sizes);
      CHECK_EQUAL(sampling.cache_bytes, 0u);
    }
  }
}

TEST(mix_has_one_value) {
  for (const char *mix : {"", "Dataset", "shard", "None"}) {
    CHECK_EQUAL(testing::error_of([&] { multi_format_sampling({.shards = kShards, .mix = mix}); }),
                std::string("mix is \"") + mix + "\", but must be \"dataset\" or None");
  }
}

TEST(multi_format_warns_of_arguments_without_effect) {
  const std::string fill = "mix=\"dataset\" shuffles the whole shard: initial_fill has no effect.|",
                    seed =
                        "shuffle_after_epoch_seed has no effect without shuffle_after_epoch, nor with "
                        "mix=\"dataset\", which shuffles by seed.|";
  MultiFormatArguments arguments{.shards = kShards};
  CHECK_EQUAL(warnings(multi_format_sampling(arguments)), "");
  arguments.initial_fill = 5;
  CHECK_EQUAL(warnings(multi_format_sampling(arguments)), "");
  arguments.shuffle_after_epoch_seed = 5;
  CHECK_EQUAL(warnings(multi_format_sampling(arguments)), seed);
  arguments.shuffle_after_epoch = true;
  CHECK_EQUAL(warnings(multi_format_sampling(arguments)), "");
  arguments.mix = "dataset";
  CHECK_EQUAL(warnings(multi_format_sampling(arguments)), fill + seed);
}

TEST(weights_take_the_place_of_the_order) {
  const WeightingArguments weighting{.epoch_size = 50};
  const auto plan = [&](const WeightedPlanOptions &options, bool by_format) {
    WeightedSamples samples = weighted_samples(weighting, catalogue());
    if (!by_format) std::fill(samples.formats.begin(), samples.formats.end(), FileFormat::unknown);
    return WeightedPlan(options, WeightedDraws(samples, kSticky, 50), listed_memory(pages()));
  };
  WeightedPlanOptions options{.shards = kSticky, .epoch_size = 50, .seed = static_cast<uint64_t>(kSeed)};
  for (const bool shuffled : {false, true}) {
    options.shuffled = shuffled;
    MultiFormatArguments arguments{.shards = kShards, .weighting = weighting, .random_shuffle = shuffled};
    check_plan(multi_format_sampling(arguments), plan(options, false));
    CHECK(!multi_format_sampling(arguments).needs_formats);
    check_shards(multi_format_sampling(arguments), true);
    arguments.mix = "dataset";
    check_plan(multi_format_sampling(arguments), plan(options, true));
    CHECK(multi_format_sampling(arguments).needs_formats);
    CHECK_EQUAL(multi_format_sampling(arguments).epoch_size(catalogue()), 50);
  }
  LiquidArguments arguments{.shards = kShards, .weighting = weighting, .policy = "none", .cache_size = 100000};
  check_plan(liquid_sampling(arguments), plan(options, true));
  options.cache_bytes = 100000;
  arguments.policy = "minio";
  check_plan(liquid_sampling(arguments), plan(options, true));
  options.constant_hits = true;
  arguments.policy = "liquid";
  check_plan(liquid_sampling(arguments), plan(options, true));
  CHECK_EQUAL(liquid_sampling(arguments).cache_bytes, 100000u);
  CHECK(liquid_sampling(arguments).needs_sizes);
  CHECK_EQUAL(liquid_sampling({.shards = kShards}).epoch_size(catalogue()), kSize);
}

TEST(weights_need_shards_that_suit_the_epoch) {
  const auto error = [](const ShardOptions &shards) {
    const Sampling sampling = liquid_sampling({.shards = shards, .weighting = {.class_balanced = true}});
    return testing::error_of([&] { sampling.make_plan(catalogue(), 0, sampling.shards); });
  };
  CHECK_EQUAL(error({.num_shards = 0}), "num_shards is 0, but must be at least 1");
  CHECK_EQUAL(error({.shard_id = 2, .num_shards = 2}),
              "shard_id is 2, but must be at least 0 and below num_shards, which is 2");
  CHECK_EQUAL(error({.num_shards = 91}), "There are fewer samples (90) than shards (91)");
}

TEST(weights_leave_arguments_without_effect) {
  MultiFormatArguments arguments{.shards = kShards, .weighting = {.class_balanced = true}, .initial_fill = 5};
  CHECK_EQUAL(warnings(multi_format_sampling(arguments)),
              "weighted sampling shuffles the whole shard: initial_fill has no effect.|");
  arguments.shuffle_after_epoch_seed = 5;
  arguments.shuffle_after_epoch = true;
  CHECK_EQUAL(warnings(multi_format_sampling(arguments)),
              "weighted sampling shuffles the whole shard: initial_fill has no effect.|shuffle_after_epoch_seed has no "
              "effect without shuffle_after_epoch, nor with weighted sampling, which shuffles by seed.|");
}

// ---- readers.liquid -------------------------------------------------------------------------------------------------

TEST(each_policy_has_its_plan) {
  constexpr uint64_t memory = 300000;
  LiquidArguments arguments{.shards = kShards, .cache_size = memory};
  const LiquidPlanOptions options{.shards = kSticky, .cache_bytes = memory, .seed = static_cast<uint64_t>(kSeed)};
  CHECK(LiquidPlan(options, groups(true), listed_memory(pages())).hit_ratio() > 0.2);
  check_plan(liquid_sampling(arguments), LiquidPlan(options, groups(true), listed_memory(pages())));

  arguments.read_order = "sequential";
  LiquidPlanOptions sequential = options;
  sequential.sequential = true;
  check_plan(liquid_sampling(arguments), LiquidPlan(sequential, groups(true), listed_memory(pages())));

  arguments.read_order = "random";
  arguments.policy = "minio";
  check_plan(liquid_sampling(arguments),
             MinioPlan(kSticky, groups(true), listed_memory(pages()), kSize, memory, options.seed));
  CHECK_EQUAL(liquid_sampling(arguments).cache_bytes, memory);

  arguments.policy = "none";
  check_plan(liquid_sampling(arguments), MixPlan(kSticky, groups(true), true, options.seed));
  CHECK_EQUAL(liquid_sampling(arguments).cache_bytes, 0u);
}

TEST(every_policy_keeps_the_shard_and_looks_at_files) {
  for (const char *policy : {"liquid", "minio", "none"}) {
    const Sampling sampling = liquid_sampling({.shards = kShards, .policy = policy});
    check_shards(sampling, true);
    CHECK(sampling.needs_formats && sampling.needs_sizes);
  }
}

TEST(any_size_of_memory) {
  CHECK_EQUAL(liquid_sampling({.shards = kShards, .cache_size = 0}).cache_bytes, 0u);
  const Sampling most = liquid_sampling({.shards = kShards, .cache_size = INT64_MAX});
  CHECK_EQUAL(most.cache_bytes, static_cast<uint64_t>(INT64_MAX));
  CHECK_EQUAL(most.make_plan(catalogue(), 0, most.shards)->hit_ratio(), 1);
}

TEST(liquid_refuses_what_it_cannot_do) {
  const auto error = [](const LiquidArguments &arguments) {
    return testing::error_of([&] { liquid_sampling(arguments); });
  };
  for (const char *name : {"", "Liquid", "lru"}) {
    CHECK_EQUAL(error({.shards = kShards, .policy = name}),
                std::string("policy is \"") + name + R"(", but must be "liquid", "minio" or "none")");
    CHECK_EQUAL(error({.shards = kShards, .read_order = name}),
                std::string("read_order is \"") + name + R"(", but must be "random" or "sequential")");
  }
  CHECK_EQUAL(error({.shards = kShards, .cache_size = -1}), "cache_size is -1 bytes, but must not be negative");
  CHECK_EQUAL(error({.shards = kShards, .cache_size = INT64_MIN}),
              "cache_size is -9223372036854775808 bytes, but must not be negative");
  CHECK_EQUAL(error({.shards = kShards, .random_shuffle = false}),
              "readers.liquid always shuffles: without random_shuffle use readers.multi_format");
  for (const char *policy : {"minio", "none"}) {
    CHECK_EQUAL(error({.shards = kShards, .policy = policy, .read_order = "sequential"}),
                "read_order=\"sequential\" needs policy=\"liquid\"");
  }
  CHECK_EQUAL(error({.shards = kShards, .weighting = {.class_balanced = true}, .read_order = "sequential"}),
              "read_order=\"sequential\" cannot be used with weights, proportions of classes or epoch_size");
}

TEST(liquid_warns_of_arguments_without_effect) {
  const std::string fill = "readers.liquid shuffles the whole shard: initial_fill has no effect.|",
                    seed = "readers.liquid shuffles by seed: shuffle_after_epoch_seed has no effect.|",
                    shard = "readers.liquid keeps its shard in all epochs, as with stick_to_shard=True.|";
  CHECK_EQUAL(warnings(liquid_sampling({.shards = {}, .cache_size = 1})), "");
  CHECK_EQUAL(warnings(liquid_sampling({.shards = kSticky, .cache_size = 1})), "");
  CHECK_EQUAL(warnings(liquid_sampling({.shards = kShards, .cache_size = 1})), shard);
  CHECK_EQUAL(
      warnings(liquid_sampling(
          {.shards = kShards, .cache_size = 1, .has_initial_fill = true, .has_shuffle_after_epoch_seed = true})),
      fill + seed + shard);
}

TEST(liquid_without_a_cache_is_warned_of) {
  const std::string warning = "readers.liquid has no cache_size: ";
  CHECK(warnings(liquid_sampling({.shards = {}})).starts_with(warning));
  CHECK(warnings(liquid_sampling({.shards = {}, .policy = "minio"})).starts_with(warning));
  CHECK_EQUAL(warnings(liquid_sampling({.shards = {}, .policy = "none"})), "");
}

}  // namespace
