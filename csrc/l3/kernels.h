// The work of a CPU back end: what is worth writing once per instruction set. Everything else about decoding stands once, in decode.cc.
#pragma once

#include "fast_tile.h"
#include "planes.h"

namespace l3 {

struct Kernels {
  const char *name;

  // Decode one channel of a `fast` tile (any predictor but the label map) into a plane. Samples outside `shape` are left undefined.
  // Reads at most kMaxOverread bytes past the stream's end, whatever the bytes are; returns the position after the last octet.
  uint32_t (*decode_channel_8)(const uint8_t *stream, const FastChannel &channel, TileShape shape, uint8_t *plane);
  uint32_t (*decode_channel_16)(const uint8_t *stream, const FastChannel &channel, TileShape shape, uint16_t *plane);

  // Undo the colour transform and write the planes as interleaved pixels. `bypass_cache`: with non-temporal stores
  // where the alignment of `out` and `row_stride` allows it.
  void (*store_tile_8)(const Planes<uint8_t> &planes, uint32_t channels, uint32_t transform, TileShape shape, uint8_t *out,
                       size_t row_stride, bool bypass_cache);
  void (*store_tile_16)(const Planes<uint16_t> &planes, uint32_t channels, uint32_t transform, TileShape shape, uint8_t *out,
                        size_t row_stride, bool bypass_cache);

  // Encode a `fast` tile of interleaved pixels, which need not be aligned; returns its stream's size. All back ends write the same bytes.
  uint32_t (*encode_tile_8)(const uint8_t *pixels, size_t row_stride, uint32_t channels, uint32_t effort, TileShape shape, uint8_t *out);
  uint32_t (*encode_tile_16)(const uint8_t *pixels, size_t row_stride, uint32_t channels, uint32_t effort, TileShape shape, uint8_t *out);

  // Copy rows of bytes.
  void (*copy_rows)(const uint8_t *in, size_t in_stride, uint8_t *out, size_t out_stride, uint32_t row_size, uint32_t rows,
                    bool bypass_cache);
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
