// Whole numbers in proportion to weights.
#include "plans/proportional_counts.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "orders.h"
#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

// A few kinds or many, alike or most unlike each other.
std::vector<double> random_weights(Random &random) {
  std::vector<double> weights(1 + random.below(random.below(2) ? 6 : 40));
  const uint32_t most = random.below(2) ? 3 : 1000;
  for (double &weight : weights) {
    weight = random.below(most + 1);
    if (random.below(8) == 0) weight *= 100;
  }
  weights[random.below(static_cast<uint32_t>(weights.size()))] = 1;
  return weights;
}

TEST(every_epoch_and_all_together_are_exact) {
  Random random{1};
  for (int i = 0; i < 2000; i++) {
    const testing::Context context("case %d", i);
    const std::vector<double> weights = random_weights(random);
    const auto whole = static_cast<int64_t>(std::accumulate(weights.begin(), weights.end(), 0.0));
    const int64_t total = 1 + random.below(static_cast<uint32_t>(3 * weights.size()));
    ProportionalCounts counts(weights, total);
    std::vector<int64_t> sums(weights.size());
    for (int64_t epoch = 1; epoch <= 60; epoch++) {
      const std::vector<int64_t> &next = counts.next();
      CHECK_EQUAL(std::accumulate(next.begin(), next.end(), int64_t{0}), total);
      for (size_t kind = 0; kind < weights.size(); kind++) {
        const auto weight = static_cast<int64_t>(weights[kind]);
        CHECK(is_share(next[kind], total, weight, whole));
        sums[kind] += next[kind];
        CHECK(is_share(sums[kind], total * epoch, weight, whole));
      }
    }
  }
}

TEST(equal_kinds_take_turns) {
  ProportionalCounts counts(std::vector<double>(10, 0.1), 3);
  std::vector<int64_t> sums(10);
  for (int epoch = 0; epoch < 10; epoch++) {
    const std::vector<int64_t> &next = counts.next();
    for (size_t kind = 0; kind < 10; kind++) sums[kind] += next[kind];
  }
  for (const int64_t sum : sums) CHECK_EQUAL(sum, 3);
}

TEST(weights_may_be_of_any_size) {
  for (const double scale : {1e-300, 1.0, 1e300}) {
    ProportionalCounts counts(std::vector<double>{3 * scale, 0, scale}, kMaxSamples - 3);
    CHECK(counts.next() == (std::vector<int64_t>{1610612733, 0, 536870911}));
  }
  const double least = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::max();
  ProportionalCounts counts(std::vector<double>{least, most}, 5);
  CHECK(counts.next() == (std::vector<int64_t>{0, 5}));
}

TEST(a_weight_that_is_nearly_a_whole_number_of_samples_gets_it) {
  const std::vector<double> weights = {0.1F, 0.9F};  // not exactly a ninth of each other
  ProportionalCounts counts(weights, 1000);
  for (int epoch = 0; epoch < 1000; epoch++) CHECK_EQUAL(counts.next()[0], 100);
}

}  // namespace
