// Plans Liquid's epochs one after another, each from what the one before has kept.

#include "plans/liquid_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cancellation.h"
#include "plans/random.h"
#include "plans/stratified_epoch.h"

namespace dali_l3::loader {

namespace {

// Of memory, where entries take more bytes than a number of 32 bits can say: then they take whole pages.
constexpr uint64_t kLargeUnit = 4096;

}  // namespace

LiquidPlan::LiquidPlan(const LiquidPlanOptions &options, const std::vector<FormatGroup> &groups, const BytesOf &bytes)
    : options_(options), size_(sample_count(groups)), held_(groups.size()), kept_(static_cast<size_t>(size_)) {
  entries_.reserve(kept_.size());
  units_.reserve(kept_.size());
  for (const FormatGroup &group : groups) {
    entries_.insert(entries_.end(), group.entries.begin(), group.entries.end());
    ends_.push_back(entries_.size());
  }
  if (std::ranges::any_of(entries_, [&](uint32_t entry) { return bytes(entry) > UINT32_MAX; })) unit_ = kLargeUnit;
  for (const uint32_t entry : entries_)
    units_.push_back(static_cast<uint32_t>(std::min<uint64_t>((bytes(entry) + unit_ - 1) / unit_, UINT32_MAX)));
  first_epochs_fit(find_ratio());  // for peak_bytes_
  restart(ratio_);
}

double LiquidPlan::hit_ratio() const {
  return static_cast<double>(std::accumulate(held_.begin(), held_.end(), int64_t{0})) / static_cast<double>(size_);
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
  for (size_t i = 0; i < ends_.size(); i++)
    held_[i] = static_cast<int64_t>(ends_[i] - (i == 0 ? 0 : ends_[i - 1])) * ratio / size_;
  next_epoch_ = 0;
  kept_.assign(kept_.size(), false);
  held_bytes_ = 0;
}

void LiquidPlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  if (epoch < next_epoch_) restart(ratio_);
  while (next_epoch_ <= epoch) plan_next(samples, true);
  for (PlannedSample &sample : samples) sample.entry = entries_[sample.entry];
}

// Returns false, with the epoch half planned, where it passes the limit and may not be repaired.
bool LiquidPlan::plan_next(std::vector<PlannedSample> &samples, bool may_repair) {
  throw_if_cancelled();
  const int64_t epoch = next_epoch_++;
  Random random = epoch_random(options_.seed, static_cast<uint64_t>(epoch), options_.shards.shard_id);
  std::vector<Stratum> strata;
  for (uint32_t i = 0, entry = 0; i < ends_.size(); i++) {
    Stratum &stratum = strata.emplace_back(Stratum{.kept = held_[i]});
    for (; entry < ends_[i]; entry++) (kept_[entry] ? stratum.hits : stratum.misses).push_back(entry);
    shuffle(std::span(stratum.hits), random);
    if (!options_.sequential) shuffle(std::span(stratum.misses), random);
  }
  kept_.assign(kept_.size(), false);
  StratifiedEpoch stratified(std::move(strata), segments_of(options_.shards, size_, epoch));

  samples.clear();
  while (!stratified.done()) {
    const auto [segment, counts] = stratified.next(samples);
    for (size_t begin = 0; const auto [kept, others] : counts) {
      const std::span part = segment.subspan(begin, kept + others);
      shuffle_front(part, kept, random);
      for (PlannedSample &sample : part.first(kept)) sample.keep = true;
      begin += part.size();
    }
    int64_t grown = growth(segment);
    if (std::cmp_greater(held_bytes_ + grown, options_.cache_bytes)) {
      if (!may_repair) return false;
      keep_more_hits(segment, counts);
      grown = growth(segment);
    }
    held_bytes_ += grown;
    peak_bytes_ = std::max(peak_bytes_, held_bytes_);
    for (const PlannedSample &sample : segment) {
      if (sample.keep) kept_[sample.entry] = true;
    }
    shuffle(segment, random);
  }
  return true;
}

// By how many bytes what is held grows with the segment.
int64_t LiquidPlan::growth(std::span<const PlannedSample> segment) const {
  int64_t bytes = 0;
  for (const PlannedSample &sample : segment) {
    if (sample.keep != sample.hit) bytes += sample.keep ? size_of(sample) : -size_of(sample);
  }
  return bytes;
}

// Keeps hits instead of misses that are larger, those first whose difference is largest, until the segment fits.
//
// As many samples of a format are kept as are hit, so there is a hit to be evicted for every miss to be kept. Keeping
// all hits adds nothing, and always fits. (The first epoch has no hits, and fits as it is.)
void LiquidPlan::keep_more_hits(std::span<PlannedSample> segment, std::span<const CacheCounts> counts) const {
  struct Swap {
    PlannedSample *miss, *hit;
    int64_t saved;
  };
  std::vector<Swap> swaps;
  std::vector<PlannedSample *> kept, evicted;
  const auto smaller = [this](const PlannedSample *a, const PlannedSample *b) { return size_of(*a) < size_of(*b); };
  for (size_t begin = 0; const auto [hits, misses] : counts) {
    kept.clear();
    evicted.clear();
    for (PlannedSample &sample : segment.subspan(begin, hits + misses)) {
      if (sample.keep != sample.hit) (sample.keep ? kept : evicted).push_back(&sample);
    }
    begin += hits + misses;
    std::stable_sort(kept.rbegin(), kept.rend(), smaller);
    std::stable_sort(evicted.begin(), evicted.end(), smaller);
    for (size_t i = 0; i < kept.size(); i++)
      swaps.push_back({kept[i], evicted[i], size_of(*kept[i]) - size_of(*evicted[i])});
  }
  std::stable_sort(swaps.begin(), swaps.end(), [](const Swap &a, const Swap &b) { return a.saved > b.saved; });
  int64_t excess = held_bytes_ + growth(segment) - static_cast<int64_t>(options_.cache_bytes);
  for (const auto &[miss, hit, saved] : swaps) {
    if (excess <= 0) break;
    miss->keep = false;
    hit->keep = true;
    excess -= saved;
  }
}

}  // namespace dali_l3::loader
