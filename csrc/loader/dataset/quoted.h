// Texts that others have written, in messages.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace dali_l3::loader {

/** The begin of a text between quotation marks, with ? in the place of what is not printable ASCII. */
inline std::string quoted(std::string_view text) {
  std::string begin(text.substr(0, 60));
  std::ranges::replace_if(begin, [](char c) { return c < ' ' || c > '~'; }, '?');
  return '"' + begin + '"';
}

}  // namespace dali_l3::loader
