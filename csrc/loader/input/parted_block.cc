#include "input/parted_block.h"

#include <memory>
#include <utility>

namespace dali_l3::loader {
namespace {

// What parts keep alive.
struct Whole final : Memory {
  explicit Whole(Block block) : block(std::move(block)) {}
  void take_back(uint8_t *, size_t) override {}

  const Block block;
};

}  // namespace

std::vector<Block> cut(Block whole, std::span<const size_t> sizes) {
  uint8_t *part = whole.get();
  const auto memory = std::make_shared<Whole>(std::move(whole));
  std::vector<Block> parts;
  parts.reserve(sizes.size());
  for (const size_t size : sizes) {
    parts.emplace_back(part, FreeBlock{memory, size});
    part += size;
  }
  return parts;
}

}  // namespace dali_l3::loader
