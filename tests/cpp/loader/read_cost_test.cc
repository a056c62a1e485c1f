// How often the engine allocates memory for what it reads: counted by an allocator.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "counted_heap.h"
#include "engine.h"
#include "listed_memory.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

constexpr int kSamples = 64;

struct Dataset {
  uint64_t bytes;  // of a file
  bool sizes_are_known;
};

// Allocations for an epoch of a dataset, which is one batch and is read from disk, after many of them.
int64_t allocations(const Dataset &dataset) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/image") << "\x89PNG\r\n\x1a\n" << std::string(dataset.bytes - 8, '.');
  Catalogue catalogue;
  catalogue.root = folder.path();
  for (int i = 0; i < kSamples; i++) {
    Entry entry;
    entry.file = {"image", dataset.sizes_are_known ? dataset.bytes : 0};
    catalogue.entries.push_back(entry);
  }
  const ShardOptions shards{.stick_to_shard = true, .batch_size = kSamples};
  const std::vector<FileFormat> formats(kSamples, FileFormat::png);
  auto plan = std::make_unique<LiquidPlan>(LiquidPlanOptions{.shards = shards}, format_groups(formats, shards, true),
                                           listed_memory(std::vector<uint64_t>(kSamples, block_size(dataset.bytes))));
  Engine engine(catalogue, std::make_unique<SampleOrder>(shards, kSamples, std::move(plan)),
                {.read_threads = 1, .batches_ahead = 0}, [](const std::string &) {});
  for (int epoch = 0; epoch < 20; epoch++) engine.next_batch();
  const int64_t before = heap_allocations;
  engine.next_batch();
  return heap_allocations - before;
}

// A file that is read by itself needs a task of its own for the threads that read.
TEST(files_that_turn_out_to_be_small_are_read_several_in_one_go) {
  const int64_t known = allocations({1000, true}), unknown = allocations({1000, false});
  const int64_t alone = allocations({300'000, false});
  const testing::Context context("%d, %d and %d allocations", static_cast<int>(known), static_cast<int>(unknown),
                                 static_cast<int>(alone));
  CHECK(unknown < known + kSamples / 8);
  CHECK(alone > known + kSamples);
}

}  // namespace
