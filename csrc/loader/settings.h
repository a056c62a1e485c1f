// Named values as text: what a checkpoint remembers of arguments and of a dataset.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <vector>

namespace dali_l3::loader {

/** Both without spaces, the name without '='; values as Python writes them: True, None, 32, liquid. */
struct Setting {
  std::string name, value;

  bool operator==(const Setting &) const = default;
};

using Settings = std::vector<Setting>;

/** @name Values to text @{ */
inline std::string to_text(bool value) { return value ? "True" : "False"; }
inline std::string to_text(std::integral auto value) { return std::to_string(value); }
inline std::string to_text(const std::string &value) { return value; }
inline std::string to_text(const std::optional<std::string> &value) { return value.value_or("None"); }
/** @} */

/** @name Text to values: whether it is one @{ */
inline bool from_text(const std::string &text, bool &value) {
  value = text == "True";
  return value || text == "False";
}
inline bool from_text(const std::string &text, std::integral auto &value) {
  const char *const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}
inline bool from_text(const std::string &text, std::string &value) {
  value = text;
  return true;
}
inline bool from_text(const std::string &text, std::optional<std::string> &value) {
  value = text == "None" ? std::nullopt : std::optional(text);
  return true;
}
/** @} */

}  // namespace dali_l3::loader
