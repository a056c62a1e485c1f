// Messages with names that are not UTF-8.
#include "dataset/printable.h"

#include <cstdint>
#include <string>

#include "testing.h"

using dali_l3::loader::printable;

namespace {

std::string utf8(uint32_t code) {
  const auto rest = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), rest(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), rest(6), rest(0)};
  return {static_cast<char>(0xF0 | code >> 18), rest(12), rest(6), rest(0)};
}

}  // namespace

TEST(all_characters_stay) {
  for (uint32_t code = 0; code < 0x110000; code++) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string character = utf8(code);
    CHECK_EQUAL(printable(character), character);
  }
  CHECK_EQUAL(printable(""), "");
  CHECK_EQUAL(printable("zürich/日本.png: No such file"), "zürich/日本.png: No such file");
}

TEST(other_bytes_are_written_as_numbers) {
  CHECK_EQUAL(printable("\xE9t\xE9.png"), "\\xE9t\\xE9.png");
  CHECK_EQUAL(printable("a\xFF\xFE"), "a\\xFF\\xFE");
  CHECK_EQUAL(printable("\x80"), "\\x80");
  for (const uint32_t surrogate : {0xD800, 0xDFFF}) CHECK_EQUAL(printable(utf8(surrogate)).size(), size_t{12});
  CHECK_EQUAL(printable(utf8(0x110000)).size(), size_t{16});
  CHECK_EQUAL(printable("\xC0\xAF"), "\\xC0\\xAF");                    // a slash of two bytes
  CHECK_EQUAL(printable("\xE0\x80\xAF"), "\\xE0\\x80\\xAF");           // of three
  CHECK_EQUAL(printable("\xF0\x80\x80\xAF"), "\\xF0\\x80\\x80\\xAF");  // of four
}

TEST(characters_that_are_cut_off_are_none) {
  for (const uint32_t code : {0xE9U, 0x65E5U, 0x1F600U}) {
    const std::string character = utf8(code);
    for (size_t size = 1; size < character.size(); size++) {
      const std::string part = character.substr(0, size);
      CHECK_EQUAL(printable(part).size(), 4 * size);
      CHECK_EQUAL(printable(part + "ü"), printable(part) + "ü");
    }
  }
}
