// Plans Liquid's epochs one after another, each from what the one before has kept.

#include "liquid_plan.h"

#include <algorithm>
#include <utility>

#include "random.h"

namespace dali_l3::loader {
namespace {

// Samples of one kind in the order of an epoch.
struct Queue {
  std::vector<uint32_t> entries;
  size_t next = 0;
};

void deal(Queue &queue, int64_t count, bool hit, std::vector<PlannedSample> &samples) {
  for (int64_t i = 0; i < count; i++) samples.push_back({.entry = queue.entries[queue.next++], .hit = hit});
}

}  // namespace

LiquidPlan::LiquidPlan(const LiquidPlanOptions &options, std::vector<FormatGroup> groups, std::span<const uint64_t> bytes)
    : options_(options), groups_(std::move(groups)), bytes_(bytes.begin(), bytes.end()), held_(groups_.size()), kept_(bytes.size()) {
  for (const FormatGroup &group : groups_) size_ += static_cast<int64_t>(group.entries.size());
  first_epochs_fit(find_ratio());  // for held_ and peak_bytes_
  restart(least_ratio());
}

int64_t LiquidPlan::find_ratio() {
  int64_t fits = 0, too_much = size_;
  if (first_epochs_fit(size_)) return size_;
  while (too_much - fits > 1) {
    const int64_t middle = fits + (too_much - fits) / 2;
    (first_epochs_fit(middle) ? fits : too_much) = middle;
  }
  return fits;
}

// The least ratio with which as many samples of each format are held: 0 if none are.
int64_t LiquidPlan::least_ratio() const {
  int64_t ratio = 0;
  for (size_t i = 0; i < groups_.size(); i++) {
    const auto size = static_cast<int64_t>(groups_[i].entries.size());
    ratio = std::max(ratio, (held_[i] * size_ + size - 1) / size);
  }
  return ratio;
}

bool LiquidPlan::first_epochs_fit(int64_t ratio) {
  restart(ratio);
  peak_bytes_ = 0;
  std::vector<PlannedSample> samples;
  for (int epoch = 0; epoch < 3; epoch++) {
    if (!plan_next(samples, false)) return false;
  }
  return true;
}

void LiquidPlan::restart(int64_t ratio) {
  ratio_ = ratio;
  for (size_t i = 0; i < groups_.size(); i++) held_[i] = static_cast<int64_t>(groups_[i].entries.size()) * ratio / size_;
  next_epoch_ = 0;
  kept_.assign(kept_.size(), false);
  held_bytes_ = released_bytes_ = 0;
}

void LiquidPlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  if (epoch < next_epoch_) restart(ratio_);
  while (next_epoch_ <= epoch) plan_next(samples, true);
}

// Returns false, with the epoch half planned, where it passes the limit and may not be repaired.
bool LiquidPlan::plan_next(std::vector<PlannedSample> &samples, bool may_repair) {
  const int64_t epoch = next_epoch_++;
  Random random{options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(options_.shards.shard_id)};
  std::vector<Queue> hits(groups_.size()), misses(groups_.size());
  std::vector<HitMiss> totals;
  for (size_t i = 0; i < groups_.size(); i++) {
    for (const uint32_t entry : groups_[i].entries) (kept_[entry] ? hits : misses)[i].entries.push_back(entry);
    shuffle(std::span(hits[i].entries), random);
    if (!options_.sequential) shuffle(std::span(misses[i].entries), random);
    totals.push_back({held_[i], static_cast<int64_t>(groups_[i].entries.size()) - held_[i]});
  }
  kept_.assign(kept_.size(), false);
  const Segments segments = segments_of(options_.shards, size_, epoch);
  Apportionment apportionment(totals, segments);

  samples.clear();
  for (int64_t i = 0; i < segments.count(); i++) {
    const size_t begin = samples.size();
    const std::vector<HitMiss> &counts = apportionment.next();
    for (size_t format = 0; format < groups_.size(); format++) {
      const size_t first = samples.size();
      const int64_t kept = counts[format].hits, in_memory = epoch > 0 ? kept : 0;
      deal(hits[format], in_memory, true, samples);
      deal(misses[format], kept + counts[format].misses - in_memory, false, samples);
      const std::span part = std::span(samples).subspan(first);
      shuffle_front(part, kept, random);
      for (PlannedSample &sample : part.first(kept)) sample.keep = true;
    }

    const std::span segment = std::span(samples).subspan(begin);
    if (held_bytes_ + added_bytes(segment) > options_.cache_bytes) {
      if (!may_repair) return false;
      keep_less(segment, counts);
    }
    held_bytes_ += added_bytes(segment);
    peak_bytes_ = std::max(peak_bytes_, held_bytes_);
    for (const PlannedSample &sample : segment) {
      if (sample.keep) kept_[sample.entry] = true;
      if (sample.hit && !sample.keep) released_bytes_ += bytes_[sample.entry];
    }
    if (options_.shards.pad_last_batch || (segments.begun + static_cast<int64_t>(samples.size())) % segments.full == 0) {
      held_bytes_ -= std::exchange(released_bytes_, 0);
    }
    shuffle(segment, random);
  }
  return true;
}

// Memory for what the segment reads and keeps.
uint64_t LiquidPlan::added_bytes(std::span<const PlannedSample> segment) const {
  uint64_t bytes = 0;
  for (const PlannedSample &sample : segment) bytes += sample.keep && !sample.hit ? bytes_[sample.entry] : 0;
  return bytes;
}

// Makes hits take the place of misses among what the segment keeps, the largest first, until it fits.
void LiquidPlan::keep_less(std::span<PlannedSample> segment, std::span<const HitMiss> counts) const {
  // As many samples of a format are kept as are hit, so there is a hit not kept for every miss that is kept. Keeping hits adds nothing.
  struct Swap {
    PlannedSample *miss, *hit;
  };
  std::vector<Swap> swaps;
  size_t begin = 0;
  for (const auto [hits, misses] : counts) {
    const std::span part = segment.subspan(begin, hits + misses);
    begin += part.size();
    auto hit = part.begin();
    for (PlannedSample &sample : part) {
      if (!sample.keep || sample.hit) continue;
      hit = std::find_if(hit, part.end(), [](const PlannedSample &other) { return other.hit && !other.keep; });
      swaps.push_back({&sample, &*hit++});
    }
  }
  const auto larger = [this](const Swap &a, const Swap &b) { return bytes_[a.miss->entry] > bytes_[b.miss->entry]; };
  std::stable_sort(swaps.begin(), swaps.end(), larger);
  uint64_t added = added_bytes(segment);
  for (const auto [miss, hit] : swaps) {
    if (held_bytes_ + added <= options_.cache_bytes) break;
    std::swap(miss->keep, hit->keep);
    added -= bytes_[miss->entry];
  }
}

}  // namespace dali_l3::loader
