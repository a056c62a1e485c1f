#include "archives/archive_index.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "dataset/counted.h"
#include "dataset/quoted.h"
#include "input/open_file.h"

namespace dali_l3::loader {
namespace {

constexpr std::string_view kSpace = " \t\r\v\f";
constexpr std::string_view kPercentNames = "names=percent";
constexpr std::string_view kSizeWord = "size=";

size_t base_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? 0 : slash + 1;
}

// A part of a path that begins and ends with two underscores.
bool is_webdatasets_own(std::string_view name) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.size() >= 4 && part.starts_with("__") && part.ends_with("__")) return true;
    begin = end + 1;
  }
  return false;
}

bool needs_percent(char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; }

std::string percent_encoded(std::string_view name) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (needs_percent(c) || c == '%')
      ((text += '%') += kDigits[byte >> 4]) += kDigits[byte & 15];
    else
      text += c;
  }
  return text;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '%') {
      name += text[i];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() < 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    name += static_cast<char>(byte);
    i += 2;
  }
  return name;
}

// Takes a word off the begin of a line, and the space before and behind it.
std::string_view take_word(std::string_view &line) {
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kSpace));
  line.remove_prefix(word.size());
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  return word;
}

bool parse(std::string_view word, uint64_t &number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return !word.empty() && error == std::errc() && end == word.data() + word.size();
}

// Whether a line goes on with a member, or ends.
bool member_follows(std::string_view line, bool has_name) {
  uint64_t number;
  if (take_word(line).empty()) return true;
  return parse(take_word(line), number) && parse(take_word(line), number) && (!has_name || !take_word(line).empty());
}

class IndexParser {
 public:
  IndexParser(const std::string &path, std::string_view text, uint64_t archive_size)
      : path_(path), rest_(text), archive_size_(archive_size) {}

  ArchiveIndex parse() {
    const uint64_t samples = parse_first_line();
    for (uint64_t sample = 0; sample < samples; sample++) parse_sample(sample);
    while (!rest_.empty())
      if (std::string_view line = next_line(); !take_word(line).empty())
        fail("there are more lines than the " + counted(samples, "sample") + " of the first line");
    return std::move(index_);
  }

 private:
  [[noreturn]] void fail(const std::string &problem) const {
    fail_file(path_, "is no index that can be used: line " + std::to_string(line_) + ": " + problem +
                         ". Make it anew with dali-l3 index");
  }

  std::string_view next_line() {
    line_++;
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
    return line;
  }

  uint64_t parse_first_line() {
    std::string_view line = next_line();
    const std::string_view version = take_word(line);
    if (version != "v1.1" && version != "v1.2") fail("it must begin with v1.1 or v1.2");
    has_names_ = version == "v1.2";
    uint64_t samples = 0;
    if (!loader::parse(take_word(line), samples)) fail("the number of samples is missing");
    while (!line.empty()) {
      std::string_view word = take_word(line);
      if (word == kPercentNames) {
        percent_ = true;
      } else if (word.starts_with(kSizeWord)) {
        uint64_t size = 0;
        if (!loader::parse(word.substr(kSizeWord.size()), size)) fail("the size of the archive is no number");
        if (size != archive_size_)
          fail("it was made when the archive had " + std::to_string(size) + " bytes; now it has " +
               std::to_string(archive_size_));
        if (!rest_.ends_with('\n')) fail("its last line has no end: it is cut off");  // ours have
      }
    }
    return samples;
  }

  void parse_sample(uint64_t sample) {
    if (rest_.empty()) {
      line_++;
      fail("the samples end here, but there should be more: it is cut off");
    }
    std::string_view line = next_line();
    while (!line.empty() && line.find_first_not_of(kSpace) != std::string_view::npos) parse_member(sample, line);
    if (index_.members.size() == index_.begins.back()) fail("it names no members");
    index_.begins.push_back(index_.members.size());
  }

  void parse_member(uint64_t sample, std::string_view &line) {
    const std::string_view extension = take_word(line);
    TarMember member{};
    if (!loader::parse(take_word(line), member.offset) || !loader::parse(take_word(line), member.size))
      fail("an extension, an offset and a size should stand where it says " + quoted(extension));
    if (member.offset == 0 || member.offset % kTarBlock != 0)
      fail("the offset " + std::to_string(member.offset) + " is no multiple of " + std::to_string(kTarBlock));
    if (member.offset > archive_size_ || member.size > archive_size_ - member.offset)
      fail("its archive has only " + std::to_string(archive_size_) + " bytes, no " + std::to_string(member.size) +
           " from byte " + std::to_string(member.offset) + " on");
    member.name = has_names_ ? parse_name(extension, line) : std::to_string(sample) + "." + std::string(extension);
    index_.members.push_back(std::move(member));
  }

  std::string parse_name(std::string_view extension, std::string_view &line) {
    if (percent_) {
      const std::string_view word = take_word(line);
      const std::optional<std::string> name = percent_decoded(word);
      if (!name || name->empty() || !word.ends_with(extension)) fail("a name is missing or damaged");
      return *name;
    }
    // The name goes on for as long as no member follows, and then ends with its extension.
    for (size_t end = std::min(line.find_first_of(kSpace), line.size()); end > 0;) {
      const std::string_view name = line.substr(0, end), behind = line.substr(end);
      if (name.ends_with(extension) && member_follows(behind, true)) {
        line = behind;
        return std::string(name);
      }
      if (end == line.size()) break;
      end = std::min(line.find_first_of(kSpace, end + 1), line.size());
    }
    fail("there is no name that ends with " + quoted(extension));
  }

  const std::string &path_;
  std::string_view rest_;
  const uint64_t archive_size_;
  uint64_t line_ = 0;
  bool has_names_ = false, percent_ = false;
  ArchiveIndex index_;
};

}  // namespace

std::string_view key_of(std::string_view name) {
  const size_t dot = name.find('.', base_of(name));
  return name.substr(0, dot);
}

std::string_view extension_of(std::string_view name) {
  const size_t dot = name.find('.', base_of(name));
  return dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
}

ArchiveIndex group(std::vector<TarMember> members) {
  // The number of each member's sample, counted in the order of their first members.
  std::vector<size_t> sample_of(members.size());
  constexpr size_t kNone = SIZE_MAX;
  size_t samples = 0;
  std::unordered_map<std::string_view, size_t> latest;     // sample of each key
  std::unordered_map<std::string_view, size_t> last_with;  // sample that has a name, the latest one
  for (size_t i = 0; i < members.size(); i++) {
    const std::string_view name = members[i].name, key = key_of(name);
    sample_of[i] = kNone;
    if (key.size() == base_of(name) || extension_of(name).empty() || is_webdatasets_own(name)) continue;
    const auto [sample, is_new_key] = latest.emplace(key, samples);
    if (is_new_key) samples++;
    const auto [with, is_new_name] = last_with.emplace(name, sample->second);
    if (!is_new_name && with->second == sample->second) sample->second = samples++;
    sample_of[i] = with->second = sample->second;
  }

  std::vector<size_t> order;
  for (size_t i = 0; i < members.size(); i++)
    if (sample_of[i] != kNone) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return sample_of[i]; });
  ArchiveIndex index;
  for (size_t i = 0; i < order.size(); i++) {
    index.members.push_back(std::move(members[order[i]]));
    if (i + 1 == order.size() || sample_of[order[i + 1]] != sample_of[order[i]])
      index.begins.push_back(index.members.size());
  }
  return index;
}

size_t repeated_keys(const ArchiveIndex &index) {
  std::unordered_set<std::string_view> keys;
  for (size_t i = 0; i < index.samples(); i++) keys.insert(key_of(index.members[index.begins[i]].name));
  return index.samples() - keys.size();
}

std::string write_index(const ArchiveIndex &index, uint64_t archive_size) {
  const bool percent = std::ranges::any_of(
      index.members, [](const TarMember &member) { return std::ranges::any_of(member.name, needs_percent); });
  const auto written = [&](std::string_view name) { return percent ? percent_encoded(name) : std::string(name); };
  std::string text = "v1.2 " + std::to_string(index.samples()) + " ";
  (text += kSizeWord) += std::to_string(archive_size);
  if (percent) (text += " ") += kPercentNames;
  text += '\n';
  for (size_t i = 0; i < index.samples(); i++) {
    for (size_t m = index.begins[i]; m < index.begins[i + 1]; m++) {
      const TarMember &member = index.members[m];
      if (m > index.begins[i]) text += ' ';
      text += written(extension_of(member.name)) + " " + std::to_string(member.offset) + " " +
              std::to_string(member.size) + " " + written(member.name);
    }
    text += '\n';
  }
  return text;
}

ArchiveIndex parse_index(const std::string &path, std::string_view text, uint64_t archive_size) {
  return IndexParser(path, text, archive_size).parse();
}

}  // namespace dali_l3::loader
