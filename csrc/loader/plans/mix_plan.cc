// Deals the formats to the batches.

#include "plans/mix_plan.h"

#include <algorithm>
#include <utility>

#include "plans/apportion.h"
#include "plans/random.h"

namespace dali_l3::loader {

MixPlan::MixPlan(const ShardOptions &options, std::vector<FormatGroup> groups, bool shuffled, uint64_t seed)
    : options_(options), groups_(std::move(groups)), shuffled_(shuffled), seed_(seed) {
  for (const FormatGroup &group : groups_) size_ += static_cast<int64_t>(group.entries.size());
}

void MixPlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  Random random{seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(options_.shard_id)};
  std::vector<std::vector<uint32_t>> queues;  // of each format, in the order of the epoch
  std::vector<CacheCounts> totals;
  for (const FormatGroup &group : groups_) {
    queues.push_back(group.entries);
    if (shuffled_) shuffle(std::span(queues.back()), random);
    totals.push_back({.misses = static_cast<int64_t>(group.entries.size())});
  }
  const Segments segments = segments_of(options_, size_, epoch);
  Apportionment apportionment(totals, segments);

  samples.clear();
  std::vector<size_t> dealt(queues.size());
  for (int64_t segment = 0; segment < segments.count(); segment++) {
    const size_t begin = samples.size();
    const std::vector<CacheCounts> &counts = apportionment.next();
    for (size_t format = 0; format < queues.size(); format++) {
      for (int64_t i = 0; i < counts[format].misses; i++) samples.push_back({.entry = queues[format][dealt[format]++]});
    }
    const std::span part = std::span(samples).subspan(begin);
    if (shuffled_) {
      shuffle(part, random);
    } else {
      std::sort(part.begin(), part.end(),
                [](const PlannedSample &a, const PlannedSample &b) { return a.entry < b.entry; });
    }
  }
}

}  // namespace dali_l3::loader
