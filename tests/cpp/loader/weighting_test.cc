// Which weights the arguments ask for, and which they refuse.
#include "arguments/weighting.h"

#include <cmath>

#include "testing.h"

using namespace dali_l3::loader;

namespace {

// Samples with these labels and weights.
Catalogue catalogue(const std::vector<std::pair<int, float>> &samples) {
  Catalogue made;
  for (const auto &[label, weight] : samples) {
    Entry entry;
    entry.label = label;
    entry.weight = weight;
    made.entries.push_back(entry);
  }
  return made;
}

// The label and weight of the cell of each sample.
std::string cells(const WeightingArguments &arguments, const Catalogue &catalogue) {
  const WeightedSamples samples = weighted_samples(arguments, catalogue);
  std::ostringstream text;
  for (const uint32_t cell : samples.cell_of)
    text << samples.cells[cell].label << ":" << samples.cells[cell].weight << " ";
  return text.str();
}

const Catalogue kThree = catalogue({{2, 1}, {0, 1}, {2, 1}});

TEST(samples_of_one_label_and_weight_are_one_cell) {
  CHECK_EQUAL(cells({.epoch_size = 9}, kThree), "2:2 0:1 2:2 ");
  const Catalogue weighted = catalogue({{0, 0.5F}, {1, 0.5F}, {0, 2}, {0, 0.5F}, {1, 0}});
  CHECK_EQUAL(cells({.weights = {{1}}}, weighted), "0:1 1:0.5 0:2 0:1 1:0 ");
  CHECK_EQUAL(cells({.epoch_size = 9, .labels_are_classes = false}, kThree), "0:3 0:3 0:3 ");
}

TEST(classes_have_their_proportions_whatever_their_size) {
  CHECK_EQUAL(cells({.class_proportions = {{3, 0, 0.25F}}}, kThree), "2:0.25 0:3 2:0.25 ");
  CHECK_EQUAL(cells({.class_balanced = true}, kThree), "2:1 0:1 2:1 ");
  CHECK_EQUAL(cells({.class_balanced = true}, catalogue({{-5, 1}, {1000000, 1}})), "-5:1 1000000:1 ");
}

TEST(epochs_are_as_long_as_the_dataset_by_default) {
  CHECK_EQUAL((WeightingArguments{.class_balanced = true}.size(kThree)), 3);
  CHECK_EQUAL((WeightingArguments{.epoch_size = 7}.size(kThree)), 7);
}

TEST(proportions_suit_the_dataset) {
  const auto error = [](const WeightingArguments &arguments, const Catalogue &catalogue) {
    return testing::error_of([&] { weighted_samples(arguments, catalogue); });
  };
  CHECK_EQUAL(error({.class_proportions = {{1, 1}}}, kThree), "class_proportions has 2 numbers, none for the label 2");
  CHECK_EQUAL(error({.class_proportions = {{1}}}, catalogue({{-1, 1}})),
              "class_proportions has 1 number, none for the label -1");
  CHECK_EQUAL(error({.class_proportions = {{1, 1, 1}}}, kThree),
              "class_proportions[1] is more than 0, but there are no samples with that label");
  CHECK_EQUAL(error({.class_proportions = {{1, 0, 1, 0.5F}}}, kThree),
              "class_proportions[3] is more than 0, but there are no samples with that label");
  CHECK_EQUAL(error({.weights = {{0, 1}}}, catalogue({{0, 0}})), "weights are 0 for all samples that are left");
}

TEST(wrong_numbers_are_named) {
  const auto error = [](const WeightingArguments &arguments, int num_shards = 1) {
    return testing::error_of([&] { check_weighting(arguments, {.num_shards = num_shards}); });
  };
  CHECK_EQUAL(error({.weights = {{1, 0}}}), "");
  CHECK_EQUAL(error({.weights = {{1, -0.5F}}}),
              "weights[1] is -0.500000, but must be a finite number that is not negative");
  CHECK_EQUAL(error({.weights = {{NAN}}}), "weights[0] is nan, but must be a finite number that is not negative");
  CHECK_EQUAL(error({.class_proportions = {{INFINITY}}}),
              "class_proportions[0] is inf, but must be a finite number that is not negative");
  CHECK_EQUAL(error({.weights = {{0, 0}}}), "weights must have a number that is more than 0");
  CHECK_EQUAL(error({.class_proportions = {{}}}), "class_proportions must have a number that is more than 0");
  const std::string exclude = "weights, class_proportions and class_balanced exclude each other";
  CHECK_EQUAL(error({.weights = {{1}}, .class_proportions = {{1}}}), exclude);
  CHECK_EQUAL(error({.weights = {{1}}, .class_balanced = true}), exclude);
  CHECK_EQUAL(error({.class_proportions = {{1}}, .class_balanced = true}), exclude);
  CHECK_EQUAL(error({.class_balanced = true, .labels_are_classes = false}),
              "class_proportions and class_balanced need labels that are integers: omit label_columns and, with paths, "
              "say with label_ext where they are");
  for (const int64_t size : {int64_t{0}, int64_t{-3}, kMaxSamples + 1})
    CHECK_EQUAL(error({.epoch_size = size}),
                "epoch_size is " + std::to_string(size) + ", but must be from 1 to 2147483647");
  CHECK_EQUAL(error({.epoch_size = 4}, 4), "");
  CHECK_EQUAL(error({.epoch_size = 3}, 4),
              "epoch_size is 3, less than num_shards, which is 4: it counts the samples of all shards together");
}

}  // namespace
