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

/** Why no reader can ask for what a URI names, in words that follow the URI; empty if one may, with a DALI that knows
 * the service. */
inline std::string_view refusal_of(std::string_view uri) {
  if (scheme_of(uri) == "gs") return {};
  if (scheme_of(uri) != "s3")
    return "only s3:// and gs:// can be read, and paths of files in local or mounted file systems";
  if (uri.find_first_of("?#") != std::string_view::npos)
    return "DALI takes what is behind ? or # for no part of the name";
  return {};
}

}  // namespace dali_l3::loader
