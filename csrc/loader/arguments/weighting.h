// How often samples are drawn, by the arguments that all readers share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataset/catalogue.h"
#include "plans/shards.h"
#include "plans/weighted_draws.h"

namespace dali_l3::loader {

struct WeightingArguments {
  std::optional<std::vector<float>> weights = {};            ///< of each listed sample
  std::optional<std::vector<float>> class_proportions = {};  ///< of each label
  bool class_balanced = false;                               ///< equal proportions
  std::optional<int64_t> epoch_size = {};                    ///< draws of an epoch over all shards
  bool labels_are_classes = true;

  /** Whether samples are drawn at all. Otherwise each comes once in an epoch. */
  bool used() const { return weights || by_class() || epoch_size; }
  /** Proportions that are all equal are those of balanced classes. */
  bool balanced() const { return class_balanced || (class_proportions && all_equal(*class_proportions)); }
  bool by_class() const { return class_proportions || class_balanced; }

  static bool all_equal(const std::vector<float> &numbers) {
    return std::ranges::all_of(numbers, [&](float number) { return number == numbers.front(); });
  }

  /** Samples of an epoch over all shards. */
  int64_t size(const Catalogue &catalogue) const {
    return epoch_size.value_or(static_cast<int64_t>(catalogue.entries.size()));
  }
};

/** @throws std::invalid_argument where an argument has no such value, or another forbids it */
void check_weighting(const WeightingArguments &arguments, const ShardOptions &shards);

/**
 * The weights of a catalogue's samples. Each sample of a class with a proportion has its part of that.
 *
 * @throws std::runtime_error if the arguments do not suit the catalogue
 */
WeightedSamples weighted_samples(const WeightingArguments &arguments, const Catalogue &catalogue);

}  // namespace dali_l3::loader
