// Which samples the shards draw, and how often.
#include "plans/weighted_draws.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "orders.h"
#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

struct Case {
  WeightedSamples samples;
  std::vector<int64_t> cell_sizes;
  int64_t whole = 0;  // sum of the weights, which are whole numbers
  int64_t epoch_size;
  int num_shards;

  // The weight of a sample in an epoch over that of all, in units of 1 / (whole * the size of its cell).
  int64_t weight_of(uint32_t entry) const { return static_cast<int64_t>(samples.cells[samples.cell_of[entry]].weight); }
};

Case random_case(Random &random) {
  Case made;
  auto &[samples, cell_sizes, whole, epoch_size, num_shards] = made;
  const uint32_t cells = 1 + random.below(12), formats = 1 + random.below(3);
  for (uint32_t c = 0; c < cells; c++) {
    const uint32_t size = 1 + random.below(random.below(2) ? 3 : 30);
    for (uint32_t i = 0; i < size; i++) {
      samples.cell_of.push_back(c);
      samples.formats.push_back(static_cast<FileFormat>(1 + random.below(formats)));
    }
    cell_sizes.push_back(size);
    samples.cells.push_back({static_cast<int>(c / 2), static_cast<double>(c > 0 ? random.below(20) : 7)});
    whole += static_cast<int64_t>(samples.cells.back().weight);
  }
  epoch_size = 1 + random.below(200);
  num_shards = static_cast<int>(1 + random.below(static_cast<uint32_t>(std::min<int64_t>(epoch_size, 5))));
  return made;
}

// The entries that a shard draws, of all formats.
std::vector<uint32_t> all_draws(WeightedDraws &draws, int64_t epoch) {
  std::vector<uint32_t> all;
  for (const auto &[format, entries] : draws.draw(epoch)) all.insert(all.end(), entries.begin(), entries.end());
  return all;
}

TEST(all_shards_together_are_exact) {
  Random random{1};
  for (int i = 0; i < 300; i++) {
    const testing::Context context("case %d", i);
    const Case made = random_case(random);
    const auto &[samples, cell_sizes, whole, epoch_size, num_shards] = made;
    std::vector<WeightedDraws> shards;
    for (int shard = 0; shard < num_shards; shard++)
      shards.emplace_back(samples, ShardOptions{.shard_id = shard, .num_shards = num_shards}, epoch_size);

    std::vector<int64_t> sums(samples.cell_of.size());
    for (int64_t epoch = 0; epoch < 12; epoch++) {
      std::vector<int64_t> counts(sums.size()), cell_counts(cell_sizes.size());
      std::map<FileFormat, std::vector<int64_t>> formats;  // draws of each shard
      for (int shard = 0; shard < num_shards; shard++) {
        const std::vector<FormatGroup> groups = shards[shard].draw(epoch);
        CHECK_EQUAL(sample_count(groups), shard_size(shard, num_shards, epoch_size));
        for (const auto &[format, entries] : groups) {
          formats[format].resize(num_shards);
          formats[format][shard] = static_cast<int64_t>(entries.size());
          for (const uint32_t entry : entries) {
            CHECK(samples.formats[entry] == format);
            counts[entry]++;
            sums[entry]++;
            cell_counts[samples.cell_of[entry]]++;
          }
        }
      }
      for (size_t c = 0; c < cell_sizes.size(); c++)
        CHECK(is_share(cell_counts[c], epoch_size, static_cast<int64_t>(samples.cells[c].weight), whole));
      for (uint32_t entry = 0; entry < sums.size(); entry++) {
        const int64_t size = cell_sizes[samples.cell_of[entry]];
        CHECK(is_share(counts[entry], epoch_size, made.weight_of(entry), whole * size));
        // Off by less than one, and by less than one in the count of the cell.
        const double exact =
            static_cast<double>(epoch_size * (epoch + 1) * made.weight_of(entry)) / static_cast<double>(whole * size);
        CHECK(std::abs(static_cast<double>(sums[entry]) - exact) < 1 + 1 / static_cast<double>(size));
      }
      for (const auto &[format, by_shard] : formats) {
        const auto [least, most] = std::minmax_element(by_shard.begin(), by_shard.end());
        CHECK(*most - *least <= 1);
      }
    }
  }
}

// Classes 0 … count - 1 with i + 1 times `size` samples, each of the same weight.
WeightedSamples long_tail(int count, int size) {
  WeightedSamples samples;
  for (int c = 0; c < count; c++) {
    samples.cells.push_back({c, 1});
    samples.cell_of.insert(samples.cell_of.end(), size * (c + 1), static_cast<uint32_t>(c));
  }
  samples.formats.assign(samples.cell_of.size(), FileFormat::png);
  return samples;
}

TEST(shards_are_balanced_too) {
  const WeightedSamples samples = long_tail(10, 3);
  for (int shard = 0; shard < 4; shard++) {
    WeightedDraws draws(samples, {.shard_id = shard, .num_shards = 4}, 500);
    for (int64_t epoch = 0; epoch < 5; epoch++) {
      std::vector<int64_t> counts(10);
      for (const uint32_t entry : all_draws(draws, epoch)) counts[samples.cell_of[entry]]++;
      for (const int64_t count : counts) CHECK(count == 12 || count == 13);
    }
  }
}

TEST(samples_stay_with_their_shard) {
  const WeightedSamples samples = long_tail(10, 20);
  WeightedDraws draws(samples, {.shard_id = 1, .num_shards = 4}, 500);
  const std::vector<double> rates = draws.rates();
  std::vector<int64_t> counts(rates.size());
  int64_t strangers = 0;
  for (int64_t epoch = 0; epoch < 40; epoch++)
    for (const uint32_t entry : all_draws(draws, epoch)) {
      counts[entry]++;
      strangers += rates[entry] == 0;
    }
  CHECK(strangers < 40 * 125 / 8);  // at the borders of shards, where counts differ by one
  double off = 0;
  for (size_t entry = 0; entry < rates.size(); entry++)
    off += std::abs(static_cast<double>(counts[entry]) - 40 * rates[entry]);
  CHECK(off < 40 * 125 / 5.0);
}

TEST(epochs_are_drawn_in_any_order) {
  Random random{2};
  const Case made = random_case(random);
  WeightedDraws forth(made.samples, {}, made.epoch_size), back(made.samples, {}, made.epoch_size);
  std::vector<std::string> expected;
  for (int64_t epoch = 0; epoch < 9; epoch++) expected.push_back(text(all_draws(forth, epoch)));
  for (int64_t epoch = 8; epoch >= 0; epoch--) CHECK_EQUAL(text(all_draws(back, epoch)), expected[epoch]);
}

TEST(small_epochs_cover_the_dataset) {
  WeightedSamples samples = long_tail(4, 5);  // 50 samples
  for (Cell &cell : samples.cells) cell.weight = 5 * (cell.label + 1);
  WeightedDraws draws(samples, {}, 5);
  for (int64_t round = 0; round < 3; round++) {
    std::vector<uint32_t> entries;
    for (int64_t epoch = 0; epoch < 10; epoch++)
      for (const uint32_t entry : all_draws(draws, 10 * round + epoch)) entries.push_back(entry);
    std::sort(entries.begin(), entries.end());
    CHECK_EQUAL(entries.size(), 50u);
    CHECK(std::adjacent_find(entries.begin(), entries.end()) == entries.end());
  }
}

}  // namespace
