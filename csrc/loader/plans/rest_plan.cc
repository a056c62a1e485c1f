// Replays what has been delivered, and shares out what has not.

#include "plans/rest_plan.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "cancellation.h"
#include "plans/format_groups.h"
#include "plans/mix_plan.h"

namespace dali_l3::loader {
namespace {

// Epochs that are begun and not complete. More come only of shards of a few samples, or from a damaged checkpoint.
constexpr int64_t kMostEpochs = 100;

}  // namespace

Rest find_rest(int shards, bool aligned, int64_t batches,
               const std::function<std::unique_ptr<SampleOrder>(int shard_id)> &order_of) {
  int64_t first = INT64_MAX, end = 0;
  for (int shard = 0; shard < (aligned ? 1 : shards); shard++) {
    throw_if_cancelled();
    const std::unique_ptr<SampleOrder> order = order_of(shard);
    const auto [epoch, position] = order->place_of(batches);
    first = std::min(first, epoch);
    end = std::max(end, epoch + (position > 0));
    while (order->plan().total_size(end)) end++;  // that a world before has begun
  }
  if (end - first > kMostEpochs) {
    throw std::runtime_error("The shards that the checkpoint tells of are " + std::to_string(end - first) +
                             " epochs apart: begin without it. Only pad_last_batch keeps small shards together");
  }
  Rest rest{.first_epoch = first, .epochs = std::vector<std::vector<uint32_t>>(std::max<int64_t>(0, end - first))};
  if (rest.epochs.empty()) return rest;
  std::vector<PlannedSample> samples;
  for (int shard = 0; shard < shards; shard++) {
    throw_if_cancelled();
    const std::unique_ptr<SampleOrder> order = order_of(shard);
    auto [epoch, position] = order->place_of(batches);
    for (; epoch < end; epoch++, position = 0) {
      order->plan().plan(epoch, samples);
      for (size_t i = position; i < samples.size(); i++)
        if (!samples[i].padding) rest.epochs[epoch - first].push_back(samples[i].entry);
    }
  }
  for (std::vector<uint32_t> &entries : rest.epochs) std::sort(entries.begin(), entries.end());
  return rest;
}

RestPlan::RestPlan(Rest rest, const ShardOptions &options, std::vector<FileFormat> formats, bool shuffled,
                   uint64_t seed,
                   const std::function<std::unique_ptr<EpochPlan>(const ShardOptions &options)> &make_next)
    : rest_(std::move(rest)), options_(options), formats_(std::move(formats)), shuffled_(shuffled), seed_(seed) {
  const int64_t next = first_next_epoch();
  const auto catalogue_size = static_cast<int64_t>(formats_.size());
  next_ = make_next(with_epoch_at(options, position_of(next),
                                  shard_size(options.shard_id, options.num_shards, catalogue_size), next));
}

// Samples of the shard before an epoch, from the first one of the rest on.
int64_t RestPlan::position_of(int64_t epoch) const {
  int64_t position = 0;
  for (int64_t before = rest_.first_epoch; before < epoch; before++) position += epoch_size(before);
  return position;
}

std::optional<int64_t> RestPlan::total_size(int64_t epoch) const {
  if (epoch >= first_next_epoch()) return {};
  return static_cast<int64_t>(rest_.epochs[epoch - rest_.first_epoch].size());
}

int64_t RestPlan::epoch_size(int64_t epoch) const {
  const std::optional<int64_t> total = total_size(epoch);
  return total ? shard_size(options_.shard_id, options_.num_shards, *total) : next_->epoch_size(epoch);
}

void RestPlan::plan(int64_t epoch, std::vector<PlannedSample> &samples) {
  if (epoch >= first_next_epoch()) return next_->plan(epoch, samples);
  const std::vector<uint32_t> &entries = rest_.epochs[epoch - rest_.first_epoch];
  std::vector<FormatGroup> groups = format_groups(entries, formats_, options_, shuffled_);
  if (groups.empty()) {
    samples.clear();
    if (!entries.empty()) samples.push_back({.entry = entries.front(), .padding = true});
    return;
  }
  const ShardOptions options = with_epoch_at(options_, position_of(epoch), epoch_size(epoch), epoch);
  MixPlan(options, std::move(groups), shuffled_, seed_).plan(epoch, samples);
}

}  // namespace dali_l3::loader
