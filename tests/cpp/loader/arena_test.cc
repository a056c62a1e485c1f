// The arena: its limits, also as the system counts them, and that blocks never overlap.
#include "arena.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "testing.h"

using namespace dali_l3::loader;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

using Block = std::shared_ptr<uint8_t>;

Block filled_block(Arena &arena, size_t size, uint8_t value = 1) {
  Block block = arena.allocate(size);
  if (block) std::memset(block.get(), value, extents(size));
  return block;
}

bool holds_only(const Block &block, size_t size, uint8_t value) {
  return *block == value && std::memcmp(block.get(), block.get() + 1, size - 1) == 0;
}

// What the system counts as resident of the arenas' memory: that of the areas that forked processes do not inherit.
size_t system_resident() {
  std::ifstream areas("/proc/self/smaps");
  size_t sum = 0, area = 0;
  for (std::string line; std::getline(areas, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "Rss:") words >> area;
    if (key == "VmFlags:" && (line + " ").find(" dc ") != std::string::npos) sum += area * 1024;
  }
  return sum;
}

}  // namespace

TEST(blocks_are_whole_extents) {
  Arena arena(10 * kMiB);
  CHECK_EQUAL(arena.budget(), 10 * kMiB);
  for (const auto &[size, taken] : {std::pair<size_t, size_t>{0, 4096}, {1, 4096}, {4096, 4096}, {4097, 8192}, {3 * kMiB, 3 * kMiB}}) {
    const testing::Context context("%zu bytes", size);
    const Block block = filled_block(arena, size);
    CHECK(block);
    CHECK_EQUAL(reinterpret_cast<uintptr_t>(block.get()) % kExtent, 0u);
    CHECK_EQUAL(arena.used(), taken);
  }
  CHECK_EQUAL(arena.used(), 0u);
  CHECK_EQUAL(arena.peak(), 3 * kMiB);
}

TEST(budget_is_exact) {
  Arena arena(4 * kExtent + 1);
  const Block three = arena.allocate(3 * kExtent);
  CHECK(three);
  CHECK(!arena.allocate(kExtent + 1));
  Block fourth = arena.allocate(kExtent);
  CHECK(fourth);
  CHECK(!arena.allocate(1));
  CHECK_EQUAL(arena.used(), 4 * kExtent);
  fourth.reset();
  CHECK(arena.allocate(1));
}

TEST(budgets_too_small_for_anything) {
  for (size_t budget : {size_t{0}, kExtent - 1}) {
    Arena arena(budget);
    for (size_t size : {size_t{0}, size_t{1}, kExtent, SIZE_MAX}) CHECK(!arena.allocate(size));
    CHECK_EQUAL(arena.resident(), 0u);
    CHECK_EQUAL(arena.reserved(), 0u);
  }
}

TEST(more_than_there_is_address_space) {
  for (size_t budget : {Arena::kUnlimited, SIZE_MAX}) {
    Arena arena(budget);
    bool refused = false;
    try {
      arena.allocate(Arena::kUnlimited / 2);
    } catch (const std::system_error &error) {
      refused = error.code() == std::errc::not_enough_memory;
    }
    CHECK(refused);
    CHECK(!arena.allocate(SIZE_MAX));
    CHECK_EQUAL(arena.used(), 0u);
    CHECK(filled_block(arena, kMiB));
  }
}

TEST(larger_than_a_gibibyte) {
  Arena arena(Arena::kUnlimited);
  const size_t size = (size_t{2} << 30) + 1;
  const Block block = arena.allocate(size);
  block.get()[0] = block.get()[size - 1] = 1;
  CHECK_EQUAL(arena.used(), extents(size));
  CHECK(filled_block(arena, kMiB));
}

TEST(blocks_outlive_the_arena) {
  const size_t before = system_resident();
  {
    Block block;
    {
      Arena arena(kMiB);
      block = filled_block(arena, kMiB, 7);
    }
    CHECK(holds_only(block, kMiB, 7));
  }
  CHECK_EQUAL(system_resident(), before);
}

TEST(freed_memory_is_used_again) {
  Arena arena(64 * kMiB);
  const uint8_t *first = filled_block(arena, 3 * kMiB).get();
  CHECK_EQUAL(arena.resident(), 3 * kMiB);
  const Block smaller = filled_block(arena, kMiB), rest = filled_block(arena, 2 * kMiB);
  CHECK_EQUAL(static_cast<const void *>(smaller.get()), static_cast<const void *>(first));
  CHECK_EQUAL(arena.resident(), 3 * kMiB);
}

TEST(neighbours_are_joined_in_any_order) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    Arena arena(16 * kMiB);
    std::vector<Block> blocks;
    for (size_t i = 0; i < order.size(); i++) blocks.push_back(filled_block(arena, kMiB));
    for (int i : order) blocks[size_t(i)].reset();
    CHECK(filled_block(arena, 4 * kMiB));
    CHECK_EQUAL(arena.resident(), 4 * kMiB);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(idle_memory_makes_room_for_blocks_it_is_too_scattered_for) {
  Arena arena(16 * kMiB);
  const size_t before = system_resident();
  std::vector<Block> blocks;
  for (size_t i = 0; i < 128; i++) blocks.push_back(filled_block(arena, kMiB / 8));
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  CHECK_EQUAL(arena.used(), 8 * kMiB);
  CHECK_EQUAL(arena.resident(), 16 * kMiB);

  const Block large = filled_block(arena, 8 * kMiB);
  CHECK(large);
  CHECK_EQUAL(arena.resident(), 16 * kMiB);
  CHECK(system_resident() - before <= 16 * kMiB + 2 * kMiB);
}

TEST(idle_memory_is_limited) {
  const size_t before = system_resident();
  Arena arena(Arena::kUnlimited, 8 * kMiB);
  std::vector<Block> blocks;
  for (size_t i = 0; i < 30; i++) blocks.push_back(filled_block(arena, kMiB));
  CHECK(system_resident() - before >= 30 * kMiB);
  while (!blocks.empty()) {
    blocks.pop_back();
    CHECK(arena.resident() - arena.used() <= 8 * kMiB);
    CHECK(system_resident() - before <= arena.resident() + 2 * kMiB);
  }
  CHECK_EQUAL(arena.peak(), 30 * kMiB);
}

// Against a model: what fits is given and nothing else, blocks keep their bytes, and the limits hold, in address space too.
TEST(random_use_keeps_all_limits) {
  struct Limits {
    size_t budget, max_idle;
  };
  for (const Limits &limits : {Limits{8 * kMiB, Arena::kUnlimited}, Limits{12 * kMiB, 2 * kMiB}, Limits{Arena::kUnlimited, 3 * kMiB}}) {
    const testing::Context context("budget %zu, max_idle %zu", limits.budget, limits.max_idle);
    const size_t before = system_resident();
    std::mt19937 random(1);
    Arena arena(limits.budget, limits.max_idle);
    struct Owned {
      Block block;
      size_t size;
      uint8_t value;
    };
    std::vector<Owned> blocks;
    size_t used = 0, refused = 0;
    for (int step = 0; step < 5000; step++) {
      if (!blocks.empty() && (random() % 2 || blocks.size() > 100)) {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        const auto &[block, size, value] = blocks.back();
        CHECK(holds_only(block, extents(size), value));
        used -= extents(size);
        blocks.pop_back();
      } else {
        const size_t size = random() % (random() % 8 ? 300'000 : 2'500'000) + 1;
        const auto value = uint8_t(random());
        Block block = filled_block(arena, size, value);
        CHECK_EQUAL(block != nullptr, used + extents(size) <= limits.budget);
        refused += !block;
        if (!block) continue;
        used += extents(size);
        blocks.push_back({std::move(block), size, value});
      }
      CHECK_EQUAL(arena.used(), used);
      CHECK(arena.resident() <= limits.budget);
      CHECK(arena.resident() - used <= limits.max_idle);
      if (step % 250 == 0) CHECK(system_resident() - before <= arena.resident() + 2 * kMiB);
    }
    CHECK_EQUAL(refused > 0, limits.budget != Arena::kUnlimited);
    CHECK_EQUAL(arena.reserved(), 1024 * kMiB);
  }
}

// Blocks are freed by other threads than those that allocated them.
TEST(many_threads) {
  Arena arena(16 * kMiB, 4 * kMiB);
  std::mutex mutex;
  std::vector<Block> shared(16);
  std::atomic<int> damaged{0}, given{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; thread++) {
      threads.emplace_back([&, thread] {
        std::mt19937 random(thread);
        for (int step = 0; step < 1000; step++) {
          const size_t size = random() % (2 * kMiB) + 1;
          Block block = arena.allocate(size);
          if (block) {
            given++;
            block.get()[0] = block.get()[size - 1] = uint8_t(thread);
            std::this_thread::yield();
            damaged += block.get()[0] != thread || block.get()[size - 1] != thread;
          }
          std::lock_guard lock(mutex);
          shared[random() % shared.size()].swap(block);
        }
      });
    }
  }
  CHECK_EQUAL(damaged, 0);
  CHECK(given > 100);
  CHECK(arena.resident() <= arena.budget());
  shared.clear();
  CHECK_EQUAL(arena.used(), 0u);
  CHECK(arena.resident() <= 4 * kMiB);
}
