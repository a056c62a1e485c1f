// Limits on an arena's memory.
#include "input/quota.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include "testing.h"

using namespace dali_l3::loader;

TEST(limits_are_exact) {
  Arena arena(0);
  Quota quota(arena, 4 * kPage + 1);
  const Block three = quota.allocate(3 * kPage);
  CHECK(three);
  CHECK(!quota.allocate(kPage + 1));
  Block fourth = quota.allocate(kPage);
  CHECK(fourth);
  CHECK(!quota.allocate(0));
  CHECK_EQUAL(quota.used(), 4 * kPage);
  CHECK_EQUAL(arena.used(), 4 * kPage);
  fourth.reset();
  CHECK_EQUAL(quota.used(), 3 * kPage);
  CHECK(quota.allocate(1));
  CHECK_EQUAL(quota.peak(), 4 * kPage);
}

TEST(limits_too_small_for_anything) {
  Arena arena(0);
  for (const size_t limit : {size_t{0}, kPage - 1}) {
    Quota quota(arena, limit);
    for (const size_t size : {size_t{0}, size_t{1}, kPage, SIZE_MAX}) CHECK(!quota.allocate(size));
  }
  CHECK_EQUAL(arena.reserved(), 0u);
}

TEST(what_the_arena_refuses_does_not_count) {
  Arena arena(0);
  Quota quota(arena, Quota::kUnlimited);
  bool refused = false;
  try {
    quota.allocate(Quota::kUnlimited / 2);
  } catch (const std::system_error &) {
    refused = true;
  }
  CHECK(refused);
  CHECK_EQUAL(quota.used(), 0u);
}

TEST(quotas_share_memory_but_not_limits) {
  Arena arena(1 << 20);
  Quota one(arena, 2 * kPage), other(arena, 3 * kPage);
  const uint8_t *place = one.allocate(2 * kPage).get();
  const Block block = other.allocate(2 * kPage);
  CHECK(block.get() == place);
  CHECK_EQUAL(one.used(), 0u);
  CHECK_EQUAL(other.used(), 2 * kPage);
  CHECK(one.allocate(2 * kPage));
  CHECK(!other.allocate(2 * kPage));
}

TEST(blocks_outlive_quota_and_arena) {
  std::optional<Arena> arena(0);
  std::optional<Quota> quota(std::in_place, *arena, kPage);
  Block block = quota->allocate(1);
  quota.reset();
  arena.reset();
  *block = 7;
  CHECK_EQUAL(int(*block), 7);
  block.reset();
}

TEST(many_threads) {
  constexpr size_t kLimit = 20 * kPage;
  Arena arena(10 * kPage);
  Quota quota(arena, kLimit);
  std::atomic<int> too_much{0}, given{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; thread++) {
      threads.emplace_back([&, thread] {
        std::mt19937 random(thread);
        std::vector<Block> blocks(6);
        for (int step = 0; step < 3000; step++) {
          Block &block = blocks[random() % blocks.size()];
          block = quota.allocate(random() % (3 * kPage));
          given += block != nullptr;
          too_much += quota.used() > kLimit;
        }
      });
    }
  }
  CHECK_EQUAL(too_much, 0);
  CHECK(given > 1000);
  CHECK_EQUAL(quota.used(), 0u);
  CHECK(quota.peak() <= kLimit);
}
