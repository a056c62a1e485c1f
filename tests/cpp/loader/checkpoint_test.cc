// Checkpoints: what is written is read again, and nothing else is.
#include "checkpoint.h"

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "l3/format/crc32.h"
#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

Checkpoint checkpoint(int64_t seed, int64_t batches) {
  return {.seed = seed, .dataset = {{"files", "3"}}, .stages = {{.batches = batches, .arguments = {{"reader", "x"}}}}};
}

const Checkpoint kCheckpoints[] = {
    checkpoint(0, 0),
    checkpoint(INT64_MIN, INT64_MAX),
    {.seed = INT64_MAX,
     .shard_id = INT32_MAX,
     .dataset = {{"files", "23"}, {"names", "0123abcd"}},
     .stages = {{.batches = 12, .arguments = {{"reader", "liquid"}, {"read_order", ""}, {"value", "a=b"}}},
                {},
                {7, {}}}},
    {.shard_id = -1, .stages = {{}}},
};

// What bytes are changed to: those that mean something, and a few others.
constexpr char kBytes[] = {' ', '=', '-', '+', '0', '1', '9', 'a', 'r', 's', '\0', '\n', '\x7f', '\xff'};

constexpr const char *kRefusal =
    "This is not the checkpoint of a reader of this version of dali_l3, or it is damaged: begin without it, or use the "
    "version that made it";

// What a text is read as; nothing where it is refused, with the one message that there is.
std::optional<Checkpoint> read(std::string_view text) {
  std::optional<Checkpoint> checkpoint;
  const std::string error = testing::error_of([&] { checkpoint = parse_checkpoint(text); });
  if (!checkpoint) CHECK_EQUAL(error, kRefusal);
  return checkpoint;
}

std::string with_checksum(const std::string &text) {
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "%08x", l3::crc32_ieee_portable(text.data(), text.size()));
  return text + " crc32=" + checksum;
}

TEST(checksums_are_those_of_zlib) {
  CHECK_EQUAL(write_checkpoint(checkpoint(7, 2)),
              "dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=2 reader=x crc32=eec51225");
  CHECK_EQUAL(write_checkpoint(kCheckpoints[2]),
              "dali_l3-reader=4 seed=9223372036854775807 shard_id=2147483647 files=23 names=0123abcd stage=12 "
              "reader=liquid read_order= value=a=b stage=0 stage=7 crc32=0ec77e94");
}

TEST(what_is_written_is_read_again) {
  for (const Checkpoint &checkpoint : kCheckpoints) CHECK(read(write_checkpoint(checkpoint)) == checkpoint);
  Random random{1};
  const auto settings = [&random] {
    Settings settings(random.below(4));
    for (Setting &setting : settings) {
      setting = {"name" + std::to_string(random.below(1000)), ""};
      for (uint32_t size = random.below(20); size > 0; size--)
        setting.value += static_cast<char>(33 + random.below(94));
    }
    return settings;
  };
  for (int i = 0; i < 3000; i++) {
    Checkpoint checkpoint{.seed = static_cast<int64_t>(random.next()),
                          .shard_id = static_cast<int>(random.below(UINT32_MAX)),
                          .dataset = settings()};
    for (uint32_t stages = 1 + random.below(3); stages > 0; stages--)
      checkpoint.stages.push_back({static_cast<int64_t>(random.next() >> 1 >> i % 63), settings()});
    CHECK(read(write_checkpoint(checkpoint)) == checkpoint);
  }
}

TEST(every_change_of_a_byte_is_noticed) {
  for (const Checkpoint &checkpoint : kCheckpoints) {
    const std::string text = write_checkpoint(checkpoint);
    for (size_t i = 0; i < text.size(); i++) {
      for (const char byte : kBytes) {
        std::string changed = text;
        changed[i] = byte;
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
      for (const char byte : kBytes) CHECK(!read(std::string(text).insert(i, 1, byte)));
    }
    CHECK(!read(text + text) && !read(text + " " + text) && !read(std::string(1 << 20, '7')));
  }
}

TEST(texts_with_a_right_checksum_but_wrong_words_are_refused) {
  CHECK(read(with_checksum("dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=2 reader=x")) == checkpoint(7, 2));
  for (const char *text : {"",
                           " ",
                           "dali_l3-reader=4",
                           "dali_l3-reader=3 seed=7 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=5 seed=7 shard_id=0 files=3 stage=2 reader=x",
                           "seed=7 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=7 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=7 shard_id=0 files=3",
                           "dali_l3-reader=4 shard_id=0 seed=7 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=7 seed=7 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=07 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=+7 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=-0 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed= shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=7.0 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=9223372036854775808 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=7 shard_id=2147483648 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=-1 reader=x",
                           "dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=02 reader=x",
                           "dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=9223372036854775808 reader=x",
                           "dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=2 reader",
                           "dali_l3-reader=4 seed=7 shard_id=0  files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=7 shard_id=0\tfiles=3 stage=2 reader=x",
                           " dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=2 reader=x",
                           "dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=2 reader=x ",
                           "dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=2 reader=x crc32=00000000",
                           "dali_l3-reader=4 seed=7 shard_id=0 files=3 stage=2 dali_l3-reader=4 reader=x"}) {
    const testing::Context context("%s", text);
    CHECK(!read(with_checksum(text)));
  }
}

TEST(foreign_texts_are_refused) {
  for (const std::string_view text :
       {std::string_view("7 2 83365f25"), std::string_view("7 2"), std::string_view("\0\0\0\0", 4),
        std::string_view("{}"), std::string_view("\x08\x07\x10\x02", 4), std::string_view()})
    CHECK(!read(text));
  const std::string words = write_checkpoint(kCheckpoints[2]);
  Random random{2};
  for (int i = 0; i < 10000; i++) {
    std::string text(random.below(40), ' ');
    for (char &c : text)
      c = i % 2 ? words[random.below(static_cast<uint32_t>(words.size()))] : static_cast<char>(random.below(256));
    CHECK(!read(text));
    CHECK(!read(with_checksum(text)));
  }
}

}  // namespace
