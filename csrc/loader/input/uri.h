// URIs, among the paths that people give.
#pragma once

#include <algorithm>
#include <string_view>

namespace dali_l3::loader {

/** What is before "://" in a URI such as s3://bucket/a.png; empty if it is a path of a file system. */
inline std::string_view scheme_of(std::string_view path) {
  const size_t end = path.find("://");
  const auto in_scheme = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
           c == '.';
  };
  if (end == std::string_view::npos || !std::ranges::all_of(path.substr(0, end), in_scheme)) return {};
  return path.substr(0, end);
}

inline bool is_uri(std::string_view path) { return !scheme_of(path).empty(); }

}  // namespace dali_l3::loader
