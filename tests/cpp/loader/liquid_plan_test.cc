// Liquid's and MinIO's plans: constant counts, exact hits, bounded memory, good shuffling.
#include "plans/liquid_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "listed_memory.h"
#include "orders.h"
#include "plans/minio_plan.h"
#include "plans/mix_plan.h"
#include "plans/random.h"
#include "plans/stratified_epoch.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

// A catalogue and what is asked of it.
struct Case {
  std::vector<FileFormat> formats;
  std::vector<uint64_t> bytes;
  LiquidPlanOptions options;

  int64_t size() const { return static_cast<int64_t>(formats.size()); }
  std::vector<FormatGroup> groups() const { return format_groups(formats, options.shards, true); }
  LiquidPlan liquid() const { return {options, groups(), listed_memory(bytes)}; }
  MinioPlan minio() const {
    return {options.shards, groups(), listed_memory(bytes), bytes.size(), options.cache_bytes, options.seed};
  }
};

Case random_case(Random &random) {
  Case made;
  const uint32_t size = 1 + random.below(random.below(2) ? 20 : 300), formats = 1 + random.below(4);
  uint64_t total = 0;
  for (uint32_t i = 0; i < size; i++) {
    made.formats.push_back(static_cast<FileFormat>(random.below(formats)));
    made.bytes.push_back(4096 * (1 + random.below(random.below(8) ? 10 : 200)));
    total += made.bytes.back();
  }
  ShardOptions &shards = made.options.shards;
  shards.num_shards = static_cast<int>(1 + random.below(std::min(size, 4u)));
  shards.shard_id = static_cast<int>(random.below(static_cast<uint32_t>(shards.num_shards)));
  shards.pad_last_batch = random.below(2);
  shards.batch_size = static_cast<int>(1 + random.below(random.below(2) ? 8 : 60));
  made.options.cache_bytes = total / 100 * random.below(130) / static_cast<uint64_t>(shards.num_shards);
  made.options.seed = random.next();
  made.options.sequential = random.below(2);
  return made;
}

// What the plan says is held, checked batch by batch.
class Memory {
 public:
  explicit Memory(const Case &of) : case_(of) {}

  void deliver(const std::vector<PlannedSample> &batch) {
    std::vector<uint32_t> released;
    for (const PlannedSample &sample : batch) {
      if (sample.hit) {
        CHECK(held_.count(sample.entry));
        if (!sample.keep) released.push_back(sample.entry);
      } else if (sample.keep) {
        held_.insert(sample.entry);
      } else {
        CHECK(sample.padding || !held_.count(sample.entry) ||
              std::count(released.begin(), released.end(), sample.entry));
      }
    }
    for (const uint32_t entry : released) held_.erase(held_.find(entry));
    uint64_t bytes = 0;
    for (const uint32_t entry : held_) bytes += case_.bytes[entry];
    CHECK(bytes <= case_.options.cache_bytes);
    peak_ = std::max(peak_, bytes);
  }

  uint64_t peak() const { return peak_; }

 private:
  const Case &case_;
  std::multiset<uint32_t> held_;
  uint64_t peak_ = 0;
};

// Delivers epochs and checks everything that is promised of each batch.
void check_liquid(const Case &of, int epochs) {
  auto made = std::make_unique<LiquidPlan>(of.liquid());
  const LiquidPlan &plan = *made;
  const int64_t size = plan.epoch_size(0);
  const std::vector<FormatGroup> groups = of.groups();
  // There is one ratio for all formats of which these are the whole samples.
  double least = 0, greatest = 2;
  for (size_t i = 0; i < groups.size(); i++) {
    const auto total = static_cast<double>(groups[i].entries.size()), held = static_cast<double>(plan.held()[i]);
    least = std::max(least, held / total);
    greatest = std::min(greatest, (held + 1) / total);
  }
  CHECK(least < greatest);
  CHECK_EQUAL(std::llround(plan.hit_ratio() * static_cast<double>(size)),
              std::accumulate(plan.held().begin(), plan.held().end(), int64_t{0}));
  CHECK(plan.peak_bytes() <= of.options.cache_bytes);

  SampleOrder order(of.options.shards, of.size(), std::move(made));
  Memory memory(of);
  std::map<uint32_t, std::set<uint32_t>> delivered, kept;  // by epoch
  std::vector<PlannedSample> batch;
  for (;;) {
    order.next_batch(batch);
    if (batch.front().epoch >= static_cast<uint32_t>(epochs)) break;
    memory.deliver(batch);

    std::map<uint32_t, std::map<FileFormat, CacheCounts>> counts;
    std::map<uint32_t, std::map<FileFormat, int64_t>> keeps;
    std::map<uint32_t, int64_t> parts;
    for (const PlannedSample &sample : batch) {
      if (sample.padding) continue;
      CHECK(delivered[sample.epoch].insert(sample.entry).second);
      CHECK_EQUAL(sample.hit, sample.epoch > 0 && kept[sample.epoch - 1].count(sample.entry) > 0);
      if (sample.keep) kept[sample.epoch].insert(sample.entry);
      const FileFormat format = of.formats[sample.entry];
      (sample.hit ? counts[sample.epoch][format].hits : counts[sample.epoch][format].misses)++;
      keeps[sample.epoch][format] += sample.keep;
      parts[sample.epoch]++;
    }
    for (const auto &[epoch, part] : parts) {
      for (size_t i = 0; i < groups.size(); i++) {
        const auto [hits, misses] = counts[epoch][groups[i].format];
        const int64_t total = static_cast<int64_t>(groups[i].entries.size()), held = plan.held()[i];
        CHECK(is_share(hits + misses, total, part, size));
        CHECK(is_share(keeps[epoch][groups[i].format], held, part, size));
        if (epoch == 0) {
          CHECK_EQUAL(hits, 0);
          continue;
        }
        CHECK(is_share(hits, held, part, size));
        CHECK(is_share(misses, total - held, part, size));
        CHECK_EQUAL(keeps[epoch][groups[i].format], hits);
      }
    }
  }
  CHECK(memory.peak() <= plan.peak_bytes());
  for (int epoch = 0; epoch < epochs; epoch++) {
    CHECK_EQUAL(static_cast<int64_t>(delivered[epoch].size()), size);
    CHECK_EQUAL(static_cast<int64_t>(kept[epoch].size()),
                std::accumulate(plan.held().begin(), plan.held().end(), int64_t{0}));
  }
}

// Files of one size, in sorted classes.
Case equal_files(int64_t size, int batch_size, double memory) {
  Case made{std::vector<FileFormat>(size, FileFormat::png), std::vector<uint64_t>(size, 4096), {}};
  made.options.shards.batch_size = batch_size;
  made.options.cache_bytes = static_cast<uint64_t>(memory * static_cast<double>(size) * 4096);
  made.options.seed = 7;
  return made;
}

std::vector<uint32_t> epoch_entries(EpochPlan &plan, int64_t epoch) {
  std::vector<PlannedSample> samples;
  plan.plan(epoch, samples);
  std::vector<uint32_t> entries;
  for (const PlannedSample &sample : samples) entries.push_back(sample.entry);
  return entries;
}

std::vector<uint32_t> positions(const std::vector<uint32_t> &entries) {
  std::vector<uint32_t> result(entries.size());
  for (size_t i = 0; i < entries.size(); i++) result[entries[i]] = static_cast<uint32_t>(i);
  return result;
}

// Of two permutations of the same numbers.
double correlation(const std::vector<uint32_t> &a, const std::vector<uint32_t> &b) {
  const double n = static_cast<double>(a.size()), mean = (n - 1) / 2;
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += (a[i] - mean) * (b[i] - mean);
  return sum / (n * (n * n - 1) / 12);
}

double classes_per_batch(const std::vector<uint32_t> &entries, size_t batch_size, uint32_t class_size) {
  size_t classes = 0;
  for (size_t begin = 0; begin < entries.size(); begin += batch_size) {
    std::set<uint32_t> seen;
    for (size_t i = begin; i < begin + batch_size; i++) seen.insert(entries[i] / class_size);
    classes += seen.size();
  }
  return static_cast<double>(classes) / (static_cast<double>(entries.size()) / static_cast<double>(batch_size));
}

TEST(keeps_every_promise_in_random_cases) {
  Random random{1};
  for (int i = 0; i < 1500; i++) {
    const testing::Context context("case %d", i);
    check_liquid(random_case(random), 7);
  }
}

TEST(holds_as_many_equal_files_as_fit) {
  LiquidPlan plan = equal_files(20000, 50, 0.3).liquid();
  CHECK_EQUAL(plan.hit_ratio(), 0.3);
  CHECK_EQUAL(plan.peak_bytes(), 6000u * 4096);
}

TEST(hits_everything_when_everything_fits) {
  LiquidPlan plan = equal_files(100, 7, 1).liquid();
  CHECK_EQUAL(plan.hit_ratio(), 1);
  std::vector<PlannedSample> samples;
  plan.plan(3, samples);
  for (const PlannedSample &sample : samples) CHECK(sample.hit && sample.keep);
}

TEST(keeps_nothing_without_memory) {
  LiquidPlan plan = equal_files(100, 7, 0).liquid();
  CHECK_EQUAL(plan.hit_ratio(), 0);
  CHECK_EQUAL(plan.peak_bytes(), 0u);
  std::vector<PlannedSample> samples;
  plan.plan(3, samples);
  for (const PlannedSample &sample : samples) CHECK(!sample.hit && !sample.keep);
}

TEST(is_a_shuffled_mix_when_nothing_is_held) {
  Random random{13};
  for (int i = 0; i < 100; i++) {
    const testing::Context context("case %d", i);
    Case made = random_case(random);
    made.options.cache_bytes = 0;
    made.options.sequential = false;
    LiquidPlan liquid = made.liquid();
    MixPlan mix(made.options.shards, made.groups(), true, made.options.seed);
    std::vector<PlannedSample> a, b;
    for (int epoch = 0; epoch < 4; epoch++) {
      liquid.plan(epoch, a);
      mix.plan(epoch, b);
      CHECK(a == b);
    }
  }
}

TEST(holds_about_as_much_as_fits_of_files_that_differ) {
  Random random{15};
  Case made = equal_files(3000, 30, 0);
  uint64_t total = 0;
  for (uint64_t &bytes : made.bytes) total += bytes = 4096 * (1 + random.below(9));
  made.options.cache_bytes = total * 3 / 10;
  const double ratio = made.liquid().hit_ratio();
  CHECK(ratio > 0.28 && ratio < 0.31);
}

TEST(the_peak_is_that_of_three_epochs) {
  Random random{17};
  Case made = equal_files(300, 20, 0);
  for (uint64_t &bytes : made.bytes) bytes = 4096 * (1 + random.below(50));
  made.options.cache_bytes = 300 * 10 * 4096;
  const uint64_t planned = made.liquid().peak_bytes();
  SampleOrder order(made.options.shards, made.size(), std::make_unique<LiquidPlan>(made.liquid()));
  Memory memory(made);
  std::vector<PlannedSample> batch;
  for (int i = 0; i < 3 * 15; i++) {
    order.next_batch(batch);
    memory.deliver(batch);
  }
  CHECK_EQUAL(memory.peak(), planned);
}

// Whether what three epochs hold, drawn with a ratio of `ratio` / (samples of the shard), stays within the limit.
bool three_epochs_fit(const Case &of, int64_t ratio) {
  const std::vector<FormatGroup> groups = of.groups();
  const int64_t size = sample_count(groups);
  std::set<uint32_t> kept;
  int64_t bytes = 0;
  for (int64_t epoch = 0; epoch < 3; epoch++) {
    Random random = epoch_random(of.options.seed, static_cast<uint64_t>(epoch), of.options.shards.shard_id);
    std::vector<Stratum> strata;
    for (const auto &[format, entries] : groups) {
      Stratum stratum{.kept = static_cast<int64_t>(entries.size()) * ratio / size};
      for (const uint32_t entry : entries) (kept.count(entry) ? stratum.hits : stratum.misses).push_back(entry);
      shuffle(std::span(stratum.hits), random);
      if (!of.options.sequential) shuffle(std::span(stratum.misses), random);
      strata.push_back(std::move(stratum));
    }
    kept.clear();
    std::vector<PlannedSample> samples;
    StratifiedEpoch stratified(std::move(strata), segments_of(of.options.shards, size, epoch));
    while (!stratified.done()) {
      const auto [segment, counts] = stratified.next(samples);
      for (const PlannedSample &sample : segment)
        bytes -= sample.hit ? static_cast<int64_t>(of.bytes[sample.entry]) : 0;
      for (size_t begin = 0; const auto [keeps, others] : counts) {
        const std::span part = segment.subspan(begin, keeps + others);
        shuffle_front(part, keeps, random);
        for (const PlannedSample &sample : part.first(keeps)) {
          kept.insert(sample.entry);
          bytes += static_cast<int64_t>(of.bytes[sample.entry]);
        }
        begin += part.size();
      }
      if (bytes > static_cast<int64_t>(of.options.cache_bytes)) return false;
      shuffle(segment, random);
    }
  }
  return true;
}

// That the ratio of a plan fits, and not all that are larger by `step` at most. Ratios that hold equally many samples
// of each format are alike.
void check_ratio(const Case &of, int64_t step) {
  const LiquidPlan plan = of.liquid();
  const std::vector<FormatGroup> groups = of.groups();
  const int64_t size = sample_count(groups);
  int64_t ratio = size;
  const auto is_held = [&](size_t i) {
    return static_cast<int64_t>(groups[i].entries.size()) * ratio / size == plan.held()[i];
  };
  const auto all_held = [&] {
    for (size_t i = 0; i < groups.size(); i++)
      if (!is_held(i)) return false;
    return true;
  };
  while (!all_held()) CHECK(--ratio >= 0);
  CHECK(three_epochs_fit(of, ratio));
  int64_t larger = ratio + 1;
  while (larger <= std::min(ratio + step, size) && three_epochs_fit(of, larger)) larger++;
  CHECK(ratio == size || larger <= ratio + step);
}

TEST(no_larger_ratio_fits) {
  Random random{23};
  for (int i = 0; i < 500; i++) {
    const testing::Context context("case %d", i);
    check_ratio(random_case(random), 1);
  }
}

TEST(the_ratio_of_many_samples_is_exact_to_a_ten_thousandth) {
  // Sizes differ so little that hardly any ratio fits by chance.
  Random random{25};
  Case made = equal_files(30'000, 100, 0);
  uint64_t total = 0;
  for (uint64_t &bytes : made.bytes) total += bytes = 4096 * (50 + random.below(4));
  for (const uint64_t percent : {5, 20, 35, 50, 65, 80, 95}) {
    const testing::Context context("%d percent", static_cast<int>(percent));
    made.options.cache_bytes = total / 100 * percent;
    check_ratio(made, 3);
  }
}

TEST(a_shuffle_that_is_skipped_draws_as_much) {
  for (const size_t size : {0, 1, 2, 32, 1'000'000}) {  // of many, some numbers are drawn twice
    Random one{size}, other{size};
    std::vector<uint32_t> values(size);
    shuffle(std::span(values), one);
    skip_shuffle(size, other);
    CHECK_EQUAL(one.next(), other.next());
  }
}

// Of each batch of an epoch, the samples that are kept.
std::vector<std::set<uint32_t>> kept_by_batch(LiquidPlan &plan, int64_t epoch, size_t batch_size,
                                              std::vector<PlannedSample> &samples) {
  plan.plan(epoch, samples);
  std::vector<std::set<uint32_t>> kept((samples.size() + batch_size - 1) / batch_size);
  for (size_t i = 0; i < samples.size(); i++) {
    if (samples[i].keep) kept[i / batch_size].insert(samples[i].entry);
  }
  return kept;
}

TEST(a_batch_over_the_limit_keeps_as_few_other_samples_as_possible) {
  // The first batch that a plan keeps otherwise than one with the same ratio and a little more memory, which shows what
  // was drawn.
  Random random{19};
  int found = 0;
  for (int i = 0; i < 40; i++) {
    const testing::Context context("case %d", i);
    Case made = equal_files(200, 40, 0);
    made.options.seed = random.next();
    uint64_t total = 0;
    for (uint64_t &bytes : made.bytes) total += bytes = 4096 * (1 + random.below(100));
    made.options.cache_bytes = total * 3 / 10;
    Case roomy = made;
    const std::vector<int64_t> held = made.liquid().held();
    for (Case more = made; more.liquid().held() == held; more.options.cache_bytes += 4096) roomy = more;

    LiquidPlan tight = made.liquid(), drawn = roomy.liquid();
    std::vector<PlannedSample> samples, others;
    int64_t before = 0;  // bytes held
    bool differ = false;
    for (int epoch = 0; epoch < 30 && !differ; epoch++) {
      const auto repaired = kept_by_batch(tight, epoch, 40, samples),
                 as_drawn = kept_by_batch(drawn, epoch, 40, others);
      for (size_t batch = 0; batch < repaired.size() && !differ; batch++) {
        std::vector<int64_t> added, evicted;  // sizes: of misses kept, of hits evicted, as drawn
        int64_t growth = 0;
        size_t swaps = 0;
        for (size_t j = batch * 40; j < (batch + 1) * 40; j++) {
          const PlannedSample &sample = samples[j];
          const auto bytes = static_cast<int64_t>(made.bytes[sample.entry]);
          const bool keep = as_drawn[batch].count(sample.entry) > 0;
          if (keep && !sample.hit) added.push_back(bytes);
          if (!keep && sample.hit) evicted.push_back(bytes);
          growth += (keep - sample.hit) * bytes;
          swaps += keep && !sample.keep;
        }
        differ = swaps > 0;
        if (differ) {
          std::sort(added.rbegin(), added.rend());
          std::sort(evicted.begin(), evicted.end());
          int64_t excess = before + growth - static_cast<int64_t>(made.options.cache_bytes);
          size_t needed = 0;
          for (; excess > 0; needed++) excess -= added[needed] - evicted[needed];
          CHECK_EQUAL(swaps, needed);
          found++;
        } else {
          before += growth;
        }
      }
    }
  }
  CHECK(found > 10);
}

TEST(later_epochs_stay_within_the_limit) {
  // Sizes that differ widely: what is drawn for later epochs takes more memory than the first ones unless repaired.
  Random random{3};
  Case made = equal_files(400, 20, 0);
  uint64_t total = 0;
  for (uint64_t &bytes : made.bytes) total += bytes = 4096 * (random.below(10) ? 1 : 100 + random.below(100));
  made.options.cache_bytes = total * 3 / 10;
  check_liquid(made, 40);
  LiquidPlan plan = made.liquid();
  const uint64_t peak = plan.peak_bytes();
  epoch_entries(plan, 39);
  CHECK(plan.peak_bytes() > peak);
  CHECK(plan.peak_bytes() <= made.options.cache_bytes);
}

TEST(sequential_misses_come_in_catalogue_order) {
  Case made = equal_files(1000, 10, 0.3);
  made.options.sequential = true;
  LiquidPlan plan = made.liquid();
  std::vector<PlannedSample> samples;
  plan.plan(2, samples);
  uint32_t before = 0;  // last of the batch before
  for (size_t begin = 0; begin < samples.size(); begin += 10) {
    uint32_t last = before;
    for (size_t i = begin; i < begin + 10; i++) {
      if (samples[i].hit) continue;
      CHECK(samples[i].entry >= before);
      last = std::max(last, samples[i].entry);
    }
    before = last;
  }
}

TEST(resumes_at_any_batch) {
  Random random{5};
  for (int i = 0; i < 100; i++) {
    const testing::Context context("case %d", i);
    const Case made = random_case(random);
    SampleOrder order(made.options.shards, made.size(), std::make_unique<LiquidPlan>(made.liquid()));
    SampleOrder resumed(made.options.shards, made.size(), std::make_unique<LiquidPlan>(made.liquid()));
    std::vector<std::vector<PlannedSample>> batches(30);
    for (auto &batch : batches) order.next_batch(batch);
    std::vector<PlannedSample> batch;
    for (const int64_t at : {random.below(30), random.below(30), 0u}) {
      resumed.seek(at);
      for (size_t j = at; j < batches.size(); j++) {
        resumed.next_batch(batch);
        CHECK(batch == batches[j]);
      }
    }
  }
}

TEST(shuffles_as_well_as_a_permutation) {
  // 100 classes of 200 files in sorted order. The correlation of two unrelated permutations of 20000 has a standard
  // deviation of 0.0071, its mean over 20 epochs one of 0.0016.
  constexpr size_t kBatch = 50;
  constexpr int kEpochs = 20;
  LiquidPlan plan = equal_files(20000, kBatch, 0.3).liquid();
  Random random{9};
  std::vector<uint32_t> disk(20000), before = positions(epoch_entries(plan, 0));
  std::iota(disk.begin(), disk.end(), 0);
  std::vector<uint32_t> permutation = disk;
  double with_disk = 0, with_before = 0, classes = 0, ideal = 0;
  for (int epoch = 1; epoch <= kEpochs; epoch++) {
    const std::vector<uint32_t> entries = epoch_entries(plan, epoch), now = positions(entries);
    with_disk += correlation(disk, now) / kEpochs;
    with_before += correlation(before, now) / kEpochs;
    before = now;
    classes += classes_per_batch(entries, kBatch, 200) / kEpochs;
    shuffle(std::span(permutation), random);
    ideal += classes_per_batch(permutation, kBatch, 200) / kEpochs;
  }
  CHECK(std::abs(with_disk) < 0.006);
  CHECK(std::abs(with_before) < 0.006);
  CHECK(std::abs(classes / ideal - 1) < 0.01);
}

TEST(draws_what_is_kept_and_the_order_in_a_batch) {
  // About five standard deviations are allowed. Hits and L3 files stand anywhere in a batch.
  Case made = equal_files(20000, 50, 0.3);
  for (size_t i = 0; i < made.formats.size(); i += 2) made.formats[i] = FileFormat::l3;
  LiquidPlan plan = made.liquid();
  std::vector<PlannedSample> samples;
  plan.plan(1, samples);
  double hits = 0, kept_hits = 0, hit_places = 0, l3_places = 0;
  for (size_t i = 0; i < samples.size(); i++) {
    const double place = static_cast<double>(i % 50);
    hits += samples[i].hit;
    kept_hits += samples[i].hit && samples[i].keep;
    hit_places += samples[i].hit * place;
    l3_places += (samples[i].entry % 2 == 0) * place;
  }
  CHECK(std::abs(kept_hits / hits - 0.3) < 0.03);
  CHECK(std::abs(hit_places / hits - 24.5) < 0.95);
  CHECK(std::abs(l3_places / 10000 - 24.5) < 0.7);
}

TEST(minio_holds_a_fixed_part) {
  Random random{11};
  for (int i = 0; i < 200; i++) {
    const testing::Context context("case %d", i);
    const Case made = random_case(random);
    MinioPlan plan = made.minio();
    std::vector<PlannedSample> samples;
    std::set<uint32_t> held;
    for (int epoch = 0; epoch < 3; epoch++) {
      plan.plan(epoch, samples);
      std::set<uint32_t> kept;
      uint64_t bytes = 0;
      for (const PlannedSample &sample : samples) {
        CHECK_EQUAL(sample.hit, epoch > 0 && sample.keep);
        if (!sample.keep) continue;
        kept.insert(sample.entry);
        bytes += made.bytes[sample.entry];
      }
      CHECK_EQUAL(bytes, plan.peak_bytes());
      CHECK(bytes <= made.options.cache_bytes);
      CHECK_EQUAL(std::accumulate(plan.held().begin(), plan.held().end(), int64_t{0}),
                  static_cast<int64_t>(kept.size()));
      if (epoch > 0) CHECK(kept == held);
      held = kept;
    }
  }
}

TEST(minio_fills_the_memory_it_is_given) {
  Case made = equal_files(1000, 10, 0.3);
  CHECK_EQUAL(made.minio().held()[0], 300);
  for (size_t i = 0; i < 100; i++) made.bytes[i] = made.options.cache_bytes + 1;  // files that never fit
  CHECK_EQUAL(made.minio().held()[0], 300);
}

}  // namespace
