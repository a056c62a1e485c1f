// Orders what an epoch draws.

#include "plans/weighted_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cancellation.h"
#include "plans/random.h"

namespace dali_l3::loader {

WeightedPlan::WeightedPlan(const WeightedPlanOptions &options, WeightedDraws draws, const BytesOf &bytes)
    : options_(options),
      draws_(std::move(draws)),
      size_(shard_size(options.shards.shard_id, options.shards.num_shards, options.epoch_size)),
      is_held_(static_cast<size_t>(draws_.catalogue_size())),
      is_read_(is_held_.size()) {
  if (options.cache_bytes > 0) hold(bytes);
}

void WeightedPlan::hold(const BytesOf &bytes) {
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
    const uint64_t size = bytes(entry);
    if (size > options_.cache_bytes - held_bytes_) continue;
    held_bytes_ += size;
    is_held_[entry] = true;
    hits += rates[entry];
  }
  hit_ratio_ = hits / std::accumulate(rates.begin(), rates.end(), 0.0);
}

void WeightedPlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  if (epoch < next_epoch_) {
    is_read_.assign(is_read_.size(), false);
    next_epoch_ = 0;
  }
  for (int64_t before = std::exchange(next_epoch_, kBetweenEpochs); before < epoch; before++) {
    throw_if_cancelled();
    for (const FormatGroup &group : draws_.draw(before))
      for (const uint32_t entry : group.entries) is_read_[entry] = true;
  }
  std::vector<Stratum> strata;
  for (const FormatGroup &group : draws_.draw(epoch)) strata.push_back(stratum_of(group));
  Random random = epoch_random(options_.seed, static_cast<uint64_t>(epoch), options_.shards.shard_id);
  deal_epoch(std::move(strata), segments_of(options_.shards, size_, epoch), options_.shuffled, random, samples);
  for (PlannedSample &sample : samples) sample.hit = sample.keep = is_held_[sample.entry];
  next_epoch_ = epoch + 1;
}

// A sample's first draw is a miss, also if it is held from then on.
Stratum WeightedPlan::stratum_of(const FormatGroup &group) {
  Stratum stratum;
  for (const uint32_t entry : group.entries) {
    const bool hit = options_.constant_hits && is_held_[entry] && is_read_[entry];
    is_read_[entry] = true;
    (hit ? stratum.hits : stratum.misses).push_back(entry);
  }
  stratum.kept = static_cast<int64_t>(stratum.hits.size());
  if (!options_.shuffled) std::sort(stratum.misses.begin(), stratum.misses.end());
  return stratum;
}

}  // namespace dali_l3::loader
