// Checkpoints: what is written is read again, and nothing else is.
#include "checkpoint.h"

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

const Checkpoint kCheckpoints[] = {
    {0, 0}, {7, 2}, {-1, 1}, {123456789, 987654321}, {INT64_MAX, INT64_MAX}, {INT64_MIN, 0}, {INT64_MIN, INT64_MAX}};

// What a text is read as; nothing where it is refused, with the one message that there is.
std::optional<Checkpoint> read(std::string_view text) {
  std::optional<Checkpoint> checkpoint;
  const std::string error = testing::error_of([&] { checkpoint = parse_checkpoint(text); });
  if (!checkpoint) CHECK_EQUAL(error, "This is not the checkpoint of a reader of dali_l3");
  return checkpoint;
}

TEST(checksums_are_those_of_zlib) {
  CHECK_EQUAL(write_checkpoint({7, 2}), "7 2 83365f25");
  CHECK_EQUAL(write_checkpoint({7, 13}), "7 13 0d783f40");  // all 8 digits
  CHECK_EQUAL(write_checkpoint({0, 0}), "0 0 6877288c");
  CHECK_EQUAL(write_checkpoint({INT64_MIN, INT64_MAX}), "-9223372036854775808 9223372036854775807 97b41a33");
}

TEST(what_is_written_is_read_again) {
  for (const Checkpoint &checkpoint : kCheckpoints) CHECK(read(write_checkpoint(checkpoint)) == checkpoint);
  Random random{1};
  for (int i = 0; i < 10000; i++) {
    const Checkpoint checkpoint{static_cast<int64_t>(random.next()),
                                static_cast<int64_t>(random.next() >> 1 >> i % 63)};
    CHECK(read(write_checkpoint(checkpoint)) == checkpoint);
  }
}

TEST(every_change_of_a_byte_is_noticed) {
  for (const Checkpoint &checkpoint : kCheckpoints) {
    const std::string text = write_checkpoint(checkpoint);
    for (size_t i = 0; i < text.size(); i++) {
      for (int byte = 0; byte < 256; byte++) {
        std::string changed = text;
        changed[i] = static_cast<char>(byte);
        const testing::Context context("byte %d of \"%s\" is %d", static_cast<int>(i), text.c_str(), byte);
        CHECK(read(changed) == (changed == text ? std::optional(checkpoint) : std::nullopt));
      }
    }
  }
}

TEST(missing_and_added_bytes_are_noticed) {
  for (const Checkpoint &checkpoint : kCheckpoints) {
    const std::string text = write_checkpoint(checkpoint);
    for (size_t size = 0; size < text.size(); size++) {
      CHECK(!read(text.substr(0, size)));
      CHECK(!read(text.substr(text.size() - size)));
      CHECK(!read(std::string(text).erase(size, 1)));
    }
    for (size_t i = 0; i <= text.size(); i++) {
      for (int byte = 0; byte < 256; byte++) CHECK(!read(std::string(text).insert(i, 1, static_cast<char>(byte))));
    }
    CHECK(!read(text + text) && !read(text + " " + text) && !read(std::string(1 << 20, '7')));
  }
}

TEST(texts_with_a_right_checksum_but_wrong_numbers_are_refused) {
  for (const char *text : {" 00000000",
                           "  e96ccf45",
                           "7 6abf4a82",
                           "7  eab09203",
                           " 2 1c8a67dd",
                           "07 2 ad18a18a",
                           "+7 2 2a007114",
                           "-0 2 0a24384d",
                           "7 02 63643e97",
                           "7 -1 05010331",
                           "7  2 29a62cc6",
                           " 7 2 fd01f615",
                           "7\t2 c770c0ce",
                           "7 2x c75bf49b",
                           "x 2 f8f095d8",
                           "9223372036854775808 0 06b602a9",
                           "0 9223372036854775808 8f897c94",
                           "-9223372036854775809 0 940c5ff6",
                           "99999999999999999999 2 7771bc6c",
                           "7 -9223372036854775808 dfa0fa7c",
                           "7.0 2 ecf6db34",
                           "0x7 2 b5ff41df",
                           "7 2 2 0fad7869"})
    CHECK(!read(text));
}

TEST(foreign_texts_are_refused) {
  for (const std::string_view text : {std::string_view("7 2"), std::string_view("\0\0\0\0", 4), std::string_view("{}"),
                                      std::string_view("\x08\x07\x10\x02", 4), std::string_view()})
    CHECK(!read(text));
  Random random{2};
  for (int i = 0; i < 100000; i++) {
    std::string text(random.below(40), ' ');
    for (char &c : text) c = i % 2 ? "0123456789 -abcdef"[random.below(18)] : static_cast<char>(random.below(256));
    CHECK(!read(text));
  }
}

}  // namespace
