// Whole batches, planned and gathered as for a GPU and decoded by its kernels in lock step on the CPU, against the CPU
// decoder.
#include <algorithm>
#include <map>
#include <memory>

#include "batch_cases.h"
#include "data_files.h"
#include "format/bytes.h"
#include "lockstep_batch.h"
#include "testing.h"

using namespace l3;

namespace {

// Decodes in both ways: the outputs and all around them must be equal. What is refused must be refused by both, and the
// kernels must leave its output alone.
std::map<TileKind, uint32_t> check_batch(const std::vector<Wanted> &wanted) {
  std::vector<Destination> expected, actual;
  std::vector<l3_status> statuses;
  for (const Wanted &one : wanted) {
    Destination destination(one);
    const l3_output output = destination.output();
    statuses.push_back(l3_decode(&destination.file, &one.region, &output, 0, nullptr));
    expected.push_back(statuses.back() ? Destination(one) : std::move(destination));
    actual.emplace_back(one);
  }
  std::vector<l3_cuda_image> images;
  for (Destination &one : actual) images.push_back({one.file, one.wanted.region, one.output()});
  BatchPlan plan;
  size_t failed = 0;
  CHECK_EQUAL(plan.plan(images.data(), images.size(), &failed, nullptr), L3_OK);
  const auto buffer = std::make_unique<uint64_t[]>((plan.layout().end + 7) / 8);
  uint8_t *const bytes = reinterpret_cast<uint8_t *>(buffer.get());
  for (size_t i = 0; i < images.size(); i++) CHECK_EQUAL(plan.gather(i, false, bytes, nullptr), statuses[i]);
  plan.finish(bytes);
  const auto counts = decode_in_lockstep(bytes, plan.layout());
  for (size_t i = 0; i < images.size(); i++) {
    const l3_info &info = actual[i].file.info;
    const Wanted &one = actual[i].wanted;
    const testing::Context context(
        "image %zu: profile %u, %u bits, %u channels, %u x %u; region %u x %u at (%u, %u), color %d, sample %d", i,
        info.profile, info.bits, info.channels, info.width, info.height, one.region.width, one.region.height,
        one.region.x, one.region.y, int(one.color), int(one.sample));
    CHECK(actual[i].memory == expected[i].memory);
  }
  return counts;
}

}  // namespace

TEST(golden_files) {
  Random random(1);
  const auto files = data_files("golden");
  std::vector<Wanted> wanted;
  for (const DataFile &file : files) wanted.push_back(whole(file.bytes));
  for (const DataFile &file : files) wanted.push_back(some(random, file.bytes));
  const auto counts = check_batch(wanted);
  CHECK_EQUAL(counts.size(), size_t{kTileKinds});
}

TEST(mixed_batches) {
  Random random(2);
  std::map<TileKind, uint32_t> total;
  for (uint32_t round = 0; round < 60; round++) {
    const testing::Context context("round %u", round);
    std::vector<Bytes> files;
    for (uint32_t i = random.between(1, 12); i; i--) files.push_back(some_file(random));
    std::vector<Wanted> wanted;
    for (const Bytes &file : files) wanted.push_back(some(random, file));
    for (const auto &[kind, count] : check_batch(wanted)) total[kind] += count;
  }
  for (uint32_t kind = 0; kind < kTileKinds; kind++) CHECK(total[TileKind(kind)] > 10);
}

// What the host accepts of damaged files decodes to the same, whatever it is.
TEST(damaged_files) {
  Random random(3);
  uint32_t accepted = 0;
  for (uint32_t round = 0; round < 300; round++) {
    const testing::Context context("round %u", round);
    const Bytes file = damaged(random, some_file(random, false));
    accepted += !check_batch({some(random, file)}).empty();
  }
  CHECK(accepted > 50);
}

TEST(broken_images_of_a_batch_are_left_out) {
  Random random(4);
  uint32_t with_both = 0;
  for (uint32_t round = 0; round < 100; round++) {
    const testing::Context context("round %u", round);
    std::vector<Bytes> files;
    for (uint32_t i = random.between(2, 8); i; i--) {
      files.push_back(some_file(random, false));
      if (random.below(2)) files.back() = damaged(random, files.back());
    }
    std::vector<Wanted> wanted;
    uint32_t tiles = 0;
    for (const Bytes &file : files) {
      wanted.push_back(whole(file));
      tiles += (wanted.back().region.width + 63) / 64 * ((wanted.back().region.height + 63) / 64);
    }
    uint32_t decoded = 0;
    for (const auto &[kind, count] : check_batch(wanted)) decoded += count;
    with_both += decoded > 0 && decoded < tiles;
  }
  CHECK(with_both > 20);
}
