// The work of a CPU back end: what is worth writing once per instruction set. Everything else about decoding stands
// once, in decode.cc.
#pragma once

#include <type_traits>

#include "format/fast_tile.h"
#include "format/planes.h"

namespace l3 {

constexpr uint32_t kCacheLine = 64;

// Rows of bytes.
struct Rows {
  const uint8_t *data;
  size_t stride;  // bytes from one row to the next
  uint32_t size;  // bytes of a row
  uint32_t count;
};

// Where rows are written to; passed by value, so that kernels need not read it again after each of their stores.
struct Destination {
  uint8_t *data;
  size_t stride;  // bytes from one row to the next
};

// Into the cache, or past it, with non-temporal stores.
enum class Stores { kCached, kUncached };

// A tile's planes, and how they become pixels.
template <typename Sample>
struct DecodedTile {
  const Planes<Sample> &planes;
  uint32_t channels;
  Transform transform;
  TileShape shape;
};

// What becomes of a cache line that a piece of a row leaves unfinished: it is written, or waits for the next piece.
enum class UnfinishedLine { kWritten, kWaits };

// The beginnings of cache lines, one for each row of a tile.
struct PartialLines {
  alignas(kCacheLine) uint8_t lines[L3_TILE][kCacheLine];
  bool wait = false;  // for the next piece of each row
};

template <typename Sample>
struct SampleKernels {
  // Decodes one channel of a `fast` tile (any predictor but the label map) into a plane. Samples outside `shape` are
  // left undefined. Reads at most kMaxOverread bytes past the tile's end, whatever the bytes are; returns the
  // position after the last octet.
  uint32_t (*decode_channel)(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane);

  // Decodes a label map in its place. Reads as far; returns null, or what is wrong.
  const char *(*decode_label_map)(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane);

  // Transforms the planes and writes them as interleaved pixels; uncached only to rows that start at cache lines.
  void (*store_tile)(const DecodedTile<Sample> &tile, Destination out, Stores stores);

  // Encodes a `fast` tile; returns its size. All back ends write the same bytes.
  uint32_t (*encode_tile)(const TilePixels &pixels, uint32_t effort, uint8_t *out);
};

struct Kernels {
  const char *name;

  // Whether this CPU runs the others.
  bool (*supported)();

  SampleKernels<uint8_t> of_8_bits;
  SampleKernels<uint16_t> of_16_bits;

  // Copies rows.
  void (*copy_rows)(const Rows &rows, Destination out);

  // Copies rows past the cache, whole lines at a time; null where the back end cannot. Pieces of rows may follow each
  // other from left to right, if all but the last are of a line at least. Up to a line before and after each of the
  // rows may be read, unless the destination's start at cache lines.
  void (*copy_rows_uncached)(const Rows &rows, Destination out, UnfinishedLine unfinished, PartialLines &partial_lines);

  template <typename Sample>
  const SampleKernels<Sample> &of_samples() const {
    if constexpr (std::is_same_v<Sample, uint8_t>)
      return of_8_bits;
    else
      return of_16_bits;
  }
};

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx512Kernels;

// Whether this CPU runs these back ends. Not compiled with them: a CPU that cannot run them runs this.
bool cpu_runs_avx2_kernels();
bool cpu_runs_avx512_kernels();
#endif

// The back end by name, or null if it is unknown or this CPU cannot run it; `known` tells which.
const Kernels *find_kernels(const char *name, bool *known);

// The back end in use, or null with the reason when DALI_L3_BACKEND names one that cannot be used.
const Kernels *active_kernels(l3_error *error);

}  // namespace l3
