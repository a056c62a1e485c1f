#include "dataset/subset.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "dataset/counted.h"
#include "plans/spread.h"

namespace dali_l3::loader {
namespace {

// Unknown names that an error shows.
constexpr size_t kShown = 20;

std::vector<bool> choose_indices(const std::vector<int64_t> &indices, const Entries &entries) {
  std::vector<bool> chosen(entries.size());
  for (const int64_t index : indices) {
    if (index < 0 || index >= static_cast<int64_t>(entries.size()))
      throw std::runtime_error("The argument subset has the index " + std::to_string(index) + ", but the dataset has " +
                               counted(entries.size(), "sample") + ", counted from 0");
    if (chosen[index])
      throw std::runtime_error("The argument subset has the index " + std::to_string(index) +
                               " twice: use weights to read samples more often");
    chosen[index] = true;
  }
  return chosen;
}

std::vector<bool> choose_files(const std::vector<std::string> &files, const Entries &entries,
                               const std::vector<std::string> &archives) {
  std::unordered_map<std::string_view, bool> found;
  for (const std::string &file : files)
    if (!found.emplace(file, false).second)
      throw std::runtime_error("The argument subset names " + file + " twice: use weights to read samples more often");
  std::vector<bool> chosen(entries.size());
  for (size_t i = 0; i < entries.size(); i++) {
    const auto file = found.find(name_of(archives, entries.file(i, 0)));
    if (file == found.end()) continue;
    chosen[i] = file->second = true;
  }
  std::string unknown;
  size_t count = 0;
  for (const std::string &file : files)
    if (!found[file] && count++ < kShown) unknown += "\n  " + file;
  if (count > 0)
    throw std::runtime_error("The argument subset names " + counted(count, "file") +
                             " that the dataset does not have:" + unknown + (count > kShown ? "\n  …" : "") +
                             "\nIts files have names such as " + name_of(archives, entries.file(0, 0)));
  return chosen;
}

std::vector<bool> choose_range(const std::vector<float> &range, int64_t seed, bool by_label, const Entries &entries) {
  if (range.size() != 2)
    throw std::runtime_error(
        "The argument subset_range needs two numbers, the begin and the end of a part of the dataset, not " +
        std::to_string(range.size()));
  if (!(range[0] >= 0 && range[0] < range[1] && range[1] <= 1)) {
    std::ostringstream text;
    text << "The argument subset is the part of the dataset from " << range[0] << " to " << range[1]
         << ", but both must be from 0 to 1, and the first below the second";
    throw std::runtime_error(text.str());
  }
  std::vector<uint64_t> kinds;
  kinds.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); i++) kinds.push_back(by_label ? static_cast<uint32_t>(entries.label(i)) : 0);
  const std::vector<SpreadItem> order = spread(kinds, static_cast<uint64_t>(seed));
  const auto size = static_cast<double>(entries.size());
  std::vector<bool> chosen(entries.size());
  for (auto i = std::llround(range[0] * size); i < std::llround(range[1] * size); i++) chosen[order[i].item] = true;
  return chosen;
}

std::vector<bool> choose(const Subset &subset, bool by_label, const Entries &entries,
                         const std::vector<std::string> &archives) {
  if (subset.indices) return choose_indices(*subset.indices, entries);
  if (subset.files) return choose_files(*subset.files, entries, archives);
  return choose_range(*subset.range, subset.seed, by_label, entries);
}

}  // namespace

void select(const Subset &subset, bool by_label, Entries &entries, const std::vector<std::string> &archives) {
  if (subset.indices.has_value() + subset.files.has_value() + subset.range.has_value() > 1)
    throw std::runtime_error("The arguments subset_indices, subset_files and subset_range exclude each other");
  if (subset.all() || entries.empty()) return;
  const std::vector<bool> chosen = choose(subset, by_label, entries, archives);
  if (std::ranges::count(chosen, true) == 0)
    throw std::runtime_error("The argument subset leaves none of the " + counted(entries.size(), "sample"));
  entries.keep(chosen);
}

}  // namespace dali_l3::loader
