// The label-map mode of `fast` tiles (docs/format.md, "Body with predictor 7").
#pragma once

#include "format/fast_tile.h"
#include "format/planes.h"

namespace l3 {

constexpr uint32_t kMaxLabels = 256;
constexpr uint32_t kMaxRanks = kPlaneSize + 64;  // of a tile, and what decoders read beyond

// Bits of a rank among the values other than N's.
constexpr uint32_t rank_bits(uint32_t labels) {
  uint32_t bits = 0;
  while (labels > 2 && (1u << bits) < labels - 1) bits++;
  return bits;
}

// The parts of a channel's body; positions are from the start of the tile's bytes.
struct LabelMap {
  uint32_t labels;       // how many
  uint32_t first;        // place of the channel's first sample in the table of values
  uint64_t units;        // bit i: unit i is present
  uint32_t values;       // positions of: the table
  uint32_t group_masks;  // the first group mask
  uint32_t pixel_masks;  // the first pixel mask
  uint32_t ranks;        // the string of ranks
  uint32_t pixels;       // how many are marked, each with a rank
};

// Reads and validates a channel's body: what it accepts decodes. Every read is checked. Returns null, or what is wrong.
template <typename Sample>
const char *parse_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, LabelMap *map);

extern template const char *parse_label_map<uint8_t>(const uint8_t *, const FastChannel &, TileShape, LabelMap *);
extern template const char *parse_label_map<uint16_t>(const uint8_t *, const FastChannel &, TileShape, LabelMap *);

}  // namespace l3
