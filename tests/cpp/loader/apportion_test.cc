// Counts of formats, hits and misses in batches: never off the exact share by one.
#include "plans/apportion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "orders.h"
#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

// An epoch's samples by format, of random sizes, some of them with no hits or no misses.
std::vector<CacheCounts> random_totals(Random &random, int formats, int64_t largest) {
  std::vector<CacheCounts> totals;
  for (int i = 0; i < formats; i++) {
    const int64_t samples = 1 + random.below(static_cast<uint32_t>(largest));
    const int64_t hits = random.below(4) ? random.below(static_cast<uint32_t>(samples + 1)) : random.below(2) * samples;
    totals.push_back({hits, samples - hits});
  }
  return totals;
}

int64_t size_of(const std::vector<CacheCounts> &totals) {
  int64_t size = 0;
  for (const auto [hits, misses] : totals) size += hits + misses;
  return size;
}

// Returns the largest distance, in samples, of what a kind has got up to a segment from its exact share.
double check_epoch(const std::vector<CacheCounts> &totals, const Segments &segments) {
  double drift = 0;
  const int64_t size = size_of(totals);
  Apportionment apportionment(totals, segments);
  std::vector<CacheCounts> sums(totals.size());
  int64_t done = 0;
  for (int64_t segment = 0; segment < segments.count(); segment++) {
    const bool is_first = segments.first > 0 && segment == 0,
               is_last = segments.last > 0 && segment == segments.count() - 1;
    const int64_t part = is_first ? segments.first : is_last ? segments.last : segments.full;
    const std::vector<CacheCounts> &counts = apportionment.next();
    CHECK_EQUAL(counts.size(), totals.size());
    CHECK_EQUAL(size_of(counts), part);
    done += part;
    for (size_t i = 0; i < totals.size(); i++) {
      const auto [hits, misses] = counts[i];
      CHECK(hits >= 0 && misses >= 0);
      CHECK(is_share(hits, totals[i].hits, part, size));
      CHECK(is_share(misses, totals[i].misses, part, size));
      CHECK(is_share(hits + misses, totals[i].hits + totals[i].misses, part, size));
      sums[i].hits += hits;
      sums[i].misses += misses;
      const double share = static_cast<double>(done) / static_cast<double>(size);
      drift =
          std::max({drift, std::abs(static_cast<double>(sums[i].hits) - static_cast<double>(totals[i].hits) * share),
                    std::abs(static_cast<double>(sums[i].misses) - static_cast<double>(totals[i].misses) * share)});
    }
  }
  for (size_t i = 0; i < totals.size(); i++) {
    CHECK_EQUAL(sums[i].hits, totals[i].hits);
    CHECK_EQUAL(sums[i].misses, totals[i].misses);
  }
  return drift;
}

TEST(every_count_is_the_floor_or_the_ceiling_of_its_share) {
  Random random{1};
  for (int i = 0; i < 20000; i++) {
    const testing::Context context("case %d", i);
    const std::vector<CacheCounts> totals =
        random_totals(random, 1 + static_cast<int>(random.below(6)), i % 2 ? 30 : 300);
    const ShardOptions options{.pad_last_batch = random.below(4) == 0,
                               .batch_size = static_cast<int>(1 + random.below(40))};
    CHECK(check_epoch(totals, segments_of(options, size_of(totals), random.below(50))) < 2.5);
  }
}

TEST(fractions_are_carried_over) {
  // 0.3 and 3.3 hits a batch.
  CHECK(check_epoch({{300, 700}, {3300, 5700}}, segments_of({.batch_size = 10}, 10000, 0)) < 1);
}

TEST(formats_with_equal_shares_have_their_ceilings_in_turns) {
  for (int64_t formats = 1; formats <= 12; formats++) {
    for (int64_t hits = 0; hits <= 600; hits += 5) {
      const testing::Context context("%d formats with %d hits", static_cast<int>(formats), static_cast<int>(hits));
      const std::vector<CacheCounts> totals(static_cast<size_t>(formats), {hits, 600 - hits});
      const int64_t size = 600 * formats, batch = 6 * formats;
      Apportionment apportionment(totals, segments_of({.batch_size = static_cast<int>(batch)}, size, 0));
      for (int i = 0; i < 100; i++) {
        int64_t all_hits = 0;
        for (const CacheCounts &counts : apportionment.next()) all_hits += counts.hits;
        CHECK(is_share(all_hits, hits * formats, batch, size));
      }
    }
  }
}

TEST(counts_up_to_the_largest_catalogue) {
  // Products of sample counts come close to 2^62, in the test of shares too.
  const int64_t half = kMaxSamples / 2;
  check_epoch({{half / 3, half - half / 3}, {half - 1, kMaxSamples - half - (half - 1)}},
              segments_of({.batch_size = 1 << 28}, kMaxSamples, 3));
}

TEST(spreads_all_items) {
  // By lag alone, some would be left over in the first two.
  const std::pair<std::vector<int64_t>, int64_t> cases[] = {
      {{6, 6, 12, 1, 1, 1, 6, 3, 12, 12}, 12},
      {{6, 1, 6, 6, 6, 1, 1, 9, 0}, 9},
      {{2, 4, 1, 1}, 4},
  };
  for (const auto &[totals, steps] : cases) {
    EvenSpread spread(totals, steps);
    std::vector<int64_t> given(totals.size());
    int64_t items = 0;
    for (int64_t step = 0; step < steps; step++) {
      const std::vector<bool> &chosen = spread.next();
      const int64_t count = std::count(chosen.begin(), chosen.end(), true);
      CHECK(step == 0 || count == items);
      items = count;
      for (size_t kind = 0; kind < totals.size(); kind++) given[kind] += chosen[kind];
    }
    CHECK(given == totals);
  }
}

}  // namespace
