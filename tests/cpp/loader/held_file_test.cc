// What it costs to hold a file in memory, beside the memory of its bytes: counted by an allocator.
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "counted_heap.h"
#include "engine.h"
#include "listed_memory.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "plans/minio_plan.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

constexpr int64_t kMost = 128;  // bytes, as docs/liquid.md promises
constexpr int kBatch = 20;

// A dataset that lists a few files again and again.
Catalogue dataset(const TemporaryFolder &folder, int samples, std::vector<size_t> file_sizes, int companions) {
  Catalogue catalogue;
  catalogue.root = folder.path();
  for (const size_t size : file_sizes)
    std::ofstream(folder.path() + "/" + std::to_string(size)) << "\x89PNG\r\n\x1a\n" << std::string(size - 8, '.');
  for (int i = 0; i < samples; i++) {
    const size_t size = file_sizes[static_cast<size_t>(i * 7919) % file_sizes.size()];
    Entry entry;
    entry.file = {std::to_string(size), size};
    entry.format = FileFormat::png;
    entry.companions.assign(static_cast<size_t>(companions), entry.file);
    catalogue.entries.push_back(entry);
  }
  return catalogue;
}

struct Held {
  int64_t samples;
  int64_t heap;  // bytes of the whole engine
};

// An engine after some epochs that keeps what fits into a part of the memory that the dataset would take.
Held read(const Catalogue &catalogue, bool liquid, double part, int epochs) {
  const ShardOptions shards{.stick_to_shard = true, .batch_size = kBatch};
  std::vector<uint64_t> bytes;
  uint64_t total = 0;
  for (const Entry &entry : catalogue.entries)
    total += bytes.emplace_back(block_size(entry.file.size) * (1 + entry.companions.size()));
  const auto cache_bytes = static_cast<uint64_t>(part * static_cast<double>(total));
  const std::vector<FileFormat> formats(catalogue.entries.size(), FileFormat::png);

  const int64_t before = heap_bytes;
  std::unique_ptr<EpochPlan> plan;
  if (liquid)
    plan = std::make_unique<LiquidPlan>(LiquidPlanOptions{.shards = shards, .cache_bytes = cache_bytes, .seed = 3},
                                        format_groups(formats, shards, true), listed_memory(bytes));
  else
    plan = std::make_unique<MinioPlan>(shards, format_groups(formats, shards, true), listed_memory(bytes), bytes.size(),
                                       cache_bytes, 3);
  const auto size = static_cast<int64_t>(catalogue.entries.size());
  const auto held = static_cast<int64_t>(plan->hit_ratio() * static_cast<double>(size) + 0.5);
  Engine engine(catalogue, std::make_unique<SampleOrder>(shards, size, std::move(plan)),
                {.reading = {.cache_bytes = cache_bytes}, .read_threads = 2, .batches_ahead = 0},
                [](const std::string &) {});
  for (int64_t i = 0; i < epochs * size / kBatch; i++) engine.next_batch();
  return {held, heap_bytes - before};
}

// Bytes for each file that is held, by comparison with an engine that holds none.
double cost_of_a_file(const Catalogue &catalogue, bool liquid, double part, int epochs) {
  const Held none = read(catalogue, liquid, 0, epochs), some = read(catalogue, liquid, part, epochs);
  CHECK_EQUAL(none.samples, 0);
  CHECK(some.samples > 0);
  const auto files = some.samples * static_cast<int64_t>(1 + catalogue.entries[0].companions.size());
  return static_cast<double>(some.heap - none.heap) / static_cast<double>(files);
}

TEST(a_held_file_costs_little_beside_its_bytes) {
  // Tables of hashes grow in steps: not all numbers of files cost the same.
  for (const auto &[samples, companions, liquid] :
       {std::tuple{2500, 0, true}, {4000, 0, true}, {4000, 0, false}, {1500, 2, true}}) {
    const TemporaryFolder folder;
    const double cost = cost_of_a_file(dataset(folder, samples, {100}, companions), liquid, 1, 1);
    const testing::Context context("%d samples, %d companions, %s: %.1f bytes", samples, companions,
                                   liquid ? "Liquid" : "MinIO", cost);
    CHECK(cost > 0 && cost <= kMost);
  }
}

// Gaps between files cost something too, until other files fill them.
TEST(files_that_come_and_go_cost_no_more) {
  const TemporaryFolder folder;
  const double cost = cost_of_a_file(dataset(folder, 2500, {100, 5000, 9000, 20000}, 0), true, 0.5, 4);
  const testing::Context context("%.1f bytes", cost);
  CHECK(cost > 0 && cost <= kMost);
}

}  // namespace
