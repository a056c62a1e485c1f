// Writing finished rows of a tile, which stand in shared memory as pixels, to the output.
#pragma once

#include "converted_rows.h"
#include "copy_row.h"
#include "tile_part.h"

namespace l3 {

constexpr uint32_t kStoredRows = 4;  // at a time

// The shared memory of rows; a byte behind them may be read.
template <uint32_t pixel_size>
struct SharedRows {
  static constexpr uint32_t kRowSize = L3_TILE * pixel_size;  // bytes
  alignas(16) uint8_t bytes[kStoredRows * kRowSize + 16];

  L3_DEVICE uint8_t *row(uint32_t y) { return bytes + y * kRowSize; }
};

// Writes what lies in the region of the rows from tile row `y` on, if the team is active: in 16-byte stores where rows
// are aligned to them, else row by row.
template <WordLanes Team, uint32_t pixel_size>
L3_DEVICE void store_rows(const BatchImage &image, const l3_rect &rect, uint32_t y, bool active,
                          const SharedRows<pixel_size> &rows) {
  using Number = typename Team::Number;
  constexpr uint32_t kRowSize = SharedRows<pixel_size>::kRowSize, kRowChunks = kRowSize / kChunk;
  const Number lane = Team::index();
  const TileEdges part = part_in_region(rect, image.region);
  const uint32_t first_byte = part.left * pixel_size, end_byte = part.right * pixel_size;
  const uint32_t first_row = rect.y + y, end_row = rect.y + part.bottom;  // in the image
  uint8_t *const out = image.out + int64_t(int32_t(first_row - image.region.y)) * int64_t(image.row_stride) +
                       int64_t(int32_t(rect.x - image.region.x)) * pixel_size;
  const bool aligned =
      ((reinterpret_cast<uintptr_t>(out) | image.row_stride | first_byte | end_byte) & (kChunk - 1)) == 0;
  const bool in_chunks = active && aligned && first_row >= image.region.y && first_row + kStoredRows <= end_row;
  if (Team::any(in_chunks)) {
    L3_UNROLL
    for (uint32_t i = 0; i < kStoredRows * kRowChunks / Team::kCount; i++) {
      const Number chunk = lane + i * Team::kCount, row = Team::divide_small(chunk, kRowChunks);
      const Number byte = (chunk - row * kRowChunks) * kChunk;
      Number words[4];
      Team::template load_words<4>(rows.bytes, chunk * kChunk, words);
      Team::template store_words<4>(out, row * uint32_t(image.row_stride) + byte, words,
                                    (byte < end_byte) & ((byte < first_byte) == 0) & uint32_t(in_chunks));
    }
  }
  if (Team::any(active && !in_chunks)) {
    for (uint32_t row = 0; row < kStoredRows; row++) {
      const bool inside = active && !in_chunks && first_row + row >= image.region.y && first_row + row < end_row;
      uint8_t *const out_row = out + int64_t(row) * int64_t(image.row_stride) + first_byte;
      copy_row<Team>(rows.bytes, row * kRowSize + first_byte, out_row, inside ? end_byte - first_byte : 0);
    }
  }
}

// The same converted.
template <WordLanes Team, typename Sample, uint32_t pixel_size>
L3_DEVICE void store_converted_rows(const BatchImage &image, const l3_rect &rect, uint32_t y, bool active,
                                    const SharedRows<pixel_size> &rows) {
  const TileEdges part = part_in_region(rect, image.region);
  const uint32_t top = std::max(part.top, y), bottom = std::min(part.bottom, y + kStoredRows);
  if (!active || bottom <= top) return;
  uint8_t *const out = image.out + (rect.y + top - image.region.y) * image.row_stride +
                       uint64_t(rect.x + part.left - image.region.x) * image.output_pixel_size;
  const InterleavedPixels<Sample> pixels{reinterpret_cast<const Sample *>(rows.bytes), pixel_size / sizeof(Sample),
                                         L3_TILE};
  Team::for_each_lane([&](uint32_t lane) {
    write_pixels<Sample>(image, {part.left, top - y, part.width(), bottom - top, out}, pixels,
                         {0, 1, lane, Team::kCount});
  });
}

}  // namespace l3
