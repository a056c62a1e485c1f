// Rows of every size, from and to every alignment, as the GPU copies them.
#include "cuda/copy_row.h"

#include <algorithm>

#include "checked_lanes.h"
#include "images.h"

using namespace l3;

TEST(rows_of_any_size_and_alignment) {
  constexpr uint8_t kUntouched = 0xA5;
  constexpr size_t kMargin = 32, kOverread = 4;  // bytes
  Random random(1);
  std::vector<uint32_t> sizes{191, 192, 193, 255, 256, 257, 271, 272, 511, 512};  // a team copies 256 bytes at a time
  for (uint32_t size = 0; size < 50; size++) sizes.push_back(size);
  for (const uint32_t size : sizes)
    for (uint32_t begin = 0; begin < 20; begin++) {
      // Words of the input must be aligned; beyond it the sanitizer watches.
      std::vector<uint32_t> words((begin + size + kOverread + 3) / 4);
      uint8_t *const in = reinterpret_cast<uint8_t *>(words.data());
      for (uint32_t i = 0; i < begin + size; i++) in[i] = uint8_t(random());
      for (uint32_t misalignment = 0; misalignment < kChunk; misalignment++) {
        const testing::Context context("%u bytes from %u to an address %u past a multiple of 16", size, begin,
                                       misalignment);
        alignas(kChunk) uint8_t memory[2 * kMargin + 512 + kChunk];
        std::fill(std::begin(memory), std::end(memory), kUntouched);
        uint8_t *const out = memory + kMargin + misalignment;
        copy_row<CheckedLanes>(in, begin, out, size);
        CHECK(std::equal(out, out + size, in + begin));
        std::fill_n(out, size, kUntouched);
        CHECK(std::all_of(std::begin(memory), std::end(memory), [](uint8_t byte) { return byte == kUntouched; }));
      }
    }
}
