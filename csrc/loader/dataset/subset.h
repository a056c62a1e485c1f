// A part of a dataset's samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataset/entries.h"

namespace dali_l3::loader {

/** Which of the listed samples to read, in one way at most; all if none is given. */
struct Subset {
  std::optional<std::vector<int64_t>> indices = {};    ///< 0-based, in the order of the listing
  std::optional<std::vector<std::string>> files = {};  ///< names of entries, see name_of()
  std::optional<std::vector<float>> range = {};        ///< begin and end as parts of the dataset, 0 … 1
  int64_t seed = 0;                                    ///< of the order that the range is cut from

  bool all() const { return !indices && !files && !range; }
};

/**
 * Leaves the entries of a subset, in their order.
 *
 * A range is cut from a random order in which every stretch holds the labels in proportion: ranges that do not overlap
 * have no sample in common, and those that follow each other leave none out.
 *
 * @param by_label whether labels are classes
 * @param archives those of the entries' catalogue
 * @throws std::runtime_error if the subset contradicts itself, does not suit the entries or leaves none
 */
void select(const Subset &subset, bool by_label, Entries &entries, const std::vector<std::string> &archives = {});

}  // namespace dali_l3::loader
