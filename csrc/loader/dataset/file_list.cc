#include "dataset/file_list.h"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "dataset/counted.h"

namespace dali_l3::loader {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f", kDigits = "0123456789";

// Bad lines that an error shows.
constexpr size_t kShown = 20;

// Splits a line without white space at its end; false if it is not a path and a label.
bool parse(std::string_view line, std::pair<std::string, int> &entry) {
  const size_t before_label = line.find_last_not_of(kDigits);
  if (before_label == std::string_view::npos || kSpace.find(line[before_label]) == std::string_view::npos) return false;
  const size_t path_end = line.find_last_not_of(kSpace, before_label);
  if (path_end == std::string_view::npos) return false;
  const std::string_view label = line.substr(before_label + 1);
  entry.first = line.substr(0, path_end + 1);
  return std::from_chars(label.data(), label.data() + label.size(), entry.second).ec == std::errc();
}

}  // namespace

std::vector<std::pair<std::string, int>> read_file_list(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("file_list " + path + " cannot be opened: " + std::generic_category().message(errno));
  std::vector<std::pair<std::string, int>> entries;
  std::string bad;
  size_t bad_lines = 0;
  std::string text;
  for (size_t number = 1; std::getline(file, text); number++) {
    const size_t last = text.find_last_not_of(kSpace);
    if (last == std::string::npos) continue;
    const std::string_view line = std::string_view(text).substr(0, last + 1);
    if (parse(line, entries.emplace_back())) continue;
    entries.pop_back();
    if (bad_lines++ < kShown) bad += "\n  line " + std::to_string(number) + ": " + std::string(line.substr(0, 200));
  }
  if (file.bad())
    throw std::runtime_error("file_list " + path + " cannot be read: " + std::generic_category().message(errno));
  if (bad_lines > 0)
    throw std::runtime_error("file_list " + path + " has " + counted(bad_lines, "line") +
                             (bad_lines == 1 ? " that is" : " that are") + " not a path and a label:" + bad +
                             (bad_lines > kShown ? "\n  …" : ""));
  return entries;
}

}  // namespace dali_l3::loader
