// Plans Liquid's epochs one after another, each from what the one before has kept.

#include "plans/liquid_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cancellation.h"

namespace dali_l3::loader {

namespace {

// Of memory, where entries take more bytes than a number of 32 bits can say: then they take whole pages.
constexpr uint64_t kLargeUnit = 4096;

// Exact for the squares of 2^31 numbers of 32 bits, times 2^31.
__extension__ typedef unsigned __int128 Wide;

// By how many standard deviations the peak of three epochs lies above the mean, usually.
constexpr double kPeak = 1.5;

}  // namespace

LiquidPlan::LiquidPlan(const LiquidPlanOptions &options, const std::vector<FormatGroup> &groups, const BytesOf &bytes)
    : options_(options), size_(sample_count(groups)), held_(groups.size()), kept_(static_cast<size_t>(size_)) {
  entries_.reserve(kept_.size());
  std::vector<uint64_t> sizes;
  sizes.reserve(kept_.size());
  for (const FormatGroup &group : groups) {
    for (const uint32_t entry : group.entries) sizes.push_back(bytes(entry));
    entries_.insert(entries_.end(), group.entries.begin(), group.entries.end());
    ends_.push_back(entries_.size());
  }
  if (std::ranges::max(sizes) > UINT32_MAX) unit_ = kLargeUnit;
  units_.reserve(kept_.size());
  for (const uint64_t size : sizes)
    units_.push_back(static_cast<uint32_t>(std::min<uint64_t>((size + unit_ - 1) / unit_, UINT32_MAX)));
  find_ratio();
}

double LiquidPlan::hit_ratio() const {
  return static_cast<double>(std::accumulate(held_.begin(), held_.end(), int64_t{0})) / static_cast<double>(size_);
}

// From a guess on by strides that double, until the ratio lies between two that have been tried, and then by halves.
void LiquidPlan::find_ratio() {
  const uint64_t total_units = std::accumulate(units_.begin(), units_.end(), uint64_t{0});
  if (total_units * unit_ <= options_.cache_bytes) {
    restart(size_);
    peak_bytes_ = static_cast<int64_t>(total_units * unit_);
    return;
  }
  const int64_t step = std::max<int64_t>(1, size_ / kRatioSteps);
  int64_t fits = 0, too_much = size_, peak = 0;
  int64_t ratio = std::max<int64_t>(1, std::min(guess_ratio(total_units), size_ - 1));
  for (int64_t stride = step; too_much - fits > step; stride *= 2) {
    if (first_epochs_fit(ratio)) {
      fits = ratio;
      peak = peak_bytes_;
    } else {
      too_much = ratio;
    }
    ratio = fits + (too_much - fits) / 2;
    if (fits == 0) ratio = std::max(ratio, too_much - stride);
    if (too_much == size_) ratio = std::min(ratio, fits + stride);
  }
  restart(fits);
  peak_bytes_ = peak;
}

// The ratio with which the peak should be the limit, by the mean and the deviation of what a ratio holds. The order
// follows from it, so it is the same on all machines: sums are exact, and no product is added to anything, which some
// compilers round otherwise.
int64_t LiquidPlan::guess_ratio(uint64_t total_units) const {
  double variance = 0;  // of a sample among those of its format, summed over all
  for (size_t i = 0, entry = 0; i < ends_.size(); i++) {
    const uint64_t count = ends_[i] - entry;
    Wide sum = 0, squares = 0;
    for (; entry < ends_[i]; entry++) {
      sum += units_[entry];
      squares += uint64_t{units_[entry]} * units_[entry];
    }
    variance += static_cast<double>(count * squares - sum * sum) / static_cast<double>(count);
  }
  const auto total = static_cast<double>(total_units);
  const double ratio = static_cast<double>(options_.cache_bytes) / static_cast<double>(total_units * unit_);
  const double above_mean = kPeak * std::sqrt(variance * ratio * (1 - ratio)) / total;
  return static_cast<int64_t>((ratio - above_mean) * static_cast<double>(size_));
}

bool LiquidPlan::first_epochs_fit(int64_t ratio) {
  restart(ratio);
  peak_bytes_ = 0;
  std::vector<PlannedSample> samples;
  for (int epoch = 0; epoch < 3; epoch++) {
    if (!plan_next(samples, Purpose::rehearsal)) return false;
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
  while (next_epoch_ <= epoch) plan_next(samples, Purpose::order);
  for (PlannedSample &sample : samples) sample.entry = entries_[sample.entry];
}

// A rehearsal is there to tell whether the epoch fits as it is drawn. It ends with `false` where the limit is passed,
// and leaves out all that has no part in this: the order within batches, and the samples of batches before.
bool LiquidPlan::plan_next(std::vector<PlannedSample> &samples, Purpose purpose) {
  throw_if_cancelled();
  const int64_t epoch = std::exchange(next_epoch_, kBetweenEpochs);
  Random random = epoch_random(options_.seed, static_cast<uint64_t>(epoch), options_.shards.shard_id);
  StratifiedEpoch stratified(draw_strata(epoch == 0, random), segments_of(options_.shards, size_, epoch));
  kept_.assign(kept_.size(), false);

  samples.clear();
  while (!stratified.done()) {
    if (purpose == Purpose::rehearsal) samples.clear();
    const auto [segment, counts] = stratified.next(samples);
    for (size_t begin = 0; const auto [kept, others] : counts) {
      const std::span part = segment.subspan(begin, kept + others);
      if (epoch > 0)  // the hits come first, as many as are kept
        for (const PlannedSample &sample : part.first(kept)) held_bytes_ -= size_of(sample);
      shuffle_front(part, kept, random);
      for (PlannedSample &sample : part.first(kept)) {
        set_keep(sample, true);
        held_bytes_ += size_of(sample);
      }
      begin += part.size();
    }
    if (std::cmp_greater(held_bytes_, options_.cache_bytes)) {
      if (purpose == Purpose::rehearsal) return false;
      keep_more_hits(segment, counts);
    }
    peak_bytes_ = std::max(peak_bytes_, held_bytes_);
    if (purpose == Purpose::rehearsal)
      skip_shuffle(segment.size(), random);
    else
      shuffle(segment, random);
  }
  next_epoch_ = epoch + 1;
  return true;
}

// The groups, each divided into what the epoch before has kept and what it has not, in the order of the epoch.
std::vector<Stratum> LiquidPlan::draw_strata(bool first_epoch, Random &random) const {
  std::vector<Stratum> strata;
  for (size_t i = 0, entry = 0; i < ends_.size(); i++) {
    const auto hits = static_cast<size_t>(first_epoch ? 0 : held_[i]);
    Stratum &stratum = strata.emplace_back(Stratum{.kept = held_[i]});
    // Every entry goes to both, and stays in one: to branch would take longer, for no processor foresees what is kept.
    stratum.hits.resize(hits + 1);
    stratum.misses.resize(ends_[i] - entry - hits + 1);
    for (size_t hit = 0, miss = 0; entry < ends_[i]; entry++) {
      const bool kept = kept_[entry];
      stratum.hits[hit] = stratum.misses[miss] = static_cast<uint32_t>(entry);
      hit += kept;
      miss += !kept;
    }
    stratum.hits.pop_back();
    stratum.misses.pop_back();
    shuffle(std::span(stratum.hits), random);
    if (!options_.sequential) shuffle(std::span(stratum.misses), random);
  }
  return strata;
}

// Keeps hits instead of misses that are larger, those first whose difference is largest, until the segment fits.
//
// As many samples of a format are kept as are hit, so there is a hit to be evicted for every miss to be kept. Keeping
// all hits adds nothing, and always fits. (The first epoch has no hits, and fits as it is.)
void LiquidPlan::keep_more_hits(std::span<PlannedSample> segment, std::span<const CacheCounts> counts) {
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
  for (const auto &[miss, hit, saved] : swaps) {
    if (std::cmp_less_equal(held_bytes_, options_.cache_bytes)) break;
    set_keep(*miss, false);
    set_keep(*hit, true);
    held_bytes_ -= saved;
  }
}

}  // namespace dali_l3::loader
