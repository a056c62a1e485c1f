// The order of DALI's file reader. What is expected was delivered by fn.readers.file of DALI 2.4.0, and with seeds of
// 32 bits of 1.53.0 and 2.1.1, for files whose labels number them.
#include "plans/file_plan.h"

#include <stdexcept>

#include "orders.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

struct Expectation {
  const char *name;
  int64_t size;
  FilePlanOptions options;
  std::vector<uint32_t> entries;  // whole batches
};

FilePlanOptions plain(const ShardOptions &shards) { return {.shards = shards}; }

FilePlanOptions random_shuffle(const ShardOptions &shards, int initial_fill, int64_t seed) {
  return {.shards = shards, .random_shuffle = true, .initial_fill = initial_fill, .seed = seed};
}

FilePlanOptions shuffle_after_epoch(const ShardOptions &shards, EpochSeed seed, bool checkpointing) {
  return {
      .shards = shards, .shuffle_after_epoch = true, .shuffle_after_epoch_seed = seed, .checkpointing = checkpointing};
}

ShardOptions shards(int shard_id, int num_shards, bool stick_to_shard, bool pad_last_batch, int batch_size) {
  return {shard_id, num_shards, stick_to_shard, pad_last_batch, batch_size};
}

const Expectation kExpectations[] = {
    {"one shard", 7, plain(shards(0, 1, false, false, 3)), {0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0}},
    {"padding", 7, plain(shards(0, 1, false, true, 3)), {0, 1, 2, 3, 4, 5, 6, 6, 6, 0, 1, 2}},
    {"next shards", 7, plain(shards(0, 3, false, false, 2)), {0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4}},
    {"the same shard", 7, plain(shards(0, 3, true, false, 2)), {0, 1, 0, 1, 0, 1, 0, 1}},
    {"padding, next shards", 7, plain(shards(0, 3, false, true, 2)), {0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 6, 6, 0, 1, 1, 1}},
    {"padding, the same shard", 7, plain(shards(0, 3, true, true, 3)), {0, 1, 1, 0, 1, 1, 0, 1, 1}},
    {"a batch of padding", 7, plain(shards(0, 3, true, true, 2)), {0, 1, 1, 1, 0, 1, 1, 1}},
    {"random", 10, random_shuffle(shards(1, 2, false, false, 5), 3, 42), {4, 2, 8, 0, 3, 5, 9, 1, 7, 6,
                                                                          4, 2, 0, 3, 8, 5, 1, 7, 9, 6}},
    {"random, buffer above the shard",
     10,
     random_shuffle(shards(1, 2, true, true, 4), 1024, 42),
     {3, 8, 0, 4, 2, 2, 2, 2, 2, 0, 4, 3, 8, 8, 8, 8, 3, 8, 4, 2, 0, 0, 0, 0}},
    {"random, seed above 2^32",
     10,
     random_shuffle(shards(0, 1, false, false, 10), 4, 8589934634),
     {6, 5, 7, 9, 4, 2, 0, 1, 3, 8, 6, 5, 1, 2, 9, 7, 8, 3, 4, 0, 1, 9, 2, 7, 5, 8, 6, 0, 4, 3}},
    {"shuffle after epoch", 10, shuffle_after_epoch(shards(0, 2, false, false, 5), {}, false), {9, 6, 0, 5, 4, 7, 1,
                                                                                                4, 5, 8, 4, 5, 9, 8,
                                                                                                3, 7, 8, 5, 2, 3}},
    {"shuffle after epoch, checkpointing",
     10,
     shuffle_after_epoch(shards(0, 2, false, false, 5), {}, true),
     {9, 6, 0, 5, 4, 8, 7, 4, 3, 6, 2, 3, 9, 4, 8, 8, 3, 1, 9, 4}},
    {"shuffle after epoch, seed, padding",
     10,
     shuffle_after_epoch(shards(1, 2, false, true, 4), {1099511627779}, true),
     {3, 9, 4, 0, 5, 5, 5, 5, 6, 5, 8, 0, 7, 7, 7, 7}},
    {"shuffle after epoch, 32 bits",
     10,
     shuffle_after_epoch(shards(0, 2, false, false, 5), {kDaliSeed, true}, false),
     {1, 2, 7, 0, 6, 7, 6, 2, 0, 3, 4, 2, 7, 9, 8, 4, 3, 0, 1, 8}},
    {"shuffle after epoch, 32 bits, checkpointing",
     10,
     shuffle_after_epoch(shards(0, 2, false, false, 5), {kDaliSeed, true}, true),
     {1, 2, 7, 0, 6, 2, 4, 1, 3, 9, 5, 2, 0, 8, 7, 0, 6, 7, 5, 4}},
    {"shuffle after epoch, 32 bits, padding",
     10,
     shuffle_after_epoch(shards(1, 2, false, true, 4), {kDaliSeed, true}, true),
     {4, 5, 8, 9, 3, 3, 3, 3, 5, 6, 7, 8, 0, 0, 0, 0}},
};

SampleOrder order_of(const Expectation &expectation) {
  return {expectation.options.shards, expectation.size,
          std::make_unique<FilePlan>(expectation.options, expectation.size)};
}

std::string refusal(const FilePlanOptions &options, int64_t size) {
  try {
    FilePlan plan(options, size);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "";
}

TEST(delivers_what_dali_delivers) {
  for (const Expectation &expectation : kExpectations) {
    const testing::Context context("%s", expectation.name);
    const auto batches = static_cast<int>(expectation.entries.size()) / expectation.options.shards.batch_size;
    SampleOrder order = order_of(expectation);
    CHECK_EQUAL(text(next_entries(order, batches)), text(expectation.entries));
  }
}

TEST(seeks_forwards_and_backwards) {
  for (const Expectation &expectation : kExpectations) {
    const int batch_size = expectation.options.shards.batch_size,
              batches = static_cast<int>(expectation.entries.size()) / batch_size;
    SampleOrder order = order_of(expectation);
    for (const int batch : {batches - 1, 0, 1, batches / 2}) {
      const testing::Context context("%s, batch %d", expectation.name, batch);
      order.seek(batch);
      const std::vector<uint32_t> rest(expectation.entries.begin() + batch * batch_size, expectation.entries.end());
      CHECK_EQUAL(text(next_entries(order, batches - batch)), text(rest));
    }
  }
}

TEST(refuses_options_that_do_not_suit) {
  CHECK_EQUAL(refusal(plain(shards(0, 3, false, false, 2)), 2), "There are fewer samples (2) than shards (3)");
  CHECK_EQUAL(refusal(plain(shards(3, 3, false, false, 2)), 9),
              "shard_id is 3, but must be at least 0 and below num_shards, which is 3");
  CHECK_EQUAL(refusal(plain(shards(-1, 3, false, false, 2)), 9),
              "shard_id is -1, but must be at least 0 and below num_shards, which is 3");
  CHECK_EQUAL(refusal(plain(shards(0, 0, false, false, 2)), 9), "num_shards is 0, but must be at least 1");
  CHECK_EQUAL(refusal(plain(shards(0, 1, false, false, 0)), 9), "The batch size is 0, but must be at least 1");
  CHECK_EQUAL(refusal(plain(shards(0, 1, false, false, 1)), kMaxSamples + 1), "There are too many samples: 2147483648");
  CHECK_EQUAL(refusal(random_shuffle({}, 0, 1), 9), "initial_fill must be at least 1");
  FilePlanOptions both = random_shuffle({}, 4, 1);
  both.shuffle_after_epoch = true;
  CHECK_EQUAL(refusal(both, 9), "shuffle_after_epoch and random_shuffle exclude each other");
  CHECK_EQUAL(refusal(shuffle_after_epoch(shards(0, 1, true, false, 1), {1}, false), 9),
              "shuffle_after_epoch and stick_to_shard exclude each other");
}

}  // namespace
