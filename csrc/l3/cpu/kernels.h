// The work of a CPU back end: what is worth writing once per instruction set. Everything else about decoding stands
// once, in decode.cc.
#pragma once

#include "format/fast_tile.h"
#include "format/planes.h"

namespace l3 {

constexpr uint32_t kCacheLine = 64;

// The beginnings of cache lines, one for each row of a tile.
struct PartialLines {
  alignas(kCacheLine) uint8_t lines[L3_TILE][kCacheLine];
};

struct Kernels {
  const char *name;

  // Decode one channel of a `fast` tile (any predictor but the label map) into a plane. Samples outside `shape` are
  // left undefined. Reads at most kMaxOverread bytes past the tile's end, whatever the bytes are; returns the
  // position after the last octet.
  uint32_t (*decode_channel_8)(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint8_t *plane);
  uint32_t (*decode_channel_16)(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint16_t *plane);

  // Transform the planes and write them as interleaved pixels. `bypass_cache`: with non-temporal stores; `out` and
  // `row_stride` are multiples of a cache line then.
  void (*store_tile_8)(const Planes<uint8_t> &planes, uint32_t channels, Transform transform, TileShape shape,
                       uint8_t *out, size_t row_stride, bool bypass_cache);
  void (*store_tile_16)(const Planes<uint16_t> &planes, uint32_t channels, Transform transform, TileShape shape,
                        uint8_t *out, size_t row_stride, bool bypass_cache);

  // Encode a `fast` tile of interleaved pixels, which need not be aligned; returns its size. All back ends
  // write the same bytes.
  uint32_t (*encode_tile_8)(const uint8_t *pixels, size_t row_stride, uint32_t channels, uint32_t effort,
                            TileShape shape, uint8_t *out);
  uint32_t (*encode_tile_16)(const uint8_t *pixels, size_t row_stride, uint32_t channels, uint32_t effort,
                             TileShape shape, uint8_t *out);

  // Copy rows of bytes.
  void (*copy_rows)(const uint8_t *in, size_t in_stride, uint8_t *out, size_t out_stride, uint32_t row_size,
                    uint32_t rows);

  // Copy rows of bytes past the cache, whole lines at a time; null where the back end cannot. Pieces of rows may follow
  // each other from left to right: a line that `to_right` leaves unfinished waits in `partial_lines`, until the next
  // piece, which comes `from_left`, completes it. `to_right` needs rows of a line at least. Up to a line before and
  // after each row of `in` may be read, unless `out` and `out_stride` are multiples of a line.
  void (*copy_rows_uncached)(const uint8_t *in, size_t in_stride, uint8_t *out, size_t out_stride, uint32_t row_size,
                             uint32_t rows, PartialLines &partial_lines, bool from_left, bool to_right);
};

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx512Kernels;
#endif

// The back end by name, or null if it is unknown or this CPU cannot run it; `known` tells which.
const Kernels *find_kernels(const char *name, bool *known);

// The back end in use, or null with the reason when DALI_L3_BACKEND names one that cannot be used.
const Kernels *active_kernels(l3_error *error);

}  // namespace l3
