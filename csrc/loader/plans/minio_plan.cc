// Draws what is held.

#include "plans/minio_plan.h"

#include <numeric>

#include "plans/random.h"

namespace dali_l3::loader {

MinioPlan::MinioPlan(const ShardOptions &options, std::vector<FormatGroup> groups, const BytesOf &bytes,
                     size_t catalogue_size, uint64_t cache_bytes, uint64_t seed)
    : is_held_(catalogue_size), held_(groups.size()), mix_(options, groups, true, seed) {
  struct Candidate {
    uint32_t entry, group;
  };
  std::vector<Candidate> candidates;
  for (uint32_t group = 0; group < groups.size(); group++) {
    for (const uint32_t entry : groups[group].entries) candidates.push_back({entry, group});
  }
  constexpr uint64_t kNoEpoch = UINT64_MAX;
  Random random = epoch_random(seed, kNoEpoch, options.shard_id);
  shuffle(std::span(candidates), random);
  for (const auto [entry, group] : candidates) {
    const uint64_t size = bytes(entry);
    if (size > cache_bytes - held_bytes_) continue;
    held_bytes_ += size;
    is_held_[entry] = true;
    held_[group]++;
  }
}

double MinioPlan::hit_ratio() const {
  const auto held = std::accumulate(held_.begin(), held_.end(), int64_t{0});
  return static_cast<double>(held) / static_cast<double>(epoch_size(0));
}

void MinioPlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  mix_.plan(epoch, samples);
  for (PlannedSample &sample : samples) {
    sample.keep = is_held_[sample.entry];
    sample.hit = sample.keep && epoch > 0;
  }
}

}  // namespace dali_l3::loader
