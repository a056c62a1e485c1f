// JSON as in RFC 8259, read as far as the field, and what comes before it stepped over.

#include "dataset/archive_labels.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "dataset/quoted.h"

namespace dali_l3::loader {
namespace {

// Of objects and arrays in each other.
constexpr int kMaxDepth = 100;

constexpr std::string_view kSpace = " \t\r\n";

[[noreturn]] void fail(const std::string &problem) { throw std::runtime_error(problem); }

bool parse(std::string_view word, double &value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  // Goes to the value of a key of the object that comes next.
  void enter(const std::string &key) {
    expect('{', "a JSON object");
    for (bool first = true; !take('}'); first = false) {
      if (!first) expect(',', "a comma");
      const std::string_view name = string();
      expect(':', "a colon");
      if (name == key) return;
      skip_value(0);
    }
    fail("has no field \"" + key + "\"");
  }

  std::vector<double> numbers() {
    std::vector<double> values;
    if (!take('[')) return {number()};
    for (bool first = true; !take(']'); first = false) {
      if (!first) expect(',', "a comma");
      values.push_back(number());
    }
    return values;
  }

 private:
  void skip_space() {
    const size_t begin = rest_.find_first_not_of(kSpace);
    rest_.remove_prefix(begin == std::string_view::npos ? rest_.size() : begin);
  }

  bool take(char c) {
    skip_space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c, const char *what) {
    if (!take(c)) fail(std::string("is no JSON: ") + what + " is missing");
  }

  // As it is written: keys with escapes are found by these.
  std::string_view string() {
    expect('"', "a string");
    for (size_t i = 0; i < rest_.size(); i++) {
      if (rest_[i] == '\\') {
        i++;
      } else if (rest_[i] == '"') {
        const std::string_view text = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return text;
      }
    }
    fail("is no JSON: a string has no end");
  }

  double number() {
    skip_space();
    double value = 0;
    const std::string_view word = take_word();
    if (!parse(word, value)) fail("has no number where the label should be");
    return value;
  }

  void skip_value(int depth) {
    if (depth > kMaxDepth) fail("is JSON with more than " + std::to_string(kMaxDepth) + " levels");
    skip_space();
    if (rest_.starts_with('"')) {
      string();
    } else if (take('[')) {
      for (bool first = true; !take(']'); first = false) {
        if (!first) expect(',', "a comma");
        skip_value(depth + 1);
      }
    } else if (take('{')) {
      for (bool first = true; !take('}'); first = false) {
        if (!first) expect(',', "a comma");
        string();
        expect(':', "a colon");
        skip_value(depth + 1);
      }
    } else {
      const std::string_view word = take_word();
      double value;
      if (!parse(word, value) && word != "true" && word != "false" && word != "null")
        fail("is no JSON: a value is missing");
    }
  }

  // A number, true, false or null.
  std::string_view take_word() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(",]} \t\r\n"));
    rest_.remove_prefix(word.size());
    return word;
  }

  std::string_view rest_;
};

std::vector<double> numbers_of_text(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n\v\f,";
  std::vector<double> values;
  for (size_t begin = text.find_first_not_of(kBetween); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    double value = 0;
    if (!parse(word.substr(word.starts_with('+')), value))
      fail("should hold the label, but " + quoted(word) + " is no number");
    values.push_back(value);
    begin = text.find_first_not_of(kBetween, end);
  }
  return values;
}

}  // namespace

std::vector<double> label_numbers(std::string_view text, const std::optional<std::string> &field) {
  if (!field) return numbers_of_text(text);
  JsonReader json(text);
  for (size_t begin = 0; begin <= field->size();) {
    const size_t end = std::min(field->find('.', begin), field->size());
    json.enter(field->substr(begin, end - begin));
    begin = end + 1;
  }
  return json.numbers();
}

}  // namespace dali_l3::loader
