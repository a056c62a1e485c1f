// Orders what an epoch draws.

#include "plans/weighted_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plans/random.h"
#include "plans/stratified_epoch.h"

namespace dali_l3::loader {

WeightedPlan::WeightedPlan(const WeightedPlanOptions &options, WeightedDraws draws, std::span<const uint64_t> bytes)
    : options_(options),
      draws_(std::move(draws)),
      size_(shard_size(options.shards.shard_id, options.shards.num_shards, options.epoch_size)),
      is_held_(static_cast<size_t>(draws_.catalogue_size())) {
  if (options.cache_bytes > 0) hold(bytes);
}

void WeightedPlan::hold(std::span<const uint64_t> bytes) {
  const std::vector<double> rates = draws_.rates();
  std::vector<uint32_t> candidates;
  for (uint32_t i = 0; i < rates.size(); i++)
    if (rates[i] > 0) candidates.push_back(i);
  constexpr uint64_t kNoEpoch = UINT64_MAX;
  Random random = epoch_random(options_.seed, kNoEpoch, options_.shards.shard_id);
  shuffle(std::span(candidates), random);
  std::stable_sort(candidates.begin(), candidates.end(), [&](uint32_t a, uint32_t b) { return rates[a] > rates[b]; });
  double hits = 0;
  for (const uint32_t entry : candidates) {
    if (bytes[entry] > options_.cache_bytes - held_bytes_) continue;
    held_bytes_ += bytes[entry];
    is_held_[entry] = true;
    hits += rates[entry];
  }
  hit_ratio_ = hits / std::accumulate(rates.begin(), rates.end(), 0.0);
}

void WeightedPlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  std::vector<Stratum> strata;
  for (FormatGroup &group : draws_.draw(epoch)) {
    Stratum &stratum = strata.emplace_back(Stratum{.misses = std::move(group.entries)});
    if (!options_.shuffled) std::sort(stratum.misses.begin(), stratum.misses.end());
    if (!options_.constant_hits) continue;
    const auto held = std::stable_partition(stratum.misses.begin(), stratum.misses.end(),
                                            [this](uint32_t entry) { return !is_held_[entry]; });
    stratum.hits.assign(held, stratum.misses.end());
    stratum.misses.erase(held, stratum.misses.end());
    stratum.kept = static_cast<int64_t>(stratum.hits.size());
  }
  Random random = epoch_random(options_.seed, static_cast<uint64_t>(epoch), options_.shards.shard_id);
  deal_epoch(std::move(strata), segments_of(options_.shards, size_, epoch), options_.shuffled, random, samples);
  for (PlannedSample &sample : samples) sample.hit = sample.keep = is_held_[sample.entry];
}

}  // namespace dali_l3::loader
