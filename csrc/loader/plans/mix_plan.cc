// Stratified epochs, shuffled or in catalogue order.

#include "plans/mix_plan.h"

#include <utility>

#include "plans/stratified_epoch.h"

namespace dali_l3::loader {

MixPlan::MixPlan(const ShardOptions &options, std::vector<FormatGroup> groups, bool shuffled, uint64_t seed)
    : options_(options), groups_(std::move(groups)), size_(sample_count(groups_)), shuffled_(shuffled), seed_(seed) {}

void MixPlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  Random random = epoch_random(seed_, static_cast<uint64_t>(epoch), options_.shard_id);
  std::vector<Stratum> strata;
  for (const FormatGroup &group : groups_) strata.push_back({.misses = group.entries});
  deal_epoch(std::move(strata), segments_of(options_, size_, epoch), shuffled_, random, samples);
}

}  // namespace dali_l3::loader
