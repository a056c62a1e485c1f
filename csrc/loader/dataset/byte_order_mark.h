// What editors of Windows put before text in UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace dali_l3::loader {

/** Takes the mark off the first line of a text, if it has one. */
inline void drop_byte_order_mark(std::string &first_line) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (first_line.starts_with(kMark)) first_line.erase(0, kMark.size());
}

}  // namespace dali_l3::loader
