// Epochs of draws: their batches, and what is held in memory.
#include "plans/weighted_plan.h"

#include <algorithm>
#include <map>

#include "listed_memory.h"
#include "orders.h"
#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

// Three classes of 2, 8 and 40 samples, equally often drawn; every third sample is L3, the others PNG.
WeightedSamples samples() {
  WeightedSamples made;
  for (uint32_t c = 0; const size_t size : {2, 8, 40}) {
    made.cells.push_back({static_cast<int>(c), 1});
    made.cell_of.insert(made.cell_of.end(), size, c++);
  }
  for (size_t i = 0; i < made.cell_of.size(); i++) made.formats.push_back(i % 3 ? FileFormat::png : FileFormat::l3);
  return made;
}

constexpr int64_t kEpochSize = 60;
const std::vector<uint64_t> kBytes(50, 4096);

WeightedPlan plan_of(WeightedPlanOptions options) {
  options.epoch_size = kEpochSize;
  return {options, WeightedDraws(samples(), options.shards, kEpochSize), listed_memory(kBytes)};
}

TEST(batches_hold_formats_and_hits_in_proportion) {
  for (const int batch_size : {4, 7, 20, 60, 100}) {
    const testing::Context context("batches of %d", batch_size);
    const WeightedPlanOptions options{
        .shards = {.batch_size = batch_size}, .cache_bytes = 30 * 4096, .constant_hits = true};
    WeightedPlan plan = plan_of(options);
    std::vector<bool> in_memory(50);
    for (int64_t epoch = 0; epoch < 5; epoch++) {
      std::vector<PlannedSample> planned;
      plan.plan(epoch, planned);
      CHECK_EQUAL(static_cast<int64_t>(planned.size()), kEpochSize);
      using Kind = std::pair<FileFormat, bool>;  // whether it comes from memory; in the first epoch, that varies
      std::vector<Kind> kinds;
      std::map<Kind, int64_t> totals;
      for (const PlannedSample &sample : planned) {
        CHECK_EQUAL(sample.hit, sample.keep);
        kinds.emplace_back(samples().formats[sample.entry], epoch > 0 && in_memory[sample.entry]);
        totals[kinds.back()]++;
      }
      for (const PlannedSample &sample : planned) in_memory[sample.entry] = in_memory[sample.entry] || sample.keep;
      const Segments segments = segments_of(options.shards, kEpochSize, epoch);
      for (auto kind = kinds.begin(); kind != kinds.end();) {
        const int64_t first = kind == kinds.begin() ? segments.first : 0;
        const int64_t size = first > 0 ? first : std::min<int64_t>(kinds.end() - kind, batch_size);
        for (const auto &[key, total] : totals)
          CHECK(is_share(std::count(kind, kind + size, key), total, size, kEpochSize));
        kind += size;
      }
    }
    CHECK_EQUAL(std::count(in_memory.begin(), in_memory.end(), true), 30);
  }
}

TEST(what_is_drawn_most_often_is_held) {
  WeightedPlan plan = plan_of({.seed = 3, .cache_bytes = 6 * 4096, .constant_hits = true});
  CHECK_EQUAL(plan.peak_bytes(), 6u * 4096);
  // Both samples of class 0, 10 draws each, and four of class 1, 2.5 draws each.
  CHECK_EQUAL(plan.hit_ratio(), 0.5);
  std::vector<PlannedSample> epoch;
  plan.plan(0, epoch);
  std::vector<uint32_t> held;
  for (const PlannedSample &sample : epoch) {
    CHECK_EQUAL(sample.hit, sample.keep);
    if (sample.keep) held.push_back(sample.entry);
  }
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  CHECK_EQUAL(held.size(), 6u);
  CHECK(held[0] == 0 && held[1] == 1 && held[5] < 10);
}

TEST(files_that_do_not_fit_are_passed_over) {
  std::vector<uint64_t> bytes = kBytes;
  bytes[0] = 1 << 20;
  const WeightedPlanOptions options{.epoch_size = kEpochSize, .cache_bytes = 4096};
  WeightedPlan plan(options, WeightedDraws(samples(), options.shards, kEpochSize), listed_memory(bytes));
  CHECK_EQUAL(plan.peak_bytes(), 4096u);
  CHECK_EQUAL(plan.hit_ratio(), 10.0 / 60);
}

TEST(nothing_is_held_without_memory) {
  WeightedPlan plan = plan_of({.constant_hits = true});
  std::vector<PlannedSample> epoch;
  plan.plan(1, epoch);
  CHECK(
      std::none_of(epoch.begin(), epoch.end(), [](const PlannedSample &sample) { return sample.keep || sample.hit; }));
  CHECK_EQUAL(plan.hit_ratio(), 0.0);
}

TEST(unshuffled_batches_follow_the_catalogue) {
  WeightedPlan plan = plan_of({.shards = {.batch_size = 60}, .shuffled = false});
  std::vector<PlannedSample> epoch;
  plan.plan(0, epoch);
  CHECK(std::is_sorted(epoch.begin(), epoch.end(),
                       [](const PlannedSample &a, const PlannedSample &b) { return a.entry < b.entry; }));
}

TEST(epochs_are_planned_in_any_order) {
  const WeightedPlanOptions options{.cache_bytes = 30 * 4096, .constant_hits = true};
  WeightedPlan forth = plan_of(options), back = plan_of(options);
  std::vector<std::vector<PlannedSample>> expected(6);
  for (int64_t epoch = 0; epoch < 6; epoch++) forth.plan(epoch, expected[epoch]);
  std::vector<PlannedSample> planned;
  for (int64_t epoch = 5; epoch >= 0; epoch--) {
    back.plan(epoch, planned);
    CHECK(planned == expected[epoch]);
  }
}

TEST(seeds_change_the_order_and_nothing_else) {
  std::vector<PlannedSample> one, other;
  plan_of({.seed = 1}).plan(2, one);
  plan_of({.seed = 2}).plan(2, other);
  CHECK(!std::equal(one.begin(), one.end(), other.begin(), other.end()));
  const auto by_entry = [](const PlannedSample &a, const PlannedSample &b) { return a.entry < b.entry; };
  std::sort(one.begin(), one.end(), by_entry);
  std::sort(other.begin(), other.end(), by_entry);
  CHECK(std::equal(one.begin(), one.end(), other.begin(), other.end()));
}

}  // namespace
