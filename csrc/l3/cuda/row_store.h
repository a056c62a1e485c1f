// Storing a tile's rows from shared memory to the output, four at a time.
#pragma once

#include "converted_rows.h"
#include "copy_row.h"
#include "tile_part.h"

namespace l3 {

constexpr uint32_t kStoredRows = 4;  // at a time

// Rows in shared memory, as pixels; a byte behind them may be read.
template <uint32_t pixel_size>
struct SharedRows {
  static constexpr uint32_t kRowSize = L3_TILE * pixel_size;  // bytes
  // What is behind the last row keeps the words that a warp's two teams store in different banks.
  alignas(16) uint8_t bytes[kStoredRows * kRowSize + 64];

  L3_DEVICE uint8_t *row(uint32_t y) { return bytes + y * kRowSize; }
};

// Rows of tiles whose pixels take `pixel_size` bytes.
template <WordLanes Team, uint32_t pixel_size>
class RowStore {
  using Number = typename Team::Number;
  static constexpr uint32_t kRows = kStoredRows, kRowSize = L3_TILE * pixel_size;

 public:
  // Stores what lies in the region of the tile in `rect`, and nothing for a team that is not `active`.
  L3_DEVICE RowStore(const BatchImage &image, const l3_rect &rect, bool active)
      : part_(part_in_region(rect, image.region)), row_stride_(image.row_stride) {
    out_ = image.out + int64_t(int32_t(rect.y - image.region.y)) * int64_t(row_stride_) +
           int64_t(int32_t(rect.x - image.region.x)) * pixel_size;
    const uint32_t begin = part_.left * pixel_size, size = part_.width() * pixel_size;
    const bool aligned = ((reinterpret_cast<uintptr_t>(out_) | row_stride_ | begin | size) % kChunk) == 0;
    const bool in_chunks = active && aligned && (part_.top | part_.bottom) % kRows == 0 && row_stride_ < 1u << 30;
    in_rows_ = active && !in_chunks;
    any_in_rows_ = Team::any(in_rows_);
    // The four rows' chunks are counted row by row, so that lanes side by side touch as few cache lines as can be.
    const uint32_t chunks = in_chunks ? size / kChunk : 0;  // in a row
    L3_UNROLL
    for (uint32_t i = 0; i < pixel_size; i++) {
      const Number chunk = Team::index() + i * Team::kCount, exists = chunk < kRows * chunks;
      const Number row = Number(3) - (chunk < chunks) - (chunk < 2 * chunks) - (chunk < 3 * chunks);
      const Number in_row = (chunk - row * chunks) * kChunk + begin;
      from_[i] = Team::keep(Team::select(exists, row * kRowSize + in_row, 0));
      to_[i] = Team::keep(Team::select(exists, row * uint32_t(row_stride_) + in_row, kNowhere));
    }
  }

  // Stores the rows from tile row `y` on; the next call is for those after them.
  L3_DEVICE void store(const uint8_t *rows, uint32_t y) {
    const bool inside = y - part_.top < part_.height();
    L3_UNROLL
    for (uint32_t i = 0; i < pixel_size; i++) {
      Number words[4];
      Team::template load_words<4>(rows, from_[i], words);
      Team::template store_words<4>(out_, to_[i], words, (to_[i] < kNowhere) & inside);
    }
    if (any_in_rows_) {
      for (uint32_t row = 0; row < kRows; row++) {
        const bool wanted = in_rows_ && y + row >= part_.top && y + row < part_.bottom;
        copy_row<Team>(rows, row * kRowSize + part_.left * pixel_size,
                       out_ + int64_t(row) * int64_t(row_stride_) + part_.left * pixel_size,
                       wanted ? part_.width() * pixel_size : 0);
      }
    }
    out_ += kRows * row_stride_;
  }

 private:
  static constexpr uint32_t kNowhere = ~0u;

  const TileEdges part_;
  const uint64_t row_stride_;
  uint8_t *out_;  // the first pixel of the next row, in the region or not
  bool in_rows_, any_in_rows_;
  Number from_[pixel_size], to_[pixel_size];  // a lane's chunks, in shared memory and in the output
};

// Writes the same rows to the output of an image that is converted.
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
