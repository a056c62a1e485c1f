// Division of formats among shards, and epochs that hold them in proportion.
#include "plans/mix_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "orders.h"
#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

std::vector<FileFormat> random_formats(Random &random, int64_t size, int count) {
  std::vector<FileFormat> formats;
  for (int64_t i = 0; i < size; i++)
    formats.push_back(static_cast<FileFormat>(random.below(static_cast<uint32_t>(count * count)) / count));
  return formats;
}

TEST(shards_share_every_format) {
  Random random{1};
  for (int i = 0; i < 500; i++) {
    const testing::Context context("case %d", i);
    const int64_t size = 1 + random.below(200);
    const std::vector<FileFormat> formats = random_formats(random, size, 1 + static_cast<int>(random.below(5)));
    ShardOptions options{.num_shards =
                             static_cast<int>(1 + random.below(static_cast<uint32_t>(std::min<int64_t>(size, 9))))};
    std::map<FileFormat, int64_t> totals;
    for (const FileFormat format : formats) totals[format]++;

    std::set<uint32_t> seen;
    for (options.shard_id = 0; options.shard_id < options.num_shards; options.shard_id++) {
      const std::vector<FormatGroup> groups = format_groups(formats, options, i % 2);
      CHECK_EQUAL(sample_count(groups), shard_size(options.shard_id, options.num_shards, size));
      std::map<FileFormat, int64_t> counts;
      for (const auto &[format, entries] : groups) {
        CHECK(!entries.empty() && std::is_sorted(entries.begin(), entries.end()));
        counts[format] = static_cast<int64_t>(entries.size());
        for (const uint32_t entry : entries) {
          CHECK(formats[entry] == format);
          CHECK(seen.insert(entry).second);
        }
      }
      for (const auto &[format, total] : totals) {
        CHECK(counts[format] >= total / options.num_shards &&
              counts[format] <= (total + options.num_shards - 1) / options.num_shards);
      }
    }
    CHECK_EQUAL(static_cast<int64_t>(seen.size()), size);
  }
}

TEST(shards_are_stretches_unless_drawn) {
  const std::vector<FileFormat> formats(100, FileFormat::png);
  const ShardOptions options{.shard_id = 1, .num_shards = 4};
  CHECK_EQUAL(format_groups(formats, options, false)[0].entries.front(), 25u);
  CHECK_EQUAL(format_groups(formats, options, false)[0].entries.back(), 49u);
}

TEST(drawn_shards_get_one_of_the_neighbours_each) {
  // 20,000 times one of seven. About five standard deviations are allowed.
  constexpr uint32_t kShards = 7, kTurns = 20'000;
  const std::vector<FileFormat> formats(kShards * kTurns + 3, FileFormat::png);
  for (int shard = 0; shard < static_cast<int>(kShards); shard++) {
    const testing::Context context("shard %d", shard);
    const auto groups = format_groups(formats, {.shard_id = shard, .num_shards = kShards}, true);
    const std::vector<uint32_t> &entries = groups[0].entries;
    std::map<uint32_t, int> places, steps;
    for (uint32_t turn = 0; turn < kTurns; turn++) {
      CHECK_EQUAL(entries[turn] / kShards, turn);
      places[entries[turn] % kShards]++;
      if (turn > 0) steps[(entries[turn] - entries[turn - 1]) % kShards]++;  // if one depended on the one before
    }
    for (uint32_t place = 0; place < kShards; place++) {
      CHECK(std::abs(places[place] - static_cast<int>(kTurns / kShards)) < 250);
      CHECK(std::abs(steps[place] - static_cast<int>(kTurns / kShards)) < 250);
    }
  }
}

// Thirty files of which every third is L3, the others PNG.
std::vector<FormatGroup> mixed_groups() {
  std::vector<FileFormat> formats;
  for (int i = 0; i < 30; i++) formats.push_back(i % 3 ? FileFormat::png : FileFormat::l3);
  return format_groups(formats, {}, false);
}

SampleOrder mixed_order(const ShardOptions &options, bool shuffled, uint64_t seed) {
  return {options, 30, std::make_unique<MixPlan>(options, mixed_groups(), shuffled, seed)};
}

TEST(unshuffled_batches_follow_the_catalogue) {
  SampleOrder order = mixed_order({.batch_size = 6}, false, 0);
  CHECK_EQUAL(text(next_entries(order, 2)), "0 1 2 3 4 5 6 7 8 9 10 11 ");
}

TEST(every_epoch_delivers_every_sample_once_in_proportion) {
  for (const bool shuffled : {false, true}) {
    SampleOrder order = mixed_order({.batch_size = 7}, shuffled, 5);
    std::map<uint32_t, std::multiset<uint32_t>> epochs;
    std::vector<PlannedSample> batch;
    for (int i = 0; i < 30; i++) {
      order.next_batch(batch);
      std::map<uint32_t, int> l3, size;
      for (const PlannedSample &sample : batch) {
        CHECK(!sample.hit && !sample.keep && !sample.padding);
        epochs[sample.epoch].insert(sample.entry);
        l3[sample.epoch] += sample.entry % 3 == 0;
        size[sample.epoch]++;
      }
      for (const auto &[epoch, count] : size) CHECK(l3[epoch] == count / 3 || l3[epoch] == (count + 2) / 3);
    }
    CHECK_EQUAL(epochs.size(), 7u);
    for (const auto &[epoch, entries] : epochs) {
      CHECK_EQUAL(entries.size(), 30u);
      CHECK_EQUAL(std::set<uint32_t>(entries.begin(), entries.end()).size(), 30u);
    }
  }
}

TEST(shuffled_epochs_depend_on_seed_and_epoch_alone) {
  const ShardOptions options{.batch_size = 30};
  SampleOrder order = mixed_order(options, true, 1), same = mixed_order(options, true, 1),
              other = mixed_order(options, true, 2);
  const std::vector<uint32_t> entries = next_entries(order, 1);
  CHECK(std::any_of(entries.begin(), entries.begin() + 10,
                    [](uint32_t entry) { return entry % 3 != 0; }));  // not all L3 files first
  const std::string first = text(entries), second = text(next_entries(order, 1));
  CHECK(first != second);
  CHECK(first != text(next_entries(other, 1)));
  same.seek(1);
  CHECK_EQUAL(text(next_entries(same, 1)), second);
}

}  // namespace
