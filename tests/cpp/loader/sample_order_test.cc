// Batches cut from epochs, and the division into shards and segments.
#include "plans/sample_order.h"

#include <algorithm>
#include <stdexcept>

#include "orders.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

// Epoch e delivers the entries 0, 1, 2 …, all kept and, after the first epoch, hit.
class CountingPlan final : public EpochPlan {
 public:
  explicit CountingPlan(int64_t size) : size_(size) {}
  int64_t epoch_size(int64_t) const override { return size_; }
  void plan(int64_t epoch, std::vector<PlannedSample> &samples) override {
    samples.clear();
    for (int64_t i = 0; i < size_; i++)
      samples.push_back({.entry = static_cast<uint32_t>(i), .hit = epoch > 0, .keep = true});
  }

 private:
  int64_t size_;
};

TEST(marks_padding_and_epochs) {
  const ShardOptions options{.pad_last_batch = true, .batch_size = 2};
  SampleOrder order(options, 3, std::make_unique<CountingPlan>(3));
  std::vector<PlannedSample> batch;
  order.next_batch(batch);
  CHECK(batch == (std::vector<PlannedSample>{{0, false, true, false, 0}, {1, false, true, false, 0}}));
  order.next_batch(batch);
  CHECK(batch == (std::vector<PlannedSample>{{2, false, true, false, 0}, {2, false, false, true, 0}}));
  order.next_batch(batch);
  CHECK(batch == (std::vector<PlannedSample>{{0, true, true, false, 1}, {1, true, true, false, 1}}));
}

TEST(a_batch_may_hold_several_epochs) {
  SampleOrder order({.batch_size = 7}, 3, std::make_unique<CountingPlan>(3));
  CHECK_EQUAL(text(next_entries(order, 2)), "0 1 2 0 1 2 0 1 2 0 1 2 0 1 ");
  order.seek(1);
  CHECK_EQUAL(text(next_entries(order, 1)), "1 2 0 1 2 0 1 ");
}

TEST(seeks_into_padding) {
  // Two shards of three and four samples: the smaller delivers a batch of padding.
  const ShardOptions options{.num_shards = 2, .pad_last_batch = true, .batch_size = 3};
  SampleOrder order(options, 7, std::make_unique<CountingPlan>(3));
  order.seek(3);
  std::vector<PlannedSample> batch;
  order.next_batch(batch);
  for (const PlannedSample &sample : batch) CHECK(sample == (PlannedSample{2, false, false, true, 1}));
}

TEST(refuses_batches_that_cannot_be) {
  for (const bool pad : {false, true}) {
    SampleOrder order({.pad_last_batch = pad, .batch_size = 4}, 3, std::make_unique<CountingPlan>(3));
    order.seek(7'000'000);
    for (const int64_t batch : {int64_t{-1}, int64_t{1} << 35, INT64_MAX / 8, INT64_MAX / 2, int64_t{1} << 25}) {
      bool refused = false;
      try {
        order.seek(batch);
      } catch (const std::runtime_error &) {
        refused = true;
      }
      CHECK(refused);
    }
  }
}

TEST(reader_meta_counts_padding_as_dali_does) {
  CHECK_EQUAL(padded_epoch_size({.num_shards = 3, .pad_last_batch = true}, 7), 9);
  CHECK_EQUAL(padded_epoch_size({.num_shards = 3}, 7), 7);
}

TEST(segments_join_at_batch_borders) {
  for (const bool pad : {false, true}) {
    for (int batch_size = 1; batch_size <= 12; batch_size++) {
      for (int64_t size = 1; size <= 30; size++) {
        int64_t position = 0;
        for (int epoch = 0; epoch < 14; epoch++) {
          const testing::Context context("batch %d, size %d, epoch %d", batch_size, static_cast<int>(size), epoch);
          const Segments segments = segments_of({.pad_last_batch = pad, .batch_size = batch_size}, size, epoch);
          CHECK_EQUAL(segments.first + segments.full_count * segments.full + segments.last, size);
          const int64_t begun = position % batch_size;  // samples in the batch in which the epoch begins
          CHECK(segments.last < batch_size);
          CHECK_EQUAL(segments.first, begun ? std::min(batch_size - begun, size) : 0);
          position = pad ? 0 : position + size;
        }
      }
    }
  }
}

}  // namespace
