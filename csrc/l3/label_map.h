// The label-map mode of `fast` tiles (docs/format.md, "Body with predictor 7").
#pragma once

#include "fast_tile.h"
#include "planes.h"

namespace l3 {

constexpr uint32_t kMaxLabels = 256;

// Bits of a rank among the values other than N's.
constexpr uint32_t rank_bits(uint32_t labels) {
  uint32_t bits = 0;
  while (labels > 2 && (1u << bits) < labels - 1) bits++;
  return bits;
}

// Decodes a channel into `plane` (rows L3_TILE apart); every read is checked. Returns null, or what is wrong.
template <typename Sample>
const char *decode_label_map(const uint8_t *stream, const FastChannel &channel, TileShape shape, Sample *plane);

// Appends the channel's body to `out`, which has room for `capacity` bytes. Returns its size, or 0 if it does not fit or the channel has too
// many values.
template <typename Sample>
uint32_t encode_label_map(const Sample *plane, TileShape shape, uint8_t *out, uint32_t capacity);

extern template const char *decode_label_map(const uint8_t *, const FastChannel &, TileShape, uint8_t *);
extern template const char *decode_label_map(const uint8_t *, const FastChannel &, TileShape, uint16_t *);
extern template uint32_t encode_label_map(const uint8_t *, TileShape, uint8_t *, uint32_t);
extern template uint32_t encode_label_map(const uint16_t *, TileShape, uint8_t *, uint32_t);

}  // namespace l3
