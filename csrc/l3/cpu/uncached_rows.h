// Copying rows past the cache, for back ends with non-temporal stores.
#pragma once

#include <algorithm>

#include "cpu/kernels.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

// As Kernels::copy_rows_uncached. `Line` has what an instruction set can do with cache lines:
//   store(line, bytes)                     a whole line, past the cache
//   store_joined(line, first, rest, size)  the same of `size` bytes from `first`, and those that follow from `rest`
//   copy(line, bytes, begin, end)          the bytes from `begin` to `end` of a line, and of `bytes`, into the cache
//   keep(line, bytes, end)                 the same from 0; what follows in the line may be overwritten
// `line` and `first` start at cache lines.
template <typename Line>
void copy_rows_uncached(const Rows &rows, Destination destination, UnfinishedLine unfinished,
                        PartialLines &partial_lines) {
  const bool from_left = partial_lines.wait, to_right = unfinished == UnfinishedLine::kWaits;
  const auto [first, in_stride, row_size, count] = rows;
  const uint8_t *in = first;
  uint8_t *out = destination.data;
  for (uint32_t y = 0; y < count; y++, in += in_stride, out += destination.stride) {
    // Positions count from the start of the line that `out` lies in.
    const uint32_t start = uintptr_t(out) % kCacheLine, end = start + row_size;
    uint8_t *const line = out - start, *const waiting = partial_lines.lines[y];
    const uint8_t *const source = in - start;
    uint32_t at = 0;
    if (start) {
      at = std::min(end, kCacheLine);
      if (from_left && at == kCacheLine) {
        Line::store_joined(line, waiting, source, start);
      } else {
        if (from_left) Line::copy(line, waiting, 0, start);
        Line::copy(line, source, start, at);
      }
    }
    for (; at + kCacheLine <= end; at += kCacheLine) Line::store(line + at, source + at);
    if (at == end) continue;
    if (to_right)
      Line::keep(waiting, source + at, end - at);
    else
      Line::copy(line + at, source + at, 0, end - at);
  }
  partial_lines.wait = to_right;
}

}  // namespace
}  // namespace l3::generic
