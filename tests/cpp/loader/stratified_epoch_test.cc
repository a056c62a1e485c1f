// Dealing of formats, hits and misses to batches.
#include "plans/stratified_epoch.h"

#include <numeric>

#include "orders.h"
#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

// Numbers from `first` on.
std::vector<uint32_t> entries(uint32_t first, uint32_t count) {
  std::vector<uint32_t> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

// "3 4* | 5": the samples of all segments, hits with a star.
std::string dealt(std::vector<Stratum> strata, const Segments &segments) {
  StratifiedEpoch epoch(std::move(strata), segments);
  std::vector<PlannedSample> samples;
  std::string text;
  while (!epoch.done()) {
    for (const PlannedSample &sample : epoch.next(samples).samples)
      text += std::to_string(sample.entry) + (sample.hit ? "* " : " ");
    text += "| ";
  }
  return text;
}

TEST(deals_each_stratum_in_its_order) {
  CHECK_EQUAL(dealt({{.misses = {8, 7, 6, 5}}, {.misses = {2, 1}}}, segments_of({.batch_size = 3}, 6, 0)),
              "8 7 2 | 6 5 1 | ");
}

TEST(deals_hits_before_misses) {
  CHECK_EQUAL(dealt({{.hits = {9, 8}, .misses = {7, 6}, .kept = 2}}, segments_of({.batch_size = 2}, 4, 1)),
              "9* 7 | 8* 6 | ");
}

TEST(the_first_epoch_keeps_samples_without_having_hits) {
  StratifiedEpoch epoch({{.misses = {9, 8, 7, 6}, .kept = 2}}, segments_of({.batch_size = 2}, 4, 0));
  std::vector<PlannedSample> samples;
  while (!epoch.done()) {
    const auto [segment, counts] = epoch.next(samples);
    CHECK_EQUAL(segment.size(), 2u);
    CHECK_EQUAL(counts[0].hits, 1);
    CHECK_EQUAL(counts[0].misses, 1);
  }
  for (size_t i = 0; i < samples.size(); i++) {
    CHECK(!samples[i].hit && !samples[i].keep);
    CHECK_EQUAL(samples[i].entry, 9 - i);
  }
}

TEST(segments_follow_what_is_there_already) {
  StratifiedEpoch epoch({{.misses = {4, 5}}}, segments_of({.batch_size = 2}, 2, 0));
  std::vector<PlannedSample> samples{{.entry = 1}};
  const std::span segment = epoch.next(samples).samples;
  CHECK_EQUAL(samples.size(), 3u);
  CHECK_EQUAL(samples[0].entry, 1u);
  CHECK(segment.data() == samples.data() + 1 && segment.size() == 2);
  CHECK(epoch.done());
}

TEST(every_sample_is_dealt_once_and_every_segment_has_its_share) {
  Random random{1};
  for (int i = 0; i < 3000; i++) {
    const testing::Context context("case %d", i);
    std::vector<Stratum> strata;
    uint32_t size = 0;
    for (uint32_t stratum = 0, count = 1 + random.below(5); stratum < count; stratum++) {
      const uint32_t hits = i % 3 ? random.below(20) : 0, misses = random.below(40) + (hits == 0);
      const int64_t kept = hits ? hits : random.below(misses + 1);
      strata.push_back({.hits = entries(size, hits), .misses = entries(size + hits, misses), .kept = kept});
      size += hits + misses;
    }
    const ShardOptions options{.pad_last_batch = random.below(2) == 0, .batch_size = int(1 + random.below(20))};
    const Segments segments = segments_of(options, size, random.below(9));

    StratifiedEpoch epoch(strata, segments);
    std::vector<PlannedSample> samples;
    std::vector<std::vector<uint32_t>> hits(strata.size()), misses(strata.size());
    int64_t count = 0;
    for (; !epoch.done(); count++) {
      const auto [segment, counts] = epoch.next(samples);
      const auto part = static_cast<int64_t>(segment.size());
      for (size_t stratum = 0, next = 0; stratum < strata.size(); stratum++) {
        const auto [kept, others] = counts[stratum];
        const auto total = static_cast<int64_t>(strata[stratum].hits.size() + strata[stratum].misses.size());
        CHECK(is_share(kept, strata[stratum].kept, part, size));
        CHECK(is_share(kept + others, total, part, size));
        for (int64_t j = 0; j < kept + others; j++) {
          const PlannedSample &sample = segment[next++];
          CHECK_EQUAL(sample.hit, j < kept && !strata[stratum].hits.empty());
          (sample.hit ? hits : misses)[stratum].push_back(sample.entry);
        }
        CHECK(stratum + 1 < strata.size() || next == segment.size());
      }
    }
    CHECK_EQUAL(count, segments.count());
    for (size_t stratum = 0; stratum < strata.size(); stratum++)
      CHECK(hits[stratum] == strata[stratum].hits && misses[stratum] == strata[stratum].misses);
  }
}

}  // namespace
