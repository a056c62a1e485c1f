// Refusal of arguments.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>

namespace dali_l3::roi {

/** Throws std::invalid_argument with a message of these parts unless the condition holds. */
template <typename... Parts>
void require(bool condition, const Parts &...message) {
  if (condition) return;
  std::ostringstream text;
  text.imbue(std::locale::classic());
  (text << ... << message);
  throw std::invalid_argument(text.str());
}

}  // namespace dali_l3::roi
