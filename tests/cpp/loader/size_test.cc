// Sizes in bytes, as people write them.
#include "arguments/size.h"

#include <cstdint>
#include <string>

#include "testing.h"

using dali_l3::loader::parse_size;
using testing::error_of;

TEST(sizes_have_units) {
  const struct {
    const char *text;
    int64_t bytes;
  } sizes[] = {
      {"0", 0},
      {"1000", 1000},
      {" 1000 ", 1000},
      {"-1", -1},
      {"7B", 7},
      {"1k", 1024},
      {"1KB", 1000},
      {"1 KiB", 1024},
      {"512M", int64_t{512} << 20},
      {"60GiB", int64_t{60} << 30},
      {"1.5 gb", 1'500'000'000},
      {"2tib", int64_t{2} << 40},
      {"3TB", 3'000'000'000'000},
      {"0.5K", 512},
      {"9223372036854775807", INT64_MAX},
  };
  for (const auto &[text, bytes] : sizes) {
    const testing::Context context("%s", text);
    CHECK_EQUAL(parse_size("cache_size", text), bytes);
  }
}

TEST(other_texts_are_none) {
  const std::string digits(100'000, '9');
  for (const std::string &text :
       {std::string(),         std::string(" "),   std::string("-"),        std::string("."),   std::string("GiB"),
        std::string("much"),   std::string("0.5"), std::string("600000.0"), std::string(".5K"), std::string("1.K"),
        std::string("1.2.3K"), std::string("--1"), std::string("1-2"),      std::string("+1"),  std::string("1e9"),
        std::string("0x10"),   std::string("inf"), std::string("nan"),      std::string("1 2"), std::string("1GiBs"),
        std::string("1PB"),    std::string("50%"), std::string("True")}) {
    const testing::Context context("%s", text.c_str());
    CHECK_EQUAL(error_of([&] { parse_size("cache_size", text); }),
                "cache_size is \"" + text + "\", but must be a number of bytes, or one with a unit, such as \"60GiB\"");
  }
  for (const std::string &text : {std::string("9223372036854775808"), std::string("8388608T"), digits})
    CHECK(error_of([&] { parse_size("cache_size", text); }).ends_with(", which does not fit into 64 bits"));
}
