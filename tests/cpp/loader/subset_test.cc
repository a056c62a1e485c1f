// Parts of a dataset.
#include "dataset/subset.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

// Entry i is called "i.png"; labels as given.
Entries entries(const std::vector<int> &labels) {
  Entries made;
  for (const int label : labels) made.push_back("", std::to_string(made.size()) + ".png", label);
  return made;
}

Entries selected(const Subset &subset, const std::vector<int> &labels, bool by_label = true) {
  Entries made = entries(labels);
  select(subset, by_label, made);
  return made;
}

std::string names(const Subset &subset, size_t size = 5) {
  std::ostringstream text;
  for (const Entry &entry : selected(subset, std::vector<int>(size))) text << entry.file.path << " ";
  return text.str();
}

std::string error(const Subset &subset, size_t size = 5) {
  return testing::error_of([&] { selected(subset, std::vector<int>(size)); });
}

TEST(subsets_keep_the_order_of_the_dataset) {
  CHECK_EQUAL(names({}, 3), "0.png 1.png 2.png ");
  CHECK_EQUAL(names({.indices = {{4, 0, 2}}}), "0.png 2.png 4.png ");
  CHECK_EQUAL(names({.files = {{"3.png", "1.png"}}}), "1.png 3.png ");
  CHECK_EQUAL(names({.range = {{0, 1}}}, 3), "0.png 1.png 2.png ");
}

TEST(subsets_that_do_not_suit_the_dataset_are_errors) {
  const std::string more = " twice: use weights to read samples more often";
  CHECK_EQUAL(error({.indices = {{1, 5}}}),
              "The argument subset has the index 5, but the dataset has 5 samples, counted from 0");
  CHECK_EQUAL(error({.indices = {{-1}}}),
              "The argument subset has the index -1, but the dataset has 5 samples, counted from 0");
  CHECK_EQUAL(error({.indices = {{3, 1, 3}}}), "The argument subset has the index 3" + more);
  CHECK_EQUAL(error({.files = {{"3.png", "1.png", "3.png"}}}), "The argument subset names 3.png" + more);
  CHECK_EQUAL(error({.files = {{"3.png", "b.png", "a.png"}}}),
              "The argument subset names 2 files that the dataset does not have:\n  b.png\n  a.png\nIts files have "
              "names such as 0.png");
  CHECK_EQUAL(error({.indices = {{}}}), "The argument subset leaves none of the 5 samples");
  CHECK_EQUAL(error({.files = {{}}}), "The argument subset leaves none of the 5 samples");
  CHECK_EQUAL(error({.range = {{0.5F, 0.51F}}}), "The argument subset leaves none of the 5 samples");
  CHECK_EQUAL(error({.indices = {{1}}, .range = {{0, 1}}}),
              "The arguments subset_indices, subset_files and subset_range exclude each other");
  for (const std::vector<float> &range :
       std::vector<std::vector<float>>{{0.5F, 0.5F}, {-0.1F, 0.5F}, {0, 1.1F}, {NAN, 1}, {0, NAN}})
    CHECK(error({.range = range}).starts_with("The argument subset is the part of the dataset from "));
  CHECK_EQUAL(error({.range = {{0.6F, 0.4F}}}),
              "The argument subset is the part of the dataset from 0.6 to 0.4, but both must be from 0 to 1, and the "
              "first below the second");
  for (const std::vector<float> &range : std::vector<std::vector<float>>{{}, {0.5F}, {0, 1, 1}})
    CHECK(error({.range = range}).starts_with("The argument subset_range needs two numbers, "));
}

TEST(ranges_divide_the_dataset_and_every_class) {
  Random random{1};
  for (int i = 0; i < 200; i++) {
    const testing::Context context("case %d", i);
    std::vector<int> labels(1 + random.below(300));
    const uint32_t classes = 1 + random.below(6);
    for (int &label : labels) label = static_cast<int>(random.below(classes) * random.below(classes)) - 3;
    std::map<int, double> sizes;
    for (const int label : labels) sizes[label]++;

    const uint32_t parts = 1 + random.below(6);
    std::vector<std::string> seen;
    for (uint32_t part = 0; part < parts; part++) {
      const float begin = static_cast<float>(part) / static_cast<float>(parts),
                  end = static_cast<float>(part + 1) / static_cast<float>(parts);
      const auto size = std::llround(end * static_cast<double>(labels.size())) -
                        std::llround(begin * static_cast<double>(labels.size()));
      if (size == 0) continue;
      const Entries some = selected({.range = {{begin, end}}, .seed = i}, labels);
      CHECK_EQUAL(static_cast<int64_t>(some.size()), size);
      std::map<int, double> counts;
      for (const Entry &entry : some) {
        counts[entry.label]++;
        seen.push_back(entry.file.path);
      }
      for (const auto &[label, all] : sizes)
        CHECK(std::abs(counts[label] - all * static_cast<double>(size) / static_cast<double>(labels.size())) < 2);
    }
    std::sort(seen.begin(), seen.end());
    CHECK_EQUAL(seen.size(), labels.size());
    CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  }
}

TEST(ranges_are_drawn_by_their_seed) {
  const std::vector<int> labels(100);
  const auto some = [&](int64_t seed, const std::vector<int> &labels, bool by_label) {
    std::string text;
    for (const Entry &entry : selected({.range = {{0, 0.5F}}, .seed = seed}, labels, by_label))
      text += entry.file.path + " ";
    return text;
  };
  CHECK_EQUAL(some(1, labels, true), some(1, labels, true));
  CHECK(some(1, labels, true) != some(2, labels, true));
  // Rows of numbers are no classes.
  std::vector<int> rows(100);
  for (int i = 0; i < 100; i++) rows[i] = i;
  CHECK_EQUAL(some(1, rows, false), some(1, labels, true));
}

}  // namespace
