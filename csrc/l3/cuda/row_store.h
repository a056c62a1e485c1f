// Storing a tile's rows from shared memory to the output, four at a time.
#pragma once

#include "copy_row.h"
#include "tile_part.h"

namespace l3 {

// Rows of tiles whose pixels take `pixel_size` bytes.
template <WordLanes Team, uint32_t pixel_size>
class RowStore {
  using Number = typename Team::Number;
  static constexpr uint32_t kRowSize = L3_TILE * pixel_size;

 public:
  static constexpr uint32_t kRows = 4;

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
    // Four lanes a row, which take 64 bytes of it at a time.
    const Number row = Team::index() >> 2, chunk = Team::index() & 3, chunks = in_chunks ? size / kChunk : 0;
    chunks_ = Team::select(chunk < chunks, chunks - chunk, 0);
    from_ = Team::select(chunk < chunks, row * kRowSize + chunk * kChunk + begin, 0);
    to_ = row * uint32_t(row_stride_) + chunk * kChunk + begin;
  }

  // Stores the rows from tile row `y` on; the next call is for those after them.
  L3_DEVICE void store(const uint8_t *rows, uint32_t y) {
    const bool inside = y - part_.top < part_.height();
    L3_UNROLL
    for (uint32_t i = 0; i < pixel_size; i++) {
      const uint32_t first = i * 4;
      Number words[4];
      Team::template load_words<4>(rows + first * kChunk, from_, words);
      Team::template store_words<4>(out_ + first * kChunk, to_, words, (Number(first) < chunks_) & inside);
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
  const TileEdges part_;
  const uint64_t row_stride_;
  uint8_t *out_;  // the first pixel of the next row, in the region or not
  bool in_rows_, any_in_rows_;
  // The lane's first chunk, in shared memory and in the output, and how many are left from it to the row's end.
  Number from_, to_, chunks_;
};

}  // namespace l3
