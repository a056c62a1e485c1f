#include "archives/archive_paths.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace dali_l3::loader {
namespace {

constexpr size_t kMaxPaths = 1'000'000;

bool exists(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

int64_t number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

class Expansion {
 public:
  explicit Expansion(const char *argument) : argument_(argument) {}

  void add(const std::string &path) {
    if (exists(path)) {
      if (path.ends_with(".txt"))
        add_list(path);
      else
        add_path(path);
      return;
    }
    add_braces(path);
  }

  std::vector<std::string> take() { return std::move(paths_); }

 private:
  [[noreturn]] void fail(const std::string &problem) const {
    throw std::runtime_error(std::string("The argument ") + argument_ + " " + problem);
  }

  void add_path(std::string path) {
    if (paths_.size() == kMaxPaths) fail("stands for more than " + std::to_string(kMaxPaths) + " paths");
    paths_.push_back(std::move(path));
  }

  void add_list(const std::string &list) {
    std::ifstream file(list);
    if (!file) fail("names " + list + ", which cannot be opened: " + std::generic_category().message(errno));
    const std::string folder = list.substr(0, list.rfind('/') + 1);  // empty without a slash
    const size_t before = paths_.size();
    for (std::string line; std::getline(file, line);) {
      const size_t begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r");
      if (begin == std::string::npos) continue;
      const std::string path = line.substr(begin, end + 1 - begin);
      if (path.ends_with(".txt")) fail("names " + list + ", which names another list: " + path);
      add(path.starts_with('/') ? path : folder + path);
    }
    if (file.bad()) fail("names " + list + ", which cannot be read");
    if (paths_.size() == before) fail("names " + list + ", which names no files");
  }

  // Replaces the first range or choice between braces that has none inside, and so on.
  void add_braces(const std::string &path) {
    for (size_t close = path.find('}'); close != std::string::npos; close = path.find('}', close + 1)) {
      const size_t open = path.rfind('{', close);
      if (open == std::string::npos) continue;
      const std::optional<std::vector<std::string>> choices = choices_of(path.substr(open + 1, close - open - 1));
      if (!choices) continue;
      for (const std::string &choice : *choices) add_braces(path.substr(0, open) + choice + path.substr(close + 1));
      return;
    }
    add_pattern(path);
  }

  // What is between braces: "000..015" or "a,b"; nothing if it is neither.
  std::optional<std::vector<std::string>> choices_of(const std::string &text) const {
    std::vector<std::string> choices;
    if (const size_t dots = text.find(".."); dots != std::string::npos) {
      const std::string_view first = std::string_view(text).substr(0, dots),
                             last = std::string_view(text).substr(dots + 2);
      if (!is_number(first) || !is_number(last)) return std::nullopt;
      const int64_t begin = number(first), end = number(last);
      if (end < begin) fail("has the range {" + text + "}, whose end is before its begin");
      if (static_cast<uint64_t>(end - begin) >= kMaxPaths)
        fail("stands for more than " + std::to_string(kMaxPaths) + " paths");
      const size_t width = first.starts_with('0') || last.starts_with('0') ? std::max(first.size(), last.size()) : 0;
      for (int64_t i = begin; i <= end; i++) {
        std::string digits = std::to_string(i);
        if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
        choices.push_back(std::move(digits));
      }
      return choices;
    }
    if (text.find(',') == std::string::npos) return std::nullopt;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      choices.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return choices;
  }

  void add_pattern(const std::string &path) {
    if (exists(path) || path.find_first_of("*?[") == std::string::npos) {
      add_path(path);
      return;
    }
    glob_t found{};
    const int result = glob(path.c_str(), GLOB_ERR, nullptr, &found);  // sorted
    std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    if (result == GLOB_NOMATCH) fail("has the pattern " + path + ", which no file matches");
    if (result != 0) fail("has the pattern " + path + ", for which a folder could not be read");
    std::ranges::sort(paths);  // in no locale's order
    for (std::string &name : paths) add_path(std::move(name));
  }

  const char *const argument_;
  std::vector<std::string> paths_;
};

}  // namespace

std::vector<std::string> expand_paths(const char *argument, const std::vector<std::string> &paths) {
  Expansion expansion(argument);
  for (const std::string &path : paths) expansion.add(path);
  return expansion.take();
}

}  // namespace dali_l3::loader
