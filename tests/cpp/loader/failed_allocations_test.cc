// What follows when memory runs out: every allocation fails in its turn, in planning and in delivering batches. What is
// delivered afterwards is what is delivered without that.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "engine.h"
#include "failing_heap.h"
#include "image_files.h"
#include "listed_memory.h"
#include "orders.h"
#include "plans/file_plan.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "plans/minio_plan.h"
#include "plans/mix_plan.h"
#include "plans/rest_plan.h"
#include "plans/weighted_plan.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

constexpr size_t kSize = 23;  // samples of the catalogue
constexpr int kBatches = 40;  // that there are to compare with
const ShardOptions kShard{.stick_to_shard = true, .batch_size = 5}, kLoose{.batch_size = 5};

// Batches delivered one after another, and where that goes on elsewhere.
struct Leg {
  int64_t first, count;
};
constexpr Leg kLegs[] = {{0, 6}, {22, 4}, {3, 4}}, kShortLegs[] = {{0, 6}, {11, 1}, {3, 1}};
constexpr int64_t kElsewhere = 5;  // so many batches further on, in the next epoch

std::vector<FileFormat> formats() {
  std::vector<FileFormat> formats;
  for (size_t i = 0; i < kSize; i++) formats.push_back(i % 3 ? FileFormat::png : FileFormat::bmp);
  return formats;
}

std::vector<FormatGroup> groups() { return format_groups(formats(), kShard, true); }

// Sizes so different that Liquid has to choose what it keeps, in most epochs.
BytesOf sizes() {
  std::vector<uint64_t> bytes;
  for (size_t i = 0; i < kSize; i++) bytes.push_back(i % 5 ? 10 + i : 100 * i + 1);
  return listed_memory(bytes);
}

std::unique_ptr<EpochPlan> liquid_plan(const BytesOf &bytes, uint64_t cache_bytes) {
  const LiquidPlanOptions options{.shards = kShard, .cache_bytes = cache_bytes, .seed = 5};
  return std::make_unique<LiquidPlan>(options, groups(), bytes);
}

std::unique_ptr<EpochPlan> file_plan(const FilePlanOptions &options) {
  return std::make_unique<FilePlan>(options, kSize);
}

std::unique_ptr<EpochPlan> weighted_plan() {
  WeightedSamples samples{.formats = formats(), .cell_of = {}, .cells = {{0, 2}, {1, 1}, {2, 20}}};
  for (uint32_t i = 0; i < kSize; i++) samples.cell_of.push_back(i % 3);
  const WeightedPlanOptions options{
      .shards = kShard, .epoch_size = kSize, .seed = 5, .cache_bytes = 900, .constant_hits = true};
  return std::make_unique<WeightedPlan>(options, WeightedDraws(samples, kShard, kSize), sizes());
}

std::unique_ptr<EpochPlan> rest_plan() {
  return std::make_unique<RestPlan>(Rest{0, {{1, 2, 5, 8, 13, 21}}}, kShard, formats(), true, 5,
                                    [](const ShardOptions &) { return liquid_plan(sizes(), 1500); });
}

struct Case {
  const char *name;
  std::function<std::unique_ptr<EpochPlan>()> make_plan;
};

const std::vector<Case> kCases{
    {"file", [] { return file_plan({.shards = kShard}); }},
    {"file, random_shuffle",
     [] { return file_plan({.shards = kShard, .random_shuffle = true, .initial_fill = 7, .seed = 5}); }},
    {"file, shuffle_after_epoch", [] { return file_plan({.shards = kLoose, .shuffle_after_epoch = true}); }},
    {"file, the same for checkpoints",
     [] { return file_plan({.shards = kLoose, .shuffle_after_epoch = true, .checkpointing = true}); }},
    {"liquid", [] { return liquid_plan(sizes(), 1500); }},
    {"minio", [] { return std::make_unique<MinioPlan>(kShard, groups(), sizes(), kSize, 1500, 5); }},
    {"mix", [] { return std::make_unique<MixPlan>(kShard, groups(), true, 5); }},
    {"weighted", weighted_plan},
    {"rest", rest_plan},
};

std::shared_ptr<SampleOrder> order_of(const Case &tested) {
  return std::make_shared<SampleOrder>(kShard, kSize, tested.make_plan());
}

// Whether a call ended for want of memory.
bool runs_out(const std::function<void()> &call) {
  try {
    call();
    return false;
  } catch (const std::bad_alloc &) {
    return true;
  }
}

// Goes through the legs. Each allocation of theirs fails in its turn, and after that it goes on, or elsewhere first.
//
// `begin` makes what is tested anew.
struct Tested {
  std::function<void(int64_t batch)> seek;
  std::function<bool(int64_t batch)> delivers;  // the next batch: whether it is that of this number
  std::function<bool()> is_sound = [] { return true; };
};
void fail_every_allocation(std::span<const Leg> legs, const std::function<Tested()> &begin) {
  for (const auto fails : {FailingHeap::Fails::once, FailingHeap::Fails::from_then_on}) {
    for (const bool goes_elsewhere : {false, true}) {
      bool has_failed = true;
      for (int others = 0; has_failed; others++) {
        const testing::Context context("allocation %d fails%s%s", others,
                                       fails == FailingHeap::Fails::once ? "" : ", as do all after it",
                                       goes_elsewhere ? "; on elsewhere" : "");
        const Tested tested = begin();
        // After a failure: elsewhere, if that is asked for, and to the next batch in any case.
        const auto go_on = [&](int64_t next) {
          if (goes_elsewhere) {
            tested.seek(next + kElsewhere);
            CHECK(tested.delivers(next + kElsewhere));
            tested.seek(next);
          }
          CHECK(tested.delivers(next));
        };
        has_failed = false;
        int64_t left = others;
        // Whether this was done: once an allocation has failed, the others succeed.
        const auto done = [&](const std::function<void()> &step) {
          if (has_failed) {
            step();
            return true;
          }
          const FailingHeap heap(left, fails);
          const bool ran_out = runs_out(step);
          has_failed = heap.has_failed();
          left = heap.left();
          return !ran_out;
        };
        int64_t next = 0;
        for (const auto &[first, count] : legs) {
          if (first != next && !done([&] { tested.seek(first); })) {
            go_on(next);  // it is where it was
            tested.seek(first);
          }
          for (next = first; next < first + count; next++) {
            bool is_right = true;
            if (!done([&] { is_right = tested.delivers(next); })) go_on(next);
            CHECK(is_right && tested.is_sound());
          }
        }
      }
    }
  }
}

TEST(plans_begin_anew_where_memory_ran_out) {
  for (const Case &tested : kCases) {
    const testing::Context context("%s", tested.name);
    std::vector<std::vector<PlannedSample>> expected(kBatches);
    const auto reference = order_of(tested);
    for (auto &batch : expected) reference->next_batch(batch);
    fail_every_allocation(kLegs, [&] {
      const auto order = order_of(tested);
      return Tested{[order](int64_t batch) { order->seek(batch); },
                    [order, &expected](int64_t number) {
                      std::vector<PlannedSample> batch;
                      order->next_batch(batch);
                      return batch == expected[static_cast<size_t>(number)];
                    }};
    });
  }
}

constexpr uint64_t kBytes = 200;  // of each file

// The files of an order, each with bytes of its own.
class Files {
 public:
  Files() {
    catalogue_.root = folder_.path();
    for (size_t i = 0; i < kSize; i++) {
      const std::string name = std::to_string(i), empty = image_files::png(image_files::chunk("IDAT", ""));
      const std::string idat(kBytes - empty.size(), static_cast<char>(i));
      contents_.push_back(image_files::png(image_files::chunk("IDAT", idat)));
      Entry entry;
      entry.file = {name, kBytes};
      entry.label = static_cast<int>(i);
      entry.format = FileFormat::png;
      catalogue_.entries.push_back(entry);
      std::ofstream(folder_.path() + "/" + name, std::ios::binary) << contents_.back();
    }
  }

  const Catalogue &catalogue() const { return catalogue_; }

  // Whether a batch has the files that were planned. Allocates nothing.
  bool are(const std::vector<PlannedSample> &planned, const Engine::Batch &batch) const {
    return std::ranges::equal(planned, batch, [&](const PlannedSample &sample, const Engine::Delivered &delivered) {
      const auto bytes = delivered.files->image.bytes();
      const std::string &content = contents_[sample.entry];
      return delivered.label == static_cast<int>(sample.entry) && bytes.size() == content.size() &&
             std::memcmp(bytes.data(), content.data(), bytes.size()) == 0;
    });
  }

 private:
  TemporaryFolder folder_;
  std::vector<std::string> contents_;
  Catalogue catalogue_;
};

TEST(readers_deliver_the_same_batches_where_memory_ran_out) {
  const Files files;
  const uint64_t cache_bytes = 9 * kPage;
  const auto order = [&] {
    const BytesOf pages = listed_memory(std::vector<uint64_t>(kSize, kPage));
    return std::make_unique<SampleOrder>(kShard, kSize, liquid_plan(pages, cache_bytes));
  };
  std::vector<std::vector<PlannedSample>> expected(kBatches);
  const auto reference = order();
  for (auto &batch : expected) reference->next_batch(batch);
  fail_every_allocation(kShortLegs, [&] {
    const EngineOptions options{.reading = {.cache_bytes = cache_bytes}, .read_threads = 1, .batches_ahead = 1};
    const auto engine = std::make_shared<Engine>(files.catalogue(), order(), options, [](const std::string &) {});
    return Tested{[engine](int64_t batch) { engine->seek(batch); },
                  [engine, &files, &expected](int64_t number) {
                    const Engine::Batch batch = engine->next_batch();
                    return files.are(expected[static_cast<size_t>(number)], batch) && engine->position() == number + 1;
                  },
                  [engine, cache_bytes] {
                    const BatchPart last = engine->statistics().batches.back();
                    const auto held = static_cast<uint64_t>(last.current_bytes + last.next_bytes);
                    return last.current_bytes >= 0 && last.next_bytes >= 0 && held <= cache_bytes / kPage * kBytes;
                  }};
  });
}

}  // namespace
