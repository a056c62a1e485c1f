// Messages that can be shown, whatever the names in them.
#pragma once

#include <string>
#include <string_view>

namespace dali_l3::loader {

/** The text with what is not UTF-8 as in "\xE9". Names of files are any bytes; Python's messages are text. */
std::string printable(std::string_view text);

}  // namespace dali_l3::loader
