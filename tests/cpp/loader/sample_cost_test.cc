// What a sample costs in the memory of a reader, beside its name: counted by an allocator.
#include <memory>
#include <string>

#include "arguments/sampling.h"
#include "counted_heap.h"
#include "dataset/catalogue.h"
#include "dataset/catalogue_file.h"
#include "plans/sample_order.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

constexpr int64_t kMost = 48;  // bytes, as docs/large-datasets.md promises
constexpr int kSamples = 200'000;

// Files in class folders, or members of archives, with sizes and formats.
Catalogue dataset(bool in_archives, int companions = 0) {
  Catalogue catalogue;
  if (in_archives) catalogue.archives = {"0.tar", "1.tar"};
  for (int i = 0; i < kSamples; i++) {
    const std::string folder = in_archives ? "" : "class_" + std::to_string(i / 1000) + "/";
    Entry entry;
    entry.file = {.path = folder + "image_" + std::to_string(i) + ".png", .size = 1000 + static_cast<uint64_t>(i)};
    if (in_archives) {
      entry.file.archive = static_cast<uint32_t>(i % 2);
      entry.file.offset = 512 * (1 + static_cast<uint64_t>(i));
    }
    entry.label = i / 1000;
    entry.format = i % 3 ? FileFormat::png : FileFormat::l3;
    entry.companions.assign(static_cast<size_t>(companions), entry.file);
    catalogue.entries.push_back(entry);
  }
  catalogue.entries.shrink();
  return catalogue;
}

const ShardOptions kShards{.stick_to_shard = true, .batch_size = 32};

MultiFormatArguments multi_format(const ShardOptions &shards, bool random, bool after_epoch, bool mixes,
                                  bool balanced) {
  MultiFormatArguments arguments;
  arguments.shards = shards;
  arguments.shards.stick_to_shard &= !after_epoch;
  arguments.random_shuffle = random;
  arguments.shuffle_after_epoch = after_epoch;
  arguments.checkpointing = true;
  if (mixes) arguments.mix = "dataset";
  arguments.weighting.class_balanced = balanced;
  return arguments;
}

LiquidArguments liquid(const ShardOptions &shards, const std::string &policy) {
  LiquidArguments arguments;
  arguments.shards = shards;
  arguments.policy = policy;
  arguments.cache_size = int64_t{kSamples} * 4096;
  return arguments;
}

std::vector<std::pair<std::string, Sampling>> samplings(const ShardOptions &shards) {
  return {{"in order", multi_format_sampling(multi_format(shards, false, false, false, false))},
          {"random_shuffle", multi_format_sampling(multi_format(shards, true, false, false, false))},
          {"shuffle_after_epoch", multi_format_sampling(multi_format(shards, false, true, false, false))},
          {"mix", multi_format_sampling(multi_format(shards, true, false, true, false))},
          {"balanced", multi_format_sampling(multi_format(shards, true, false, false, true))},
          {"liquid", liquid_sampling(liquid(shards, "liquid"))},
          {"minio", liquid_sampling(liquid(shards, "minio"))}};
}

// Bytes for each sample that an order holds while it delivers its second epoch.
double cost_of_order(const Catalogue &catalogue, const Sampling &sampling) {
  const int64_t before = heap_bytes;
  SampleOrder order(sampling.shards, sampling.epoch_size(catalogue), sampling.make_plan(catalogue, 3, sampling.shards));
  std::vector<PlannedSample> batch;
  for (int i = 0; i < kSamples / sampling.shards.num_shards / 32 + 10; i++) order.next_batch(batch);
  return static_cast<double>(heap_bytes - before) / kSamples;
}

TEST(a_sample_costs_little_beside_its_name) {
  for (const bool in_archives : {false, true}) {
    const int64_t before = heap_bytes;
    const Catalogue catalogue = dataset(in_archives);
    const auto bytes = static_cast<double>(heap_bytes - before);
    const double listed = (bytes - static_cast<double>(catalogue.entries.name_bytes())) / kSamples;
    std::printf("%s: %.1f bytes for a sample, names of %.1f\n", in_archives ? "archives" : "files", listed,
                static_cast<double>(catalogue.entries.name_bytes()) / kSamples);
    CHECK(listed < 30);
    for (const auto &[name, sampling] : samplings(kShards)) {
      const testing::Context context("%s", name.c_str());
      const double planned = cost_of_order(catalogue, sampling);
      std::printf("  %s: %.1f more for the order\n", name.c_str(), planned);
      CHECK(listed + planned <= kMost);
    }
  }
}

TEST(a_companion_costs_less_than_a_sample) {
  const int64_t before = heap_bytes;
  const Catalogue without = dataset(false);
  const int64_t middle = heap_bytes;
  const Catalogue with = dataset(false, 1);
  const int64_t names = static_cast<int64_t>(with.entries.name_bytes() - without.entries.name_bytes());
  CHECK((heap_bytes - middle) - (middle - before) - names <= int64_t{24} * kSamples);
}

TEST(a_shard_holds_its_part_of_the_order_only) {
  ShardOptions shards = kShards;
  shards.num_shards = 8;
  shards.shard_id = 3;
  const Catalogue catalogue = dataset(false);
  for (const auto &[name, sampling] : samplings(shards)) {
    if (name == "balanced") continue;  // all shards draw from all samples
    const testing::Context context("%s", name.c_str());
    CHECK(cost_of_order(catalogue, sampling) <= (kMost - 20) / 8.0 + 0.5);  // and some bits of each sample
  }
}

TEST(a_catalogue_that_is_mapped_holds_nothing) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/train.l3cat";
  save_catalogue(dataset(false), true, "", path);
  const int64_t before = heap_bytes;
  const CatalogueFile file = open_catalogue(path);
  CHECK(heap_bytes - before < 10'000);
  CHECK_EQUAL(file.catalogue.entries.size(), size_t{kSamples});
  for (const auto &[name, sampling] : samplings(kShards)) {
    const testing::Context context("%s", name.c_str());
    CHECK(cost_of_order(file.catalogue, sampling) <= kMost);
  }
}

}  // namespace
