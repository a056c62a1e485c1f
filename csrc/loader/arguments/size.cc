#include "arguments/size.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace dali_l3::loader {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f", kPrefixes = "kmgt";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// Digits, with a point between them at most, and a sign.
bool is_number(std::string_view text) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  text.remove_prefix(text.starts_with('-'));
  return !text.empty() && is_digit(text.front()) && is_digit(text.back()) && std::ranges::count(text, '-') == 0 &&
         std::ranges::count(text, '.') <= 1;
}

// Bytes in a unit; 0 if it is none.
long double bytes_in(std::string unit) {
  for (char &c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.empty() || unit == "b") return 1;
  const size_t power = kPrefixes.find(unit[0]) + 1;  // 0 if it is no prefix
  const std::string rest = unit.substr(1);
  if (power == 0 || (!rest.empty() && rest != "b" && rest != "ib")) return 0;
  return std::pow(rest == "b" ? 1000.0L : 1024.0L, power);
}

}  // namespace

int64_t parse_size(const std::string &argument, const std::string &text) {
  const std::string_view size = trimmed(text);
  const size_t end = std::min(size.find_first_not_of("-.0123456789"), size.size());
  const std::string_view number = size.substr(0, end), unit = trimmed(size.substr(end));
  const long double factor = bytes_in(std::string(unit));
  const bool has_half_bytes = unit.empty() && number.find('.') != std::string_view::npos;
  if (!is_number(number) || factor == 0 || has_half_bytes)
    throw std::invalid_argument(argument + " is \"" + text +
                                "\", but must be a number of bytes, or one with a unit, such as \"60GiB\"");
  long double value = 0;
  const auto [stop, error] = std::from_chars(number.data(), number.data() + end, value, std::chars_format::fixed);
  const long double bytes = std::round(value * factor);
  if (error != std::errc() || std::fabs(bytes) >= 0x1p63L)
    throw std::invalid_argument(argument + " is " + text + ", which does not fit into 64 bits");
  return static_cast<int64_t>(bytes);
}

}  // namespace dali_l3::loader
