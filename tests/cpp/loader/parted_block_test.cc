// Blocks in parts.
#include "input/parted_block.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "testing.h"

using namespace dali_l3::loader;

TEST(parts_lie_one_behind_the_other) {
  Arena arena(0);
  constexpr std::array<size_t, 4> sizes{3, 0, 5000, 1};
  Block whole = arena.allocate(5004);
  const uint8_t *expected = whole.get();
  const std::vector<Block> parts = cut(std::move(whole), sizes);
  CHECK_EQUAL(parts.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); i++) {
    CHECK(parts[i].get() == expected);
    CHECK_EQUAL(parts[i].get_deleter().size, sizes[i]);
    expected += sizes[i];
  }
}

TEST(the_block_is_free_when_the_last_part_is) {
  Arena arena(0);
  std::vector<Block> parts = cut(arena.allocate(30), std::array<size_t, 3>{10, 10, 10});
  for (const size_t next : {1, 1, 0}) {
    CHECK_EQUAL(arena.used(), kPage);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(next));
  }
  CHECK_EQUAL(arena.used(), 0u);
}
