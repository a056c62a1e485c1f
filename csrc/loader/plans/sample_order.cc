// Cuts epochs into batches.

#include "plans/sample_order.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace dali_l3::loader {
namespace {

// More than anybody reads, some 80 days at 10,000 samples/s; what lies beyond comes from a damaged checkpoint, and
// planning up to it would take for ever.
constexpr int64_t kMostDelivered = int64_t{1} << 36;

}  // namespace

SampleOrder::SampleOrder(const ShardOptions &options, int64_t catalogue_size, std::unique_ptr<EpochPlan> plan)
    : batch_size_(options.batch_size),
      padded_batches_(options.pad_last_batch ? padded_epoch_batches(options, catalogue_size) : 0),
      plan_(std::move(plan)) {}

void SampleOrder::begin_epoch(int64_t epoch) {
  plan_->plan(epoch, samples_);
  for (PlannedSample &sample : samples_) sample.epoch = static_cast<uint32_t>(epoch);
  epoch_ = epoch;
  epoch_end_ = padded_batches_ ? padded_batches_ * batch_size_ : static_cast<int64_t>(samples_.size());
  position_ = 0;
}

void SampleOrder::next_batch(std::vector<PlannedSample> &batch) {
  batch.clear();
  for (int64_t i = 0; i < batch_size_; i++) {
    if (position_ == epoch_end_) begin_epoch(epoch_ + 1);
    if (position_ < static_cast<int64_t>(samples_.size())) {
      batch.push_back(samples_[position_]);
    } else {
      const PlannedSample &last = samples_.back();
      batch.push_back({.entry = last.entry, .padding = true, .epoch = last.epoch});
    }
    position_++;
  }
}

void SampleOrder::seek(int64_t batch) {
  if (batch < 0 || batch > kMostDelivered / batch_size_)
    throw std::runtime_error("There is no batch " + std::to_string(batch));
  int64_t epoch = 0, position = batch * batch_size_;
  if (padded_batches_) {
    epoch = batch / padded_batches_;
    position -= epoch * padded_batches_ * batch_size_;
  } else {
    for (int64_t size; position >= (size = plan_->epoch_size(epoch)); epoch++) position -= size;
  }
  begin_epoch(epoch);
  position_ = position;
}

}  // namespace dali_l3::loader
