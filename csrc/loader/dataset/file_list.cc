#include "dataset/file_list.h"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "dataset/byte_order_mark.h"
#include "dataset/counted.h"
#include "input/open_file.h"
#include "input/uri.h"

namespace dali_l3::loader {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

// Bad lines that an error shows.
constexpr size_t kShown = 20;

// Takes the last word off a line without white space at its end, and the space before it; empty if it is all there is.
std::string_view take_last_word(std::string_view &line) {
  const size_t before = line.find_last_of(kSpace);
  const size_t path_end = before == std::string_view::npos ? before : line.find_last_not_of(kSpace, before);
  if (path_end == std::string_view::npos) return {};
  const std::string_view word = line.substr(before + 1);
  line = line.substr(0, path_end + 1);
  return word;
}

// A number that is all of a word; digits alone, if it is an integer.
template <typename Number>
bool parse(std::string_view word, Number &number) {
  if (std::is_integral_v<Number> && word.find_first_not_of("0123456789") != std::string_view::npos) return false;
  if (word.starts_with('+')) word.remove_prefix(1);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

std::unique_ptr<std::istream> open_list(const std::string &path, const Storage &storage) {
  if (is_uri(path)) return std::make_unique<std::istringstream>(storage.read_text(path));
  try {
    return open_text(path);
  } catch (const FileError &error) {
    throw std::runtime_error("file_list " + path + " cannot be opened: " + error.problem);
  }
}

// Calls `parse_line` for each line that is not empty, without white space at its end. Throws if the file cannot be read
// or for lines that it returns false for, which are not `what`.
void read_lines(const std::string &path, const Storage &storage, const std::string &what,
                const std::function<bool(std::string_view line)> &parse_line) {
  const std::unique_ptr<std::istream> file = open_list(path, storage);
  std::string bad;
  size_t bad_lines = 0;
  std::string text;
  for (size_t number = 1; std::getline(*file, text); number++) {
    if (text.find('\0') != std::string::npos)
      throw std::runtime_error("file_list " + path + " is not a text file in UTF-8: line " + std::to_string(number) +
                               " has a zero byte, as UTF-16 does");
    if (number == 1) drop_byte_order_mark(text);
    const size_t last = text.find_last_not_of(kSpace);
    if (last == std::string::npos) continue;
    const std::string_view line = std::string_view(text).substr(0, last + 1);
    if (parse_line(line)) continue;
    if (bad_lines++ < kShown) bad += "\n  line " + std::to_string(number) + ": " + std::string(line.substr(0, 200));
  }
  if (file->bad())
    throw std::runtime_error("file_list " + path + " cannot be read: " + std::generic_category().message(errno));
  if (bad_lines > 0)
    throw std::runtime_error("file_list " + path + " has " + counted(bad_lines, "line") +
                             (bad_lines == 1 ? " that is" : " that are") + " not " + what + ":" + bad +
                             (bad_lines > kShown ? "\n  …" : ""));
}

}  // namespace

std::vector<std::pair<std::string, int>> read_file_list(const std::string &path, const Storage &storage) {
  std::vector<std::pair<std::string, int>> entries;
  read_lines(path, storage, "a path and a label", [&](std::string_view line) {
    int label;
    if (!parse(take_last_word(line), label)) return false;
    entries.emplace_back(line, label);
    return true;
  });
  return entries;
}

ListedVectors read_file_list(const std::string &path, int columns, const Storage &storage) {
  ListedVectors listed;
  std::vector<float> numbers(static_cast<size_t>(columns));
  read_lines(path, storage, "a path and " + counted(numbers.size(), "number"), [&](std::string_view line) {
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
      if (!parse(take_last_word(line), *number)) return false;
    listed.paths.emplace_back(line);
    listed.values.insert(listed.values.end(), numbers.begin(), numbers.end());
    return true;
  });
  return listed;
}

}  // namespace dali_l3::loader
