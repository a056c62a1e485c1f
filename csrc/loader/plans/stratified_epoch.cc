// Dealing of formats to batches.

#include "plans/stratified_epoch.h"

#include <algorithm>
#include <utility>

namespace dali_l3::loader {
namespace {

std::vector<CacheCounts> totals_of(std::span<const Stratum> strata) {
  std::vector<CacheCounts> totals;
  for (const auto &[hits, misses, kept] : strata)
    totals.push_back({kept, static_cast<int64_t>(hits.size() + misses.size()) - kept});
  return totals;
}

void deal(const std::vector<uint32_t> &entries, size_t &next, int64_t count, bool hit,
          std::vector<PlannedSample> &samples) {
  for (const uint32_t entry : std::span(entries).subspan(next, static_cast<size_t>(count)))
    samples.push_back({.entry = entry, .hit = hit});
  next += static_cast<size_t>(count);
}

}  // namespace

StratifiedEpoch::StratifiedEpoch(std::vector<Stratum> strata, const Segments &segments)
    : segments_(segments.count()), apportionment_(totals_of(strata), segments) {
  for (Stratum &stratum : strata) sources_.push_back({.stratum = std::move(stratum)});
}

StratifiedEpoch::Segment StratifiedEpoch::next(std::vector<PlannedSample> &samples) {
  segment_++;
  const size_t begin = samples.size();
  const std::vector<CacheCounts> &counts = apportionment_.next();
  for (size_t i = 0; i < sources_.size(); i++) {
    auto &[stratum, next_hit, next_miss] = sources_[i];
    const auto [kept, others] = counts[i];
    const int64_t hits = stratum.hits.empty() ? 0 : kept;  // the first epoch keeps samples, but has no hits
    deal(stratum.hits, next_hit, hits, true, samples);
    deal(stratum.misses, next_miss, kept + others - hits, false, samples);
  }
  return {std::span(samples).subspan(begin), counts};
}

void deal_epoch(std::vector<Stratum> strata, const Segments &segments, bool shuffled, Random &random,
                std::vector<PlannedSample> &samples) {
  if (shuffled) {
    for (Stratum &stratum : strata) {
      shuffle(std::span(stratum.hits), random);
      shuffle(std::span(stratum.misses), random);
    }
  }
  StratifiedEpoch stratified(std::move(strata), segments);
  samples.clear();
  while (!stratified.done()) {
    const std::span segment = stratified.next(samples).samples;
    if (shuffled) {
      shuffle(segment, random);
    } else {
      std::sort(segment.begin(), segment.end(),
                [](const PlannedSample &a, const PlannedSample &b) { return a.entry < b.entry; });
    }
  }
}

}  // namespace dali_l3::loader
