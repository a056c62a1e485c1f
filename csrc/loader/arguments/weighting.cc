// Arguments to weights.

#include "arguments/weighting.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "dataset/counted.h"

namespace dali_l3::loader {
namespace {

void check_numbers(const char *argument, const std::vector<float> &numbers) {
  for (size_t i = 0; i < numbers.size(); i++) {
    if (!std::isfinite(numbers[i]) || numbers[i] < 0)
      throw std::invalid_argument(std::string(argument) + "[" + std::to_string(i) + "] is " +
                                  std::to_string(numbers[i]) + ", but must be a finite number that is not negative");
  }
  if (std::none_of(numbers.begin(), numbers.end(), [](float number) { return number > 0; }))
    throw std::invalid_argument(std::string(argument) + " must have a number that is more than 0");
}

// The proportion of each class that the catalogue holds.
std::map<int, double> proportions(const WeightingArguments &arguments, const Catalogue &catalogue) {
  std::map<int, double> by_label;
  for (size_t i = 0; i < catalogue.entries.size(); i++) by_label[catalogue.entries.label(i)] = 1;
  if (arguments.class_balanced) return by_label;
  const std::vector<float> &given = *arguments.class_proportions;
  for (auto &[label, proportion] : by_label) {
    if (label < 0 || static_cast<size_t>(label) >= given.size())
      throw std::runtime_error("class_proportions has " + counted(given.size(), "number") + ", none for the label " +
                               std::to_string(label));
    if (!arguments.balanced()) proportion = given[label];
  }
  for (size_t label = 0; label < given.size(); label++) {
    if (given[label] > 0 && !by_label.contains(static_cast<int>(label)))
      throw std::runtime_error("class_proportions[" + std::to_string(label) +
                               "] is more than 0, but there are no samples with that label");
  }
  return by_label;
}

}  // namespace

void check_weighting(const WeightingArguments &arguments, const ShardOptions &shards) {
  const auto require = [](bool condition, const std::string &message) {
    if (!condition) throw std::invalid_argument(message);
  };
  if (arguments.weights) check_numbers("weights", *arguments.weights);
  if (arguments.class_proportions) check_numbers("class_proportions", *arguments.class_proportions);
  require(arguments.weights.has_value() + arguments.class_proportions.has_value() + arguments.class_balanced <= 1,
          "weights, class_proportions and class_balanced exclude each other");
  require(!arguments.by_class() || arguments.labels_are_classes,
          "class_proportions and class_balanced need labels that are integers: omit label_columns and, with paths, "
          "say with label_ext where they are");
  if (!arguments.epoch_size) return;
  const int64_t size = *arguments.epoch_size;
  require(size >= 1 && size <= kMaxSamples,
          "epoch_size is " + std::to_string(size) + ", but must be from 1 to " + std::to_string(kMaxSamples));
  require(size >= shards.num_shards, "epoch_size is " + std::to_string(size) + ", less than num_shards, which is " +
                                         std::to_string(shards.num_shards) +
                                         ": it counts the samples of all shards together");
}

WeightedSamples weighted_samples(const WeightingArguments &arguments, const Catalogue &catalogue) {
  std::map<int, double> by_label;
  if (arguments.by_class()) by_label = proportions(arguments, catalogue);

  using Key = std::pair<int, float>;  // label and weight of a sample
  const Entries &entries = catalogue.entries;
  const auto key_of = [&](size_t i) {
    return Key{arguments.labels_are_classes ? entries.label(i) : 0, arguments.by_class() ? 1 : entries.weight(i)};
  };
  std::map<Key, int64_t> counts;
  for (size_t i = 0; i < entries.size(); i++) counts[key_of(i)]++;

  WeightedSamples samples;
  std::map<Key, uint32_t> cells;
  for (const auto &[key, count] : counts) {
    const auto [label, weight] = key;
    cells[key] = static_cast<uint32_t>(samples.cells.size());
    samples.cells.push_back({label, arguments.by_class() ? by_label[label] : static_cast<double>(count) * weight});
  }
  samples.formats = formats_of(catalogue);
  samples.cell_of.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); i++) samples.cell_of.push_back(cells[key_of(i)]);
  if (std::none_of(samples.cells.begin(), samples.cells.end(), [](const Cell &cell) { return cell.weight > 0; }))
    throw std::runtime_error(std::string(arguments.weights ? "weights" : "class_proportions") +
                             " are 0 for all samples that are left");
  return samples;
}

}  // namespace dali_l3::loader
