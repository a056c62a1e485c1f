#include "dataset/printable.h"

#include <cstddef>
#include <cstdint>

namespace dali_l3::loader {
namespace {

// Bytes of the character that the text begins with; 0 if there is none (Unicode 15, table 3-7).
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // No longer than need be, no surrogates, and nothing behind U+10FFFF.
  const int least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const int most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 0;
  for (size_t i = 2; i < size; i++)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  return size;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t size = character_size(text);
    if (size > 0) {
      shown += text.substr(0, size);
    } else {
      const auto byte = static_cast<uint8_t>(text[0]);
      shown.append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return shown;
}

}  // namespace dali_l3::loader
