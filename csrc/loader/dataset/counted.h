// Numbers in messages.
#pragma once

#include <cstdint>
#include <string>

namespace dali_l3::loader {

/** "1 file", "2 files". */
inline std::string counted(uint64_t number, const std::string &noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace dali_l3::loader
