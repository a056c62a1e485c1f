#include "archives/archive_paths.h"

#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "dataset/byte_order_mark.h"
#include "input/open_file.h"
#include "input/uri.h"

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

bool has_leading_zero(std::string_view digits) { return digits.size() > 1 && digits[0] == '0'; }

size_t closing_brace(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); i++) {
    if (text[i] == '{') depth++;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Commas between braces inside the text part nothing.
std::vector<std::string> choices_between_commas(std::string_view text) {
  std::vector<std::string> choices(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '{') depth++;
    if (c == '}') depth--;
    if (c == ',' && depth == 0)
      choices.emplace_back();
    else
      choices.back() += c;
  }
  return choices;
}

class Expansion {
 public:
  Expansion(const char *argument, const Storage &storage) : argument_(argument), storage_(storage) {}

  void add(const std::string &path) {
    storage_.require_readable(path);
    if (exists(path) || (is_uri(path) && path.ends_with(".txt") && path.find('{') == std::string::npos)) {
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
    const std::unique_ptr<std::istream> file = open_list(list);
    const std::string folder = list.substr(0, list.rfind('/') + 1);  // empty without a slash
    const size_t before = paths_.size();
    bool first = true;
    for (std::string line; std::getline(*file, line); first = false) {
      if (first) drop_byte_order_mark(line);
      const size_t begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r");
      if (begin == std::string::npos) continue;
      const std::string path = line.substr(begin, end + 1 - begin);
      if (path.ends_with(".txt")) fail("names " + list + ", which names another list: " + path);
      add(path.starts_with('/') || is_uri(path) ? path : folder + path);
    }
    if (file->bad()) fail("names " + list + ", which cannot be read");
    if (paths_.size() == before) fail("names " + list + ", which names no files");
  }

  std::unique_ptr<std::istream> open_list(const std::string &list) const {
    if (is_uri(list)) return std::make_unique<std::istringstream>(storage_.read_text(list));
    try {
      return open_text(list);
    } catch (const FileError &error) {
      fail("names " + list + ", which cannot be opened: " + error.problem);
    }
  }

  // Replaces the first range or choice between braces at or behind `from`, then those in what that becomes.
  void add_braces(const std::string &path, size_t from = 0) {
    for (size_t open = path.find('{', from); open != std::string::npos; open = path.find('{', open + 1)) {
      const size_t close = closing_brace(path, open);
      if (close == std::string::npos) continue;
      const std::vector<std::string> choices = choices_of(path.substr(open + 1, close - open - 1));
      if (choices.empty()) continue;
      for (const std::string &choice : choices)
        add_braces(path.substr(0, open) + choice + path.substr(close + 1), open);
      return;
    }
    add_pattern(path);
  }

  // What is between braces: "000..015" or "a,b"; nothing if it is neither.
  std::vector<std::string> choices_of(const std::string &text) const {
    if (const size_t dots = text.find(".."); dots != std::string::npos) {
      const std::string first = text.substr(0, dots), last = text.substr(dots + 2);
      if (is_number(first) && is_number(last)) return range(first, last);
    }
    std::vector<std::string> choices = choices_between_commas(text);
    if (choices.size() == 1) choices.clear();
    return choices;
  }

  std::vector<std::string> range(const std::string &first, const std::string &last) const {
    const int64_t begin = number(first), end = number(last);
    if (end < begin) fail("has the range {" + first + ".." + last + "}, whose end is before its begin");
    if (static_cast<uint64_t>(end - begin) >= kMaxPaths)
      fail("stands for more than " + std::to_string(kMaxPaths) + " paths");
    const size_t width = has_leading_zero(first) || has_leading_zero(last) ? std::max(first.size(), last.size()) : 0;
    std::vector<std::string> numbers;
    for (int64_t i = begin; i <= end; i++) {
      std::string digits = std::to_string(i);
      if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
      numbers.push_back(std::move(digits));
    }
    return numbers;
  }

  void add_pattern(const std::string &path) {
    if (exists(path) || path.find_first_of("*?[") == std::string::npos) {
      add_path(path);
      return;
    }
    if (is_uri(path)) {
      add_objects(path);
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

  void add_objects(const std::string &pattern) {
    const size_t slash = pattern.rfind('/');
    const std::string folder = pattern.substr(0, slash + 1), name = pattern.substr(slash + 1);
    if (folder.find_first_of("*?[") != std::string::npos)
      fail("has the pattern " + pattern + ": in buckets only what is behind the last slash may be one");
    std::vector<std::string> paths;
    for (const StoredObject &object : storage_.list(folder))
      if (fnmatch(name.c_str(), object.path.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0)
        paths.push_back(folder + object.path);
    if (paths.empty())
      fail(
          "has the pattern " + pattern +
          ", which nothing in the bucket matches. In a bucket of S3, patterns need a folder; ranges such as {000..015} "
          "and lists do not");
    std::ranges::sort(paths);
    for (std::string &path : paths) add_path(std::move(path));
  }

  const char *const argument_;
  const Storage &storage_;
  std::vector<std::string> paths_;
};

}  // namespace

std::vector<std::string> expand_paths(const char *argument, const std::vector<std::string> &paths,
                                      const Storage &storage) {
  Expansion expansion(argument, storage);
  for (const std::string &path : paths) expansion.add(path);
  return expansion.take();
}

}  // namespace dali_l3::loader
