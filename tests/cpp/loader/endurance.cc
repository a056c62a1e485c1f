// Reads many batches, and fails where memory grows or the statistics do not add up.
//
//     loader_endurance [batches]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine.h"
#include "listed_memory.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "temporary_folder.h"

using namespace dali_l3::loader;

namespace {

constexpr int kSamples = 12, kBatch = 2, kBatches = kSamples / kBatch;  // of an epoch
// Until then, the statistics remember more and more.
constexpr int64_t kStart = static_cast<int64_t>(Statistics::kRemembered) + 1;  // epochs
constexpr int64_t kMayGrow = 256 << 10;                                        // bytes, from then on

int64_t resident_bytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void require(bool condition, const std::string &what) {
  if (!condition) throw std::runtime_error(what);
}

// PNG and BMP files of one to three pages, as far as a reader looks.
Catalogue write_dataset(const std::string &folder) {
  Catalogue catalogue;
  catalogue.root = folder;
  for (int i = 0; i < kSamples; i++) {
    const bool png = i % 3 != 0;
    std::string bytes = png ? "\x89PNG\r\n\x1a\n" : std::string("BM") + std::string(12, '\0') + '\x28' + "\0\0\0";
    bytes.resize(static_cast<size_t>(100 + i * 6007 % 12000));
    Entry entry;
    entry.file = {std::to_string(i), bytes.size()};
    entry.label = i;
    entry.format = sniff({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
    catalogue.entries.push_back(entry);
    std::ofstream(folder + "/" + entry.file.path, std::ios::binary) << bytes;
  }
  return catalogue;
}

std::unique_ptr<SampleOrder> liquid_order(const Catalogue &catalogue, uint64_t cache_bytes) {
  const ShardOptions shards{.stick_to_shard = true, .batch_size = kBatch};
  std::vector<FileFormat> formats;
  std::vector<uint64_t> bytes;
  for (const Entry &entry : catalogue.entries) {
    formats.push_back(entry.format);
    bytes.push_back(block_size(entry.file.size));
  }
  const LiquidPlanOptions options{.shards = shards, .cache_bytes = cache_bytes, .seed = 1};
  auto plan = std::make_unique<LiquidPlan>(options, format_groups(formats, shards, true), listed_memory(bytes));
  return std::make_unique<SampleOrder>(shards, kSamples, std::move(plan));
}

// Reads an epoch, in which every sample must come once.
void read_epoch(Engine &engine) {
  std::vector<bool> seen(kSamples);
  for (int i = 0; i < kBatches; i++) {
    for (const auto &sample : engine.next_batch()) {
      require(!seen[static_cast<size_t>(sample.label)], "a sample came twice in an epoch");
      seen[static_cast<size_t>(sample.label)] = true;
    }
  }
}

// What the epochs remembered say of themselves and of each other.
void check(const Statistics &statistics, int64_t dataset_bytes) {
  const BatchPart *before = nullptr;
  for (const BatchPart &epoch : statistics.epochs) {
    int64_t hits = 0, misses = 0;
    for (const FormatCounts &format : epoch.formats) {
      hits += format.hits;
      misses += format.misses;
    }
    const std::string name = "epoch " + std::to_string(epoch.epoch) + ": ";
    require(epoch.samples == kSamples && hits + misses == kSamples, name + "samples, hits and misses");
    require(epoch.files_read == misses, name + "files read, but no misses, or misses without a file");
    require(epoch.current_bytes == 0, name + "something is left of it in memory");
    if (before) {
      require(before->epoch == epoch.epoch - 1, name + "not the one after that before");
      require(epoch.bytes_read == dataset_bytes - before->next_bytes, name + "bytes read, and held since that before");
      const double share = static_cast<double>(hits) / kSamples;
      require(share > statistics.hit_ratio - 1e-9 && share < statistics.hit_ratio + 1e-9, name + "hit ratio");
    }
    before = &epoch;
  }
}

void run(int64_t batches) {
  const TemporaryFolder folder;
  const Catalogue catalogue = write_dataset(folder.path());
  int64_t dataset_bytes = 0;
  uint64_t memory = 0;
  for (const Entry &entry : catalogue.entries) {
    dataset_bytes += static_cast<int64_t>(entry.file.size);
    memory += block_size(entry.file.size);
  }
  const uint64_t cache_bytes = memory / 2;
  const int64_t epochs = batches / kBatches;
  Engine engine(catalogue, liquid_order(catalogue, cache_bytes),
                {.reading = {.cache_bytes = cache_bytes}, .read_threads = 2}, [](const std::string &) {});
  int64_t start = 0, most = 0;
  for (int64_t epoch = 1; epoch <= epochs; epoch++) {
    read_epoch(engine);
    if (epoch < kStart) continue;
    const int64_t resident = resident_bytes();
    if (start == 0) start = resident;
    most = std::max(most, resident);
    if (epoch == kStart || epoch == epochs / 2 || epoch == epochs)
      std::printf("after %lld batches: %.1f MiB resident\n", static_cast<long long>(epoch * kBatches),
                  static_cast<double>(resident) / (1 << 20));
  }
  const Statistics statistics = engine.statistics();
  check(statistics, dataset_bytes);
  require(statistics.epochs.back().epoch == epochs - 1, "the statistics do not count all epochs");
  require(statistics.cache_bytes_peak <= static_cast<int64_t>(cache_bytes), "cache_bytes was passed");
  std::printf("%lld samples, each once an epoch; %zu epochs remembered add up; hit ratio %.3f\n",
              static_cast<long long>(epochs * kSamples), statistics.epochs.size(), statistics.hit_ratio);
  require(most - start <= kMayGrow, "resident memory grew by " + std::to_string(most - start) + " bytes");
}

}  // namespace

int main(int argc, char **argv) {
  try {
    const int64_t batches = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
    require(batches >= 2 * kStart * kBatches, "at least " + std::to_string(2 * kStart * kBatches) + " batches");
    run(batches);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
