// Cuts epochs into batches.

#include "plans/sample_order.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace dali_l3::loader {
namespace {

// More than anybody reads; what lies beyond comes from a damaged checkpoint, and planning up to it would take for ever.
constexpr int64_t kMostDelivered = int64_t{1} << 36;  // samples: some 80 days at 10,000/s
constexpr int64_t kMostEpochs = int64_t{1} << 24;

// Of PlannedSample::epoch.
constexpr uint32_t kEpochBits = (uint32_t{1} << 29) - 1;

}  // namespace

SampleOrder::SampleOrder(const ShardOptions &options, int64_t catalogue_size, std::unique_ptr<EpochPlan> plan)
    : options_(options), catalogue_size_(catalogue_size), plan_(std::move(plan)), next_{plan_->first_epoch(), 0} {}

// Samples of an epoch, with padding.
int64_t SampleOrder::padded_size(int64_t epoch) const {
  if (!options_.pad_last_batch) return plan_->epoch_size(epoch);
  const int64_t total = plan_->total_size(epoch).value_or(catalogue_size_);
  return padded_epoch_batches(options_, total) * options_.batch_size;
}

void SampleOrder::plan_epoch(int64_t epoch) {
  if (epoch == planned_) return;
  planned_ = kNone;
  samples_.reserve(static_cast<size_t>(plan_->epoch_size(epoch)));  // not twice that, as a vector grows
  plan_->plan(epoch, samples_);
  for (PlannedSample &sample : samples_) sample.epoch = static_cast<uint32_t>(epoch) & kEpochBits;
  epoch_end_ = padded_size(epoch);
  planned_ = epoch;
}

void SampleOrder::next_batch(std::vector<PlannedSample> &batch) {
  batch.clear();
  auto [epoch, position] = next_;
  plan_epoch(epoch);
  for (int64_t i = 0; i < options_.batch_size; i++, position++) {
    for (; position == epoch_end_; position = 0) plan_epoch(++epoch);
    if (position < static_cast<int64_t>(samples_.size())) {
      batch.push_back(samples_[position]);
    } else {
      const PlannedSample &last = samples_.back();
      batch.push_back({.entry = last.entry, .padding = true, .epoch = last.epoch});
    }
  }
  next_ = {epoch, position};
}

SampleOrder::Place SampleOrder::place_of(int64_t batch) const {
  const auto require = [&](bool condition) {
    if (!condition)
      throw std::runtime_error("There is no batch " + std::to_string(batch) +
                               ": a reader delivers up to 2^36 samples and 2^24 epochs");
  };
  require(batch >= 0 && batch <= kMostDelivered / options_.batch_size);
  Place place{plan_->first_epoch(), batch * options_.batch_size};
  for (int64_t size; place.position >= (size = padded_size(place.epoch)); place.epoch++) {
    require(place.epoch < kMostEpochs);
    place.position -= size;
  }
  return place;
}

int64_t SampleOrder::rest_batches() const {
  int64_t size = 0;
  for (int64_t epoch = plan_->first_epoch(); plan_->total_size(epoch); epoch++) size += padded_size(epoch);
  return (size + options_.batch_size - 1) / options_.batch_size;
}

void SampleOrder::seek(int64_t batch) {
  const Place place = place_of(batch);
  plan_epoch(place.epoch);
  next_ = place;
}

}  // namespace dali_l3::loader
