// The label-map mode of `fast` tiles (docs/format.md, "Body with predictor 7").
#pragma once

#include <algorithm>

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

// The greatest number of labels with which a label map can take less than `size` bytes, if `groups` groups have a
// sample unlike the one above it, and `samples` samples are. 0: none can.
constexpr uint32_t max_labels_below(uint32_t size, uint32_t groups, uint32_t samples, uint32_t sample_size) {
  for (uint32_t bits = 8;; bits--) {
    const uint32_t rest = groups + samples * bits / 8;
    const uint32_t most = std::min(bits ? (1u << bits) + 1 : 2, kMaxLabels);
    if (rest < size && (size - rest) / sample_size > most / 2) return std::min((size - rest) / sample_size, most);
    if (bits == 0) return rest < size ? std::min((size - rest) / sample_size, most) : 0;
  }
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

// Writes the body of a channel, whose rows are `stride` samples apart, to `out`. Returns its size, or 0 if it would
// exceed `capacity` bytes or the channel has more than `max_labels` values.
template <typename Sample>
uint32_t encode_label_map(const Sample *plane, uint32_t stride, TileShape shape, uint32_t max_labels, uint8_t *out,
                          uint32_t capacity);

extern template const char *parse_label_map<uint8_t>(const uint8_t *, const FastChannel &, TileShape, LabelMap *);
extern template const char *parse_label_map<uint16_t>(const uint8_t *, const FastChannel &, TileShape, LabelMap *);
extern template uint32_t encode_label_map(const uint8_t *, uint32_t, TileShape, uint32_t, uint8_t *, uint32_t);
extern template uint32_t encode_label_map(const uint16_t *, uint32_t, TileShape, uint32_t, uint8_t *, uint32_t);

}  // namespace l3
