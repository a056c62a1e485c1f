// The arena: what stays resident, also as the system counts it, and that blocks never overlap.
#include "input/arena.h"

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

Block filled_block(Arena &arena, size_t size, uint8_t value = 1) {
  Block block = arena.allocate(size);
  std::memset(block.get(), value, block_size(size));
  return block;
}

size_t resident(const Arena &arena) { return arena.used() + arena.idle(); }

bool holds_only(const Block &block, size_t size, uint8_t value) {
  return *block == value && std::memcmp(block.get(), block.get() + 1, size - 1) == 0;
}

// What the system counts as resident of the arenas' memory: that of the areas that forked processes do not inherit.
size_t system_resident(const std::string &kind = "Rss:") {
  std::ifstream areas("/proc/self/smaps");
  size_t sum = 0, area = 0;
  for (std::string line; std::getline(areas, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == kind) words >> area;
    if (key == "VmFlags:" && (line + " ").find(" dc ") != std::string::npos) sum += area * 1024;
  }
  return sum;
}

}  // namespace

TEST(blocks_are_whole_pages) {
  Arena arena(10 * kMiB);
  for (const auto &[size, taken] :
       {std::pair<size_t, size_t>{0, 4096}, {1, 4096}, {4096, 4096}, {4097, 8192}, {3 * kMiB, 3 * kMiB}}) {
    const testing::Context context("%zu bytes", size);
    const Block block = filled_block(arena, size);
    CHECK_EQUAL(reinterpret_cast<uintptr_t>(block.get()) % kPage, 0u);
    CHECK_EQUAL(block_size(size), taken);
    CHECK_EQUAL(arena.used(), taken);
  }
  CHECK_EQUAL(arena.used(), 0u);
}

TEST(more_than_there_is_address_space) {
  Arena arena(0);
  for (const size_t size : {size_t{1} << 61, size_t{1} << 62, SIZE_MAX}) {
    const testing::Context context("%zu bytes", size);
    bool refused = false;
    try {
      arena.allocate(size);
    } catch (const std::system_error &error) {
      refused = error.code() == std::errc::not_enough_memory;
    }
    CHECK(refused);
    CHECK_EQUAL(arena.used(), 0u);
    CHECK_EQUAL(arena.reserved(), 0u);
  }
  CHECK(filled_block(arena, kMiB));
}

TEST(larger_than_a_gibibyte) {
  Arena arena(0);
  const size_t size = (size_t{2} << 30) + 1;
  const Block block = arena.allocate(size);
  block.get()[0] = block.get()[size - 1] = 1;
  CHECK_EQUAL(arena.used(), whole_pages(size));
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
  CHECK_EQUAL(arena.idle(), 3 * kMiB);
  const Block smaller = filled_block(arena, kMiB), rest = filled_block(arena, 2 * kMiB);
  CHECK_EQUAL(static_cast<const void *>(smaller.get()), static_cast<const void *>(first));
  CHECK_EQUAL(resident(arena), 3 * kMiB);
}

TEST(neighbours_are_joined_in_any_order) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    Arena arena(16 * kMiB);
    std::vector<Block> blocks;
    for (size_t i = 0; i < order.size(); i++) blocks.push_back(filled_block(arena, kMiB));
    for (int i : order) blocks[size_t(i)].reset();
    CHECK(filled_block(arena, 4 * kMiB));
    CHECK_EQUAL(resident(arena), 4 * kMiB);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(idle_memory_is_limited) {
  const size_t before = system_resident();
  Arena arena(8 * kMiB);
  std::vector<Block> blocks;
  for (size_t i = 0; i < 30; i++) blocks.push_back(filled_block(arena, kMiB));
  CHECK(system_resident() - before >= 30 * kMiB);
  while (!blocks.empty()) {
    blocks.pop_back();
    CHECK(arena.idle() <= 8 * kMiB);
    CHECK(system_resident() - before <= resident(arena) + 2 * kMiB);
  }
}

TEST(of_idle_memory_the_smallest_pieces_are_given_back_first) {
  Arena arena(3 * kMiB);
  Block large = filled_block(arena, 2 * kMiB);
  std::vector<Block> blocks;
  for (size_t i = 0; i < 32; i++) blocks.push_back(filled_block(arena, kMiB / 8));
  const void *place = large.get();
  large.reset();
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  CHECK(arena.idle() <= 3 * kMiB);
  CHECK(arena.idle() > 2 * kMiB);
  large = arena.allocate(2 * kMiB);
  CHECK_EQUAL(static_cast<const void *>(large.get()), place);
  CHECK(arena.idle() <= kMiB);  // the block's memory was idle, so none was fetched for it
}

// Files of different sizes come and go, with less memory idle than the gaps between them take up.
TEST(little_of_what_is_given_back_has_to_be_fetched_again) {
  std::mt19937 random(1);
  const auto any_size = [&] { return kMiB / 2 + random() % kMiB; };
  Arena arena(8 * kMiB);
  std::vector<Block> blocks;
  for (int i = 0; i < 64; i++) blocks.push_back(arena.allocate(any_size()));
  size_t fetched = 0, allocated = 0;
  for (int i = 0; i < 3000; i++) {
    Block &block = blocks[random() % blocks.size()];
    block.reset();
    const size_t size = any_size(), before = resident(arena);
    block = arena.allocate(size);
    fetched += resident(arena) - before;
    allocated += block_size(size);
  }
  CHECK(fetched < allocated / 4);
}

// Of huge pages of which a part is in use the system would keep all until it is short of memory.
TEST(huge_pages_are_broken_up_when_a_part_is_given_back) {
  const auto pages_broken_up = [] {  // of all processes, since the system was started
    std::ifstream counts("/proc/vmstat");
    size_t count = 0;
    for (std::string key, value; counts >> key >> value;)
      if (key == "thp_split_page") count = std::stoul(value);
    return count;
  };
  Arena arena(0);
  std::vector<Block> blocks;
  for (size_t i = 0; i < 256; i++) blocks.push_back(filled_block(arena, kMiB / 4));
  const size_t huge_pages = system_resident("AnonHugePages:") / (2 * kMiB), before = pages_broken_up();
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  CHECK_EQUAL(arena.idle(), 0u);
  CHECK(pages_broken_up() - before >= huge_pages);
  for (size_t i = 1; i < blocks.size(); i += 2) CHECK(holds_only(blocks[i], kMiB / 4, 1));
}

// Against a model: blocks keep their bytes, and the limits hold, in address space too.
TEST(random_use_keeps_all_limits) {
  for (const size_t max_idle : {size_t{0}, 3 * kMiB, 64 * kMiB}) {
    const testing::Context context("max_idle %zu", max_idle);
    const size_t before = system_resident();
    std::mt19937 random(1);
    Arena arena(max_idle);
    struct Owned {
      Block block;
      size_t size;
      uint8_t value;
    };
    std::vector<Owned> blocks;
    size_t used = 0;
    for (int step = 0; step < 5000; step++) {
      if (!blocks.empty() && (random() % 2 || blocks.size() > 100)) {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        const auto &[block, size, value] = blocks.back();
        CHECK(holds_only(block, block_size(size), value));
        used -= block_size(size);
        blocks.pop_back();
      } else {
        const size_t size = random() % (random() % 8 ? 300'000 : 2'500'000) + 1;
        const auto value = uint8_t(random());
        blocks.push_back({filled_block(arena, size, value), size, value});
        used += block_size(size);
      }
      CHECK_EQUAL(arena.used(), used);
      CHECK(arena.idle() <= max_idle);
      if (step % 250 == 0) CHECK(system_resident() - before <= resident(arena) + 2 * kMiB);
    }
    CHECK_EQUAL(arena.reserved(), 1024 * kMiB);
  }
}

// Blocks are freed by other threads than those that allocated them.
TEST(many_threads) {
  Arena arena(4 * kMiB);
  std::mutex mutex;
  std::vector<Block> shared(16);
  std::atomic<int> damaged{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; thread++) {
      threads.emplace_back([&, thread] {
        std::mt19937 random(thread);
        for (int step = 0; step < 1000; step++) {
          const size_t size = random() % (2 * kMiB) + 1;
          Block block = arena.allocate(size);
          block.get()[0] = block.get()[size - 1] = uint8_t(thread);
          std::this_thread::yield();
          damaged += block.get()[0] != thread || block.get()[size - 1] != thread;
          std::lock_guard lock(mutex);
          shared[random() % shared.size()].swap(block);
        }
      });
    }
  }
  CHECK_EQUAL(damaged, 0);
  shared.clear();
  CHECK_EQUAL(arena.used(), 0u);
  CHECK(arena.idle() <= 4 * kMiB);
}
