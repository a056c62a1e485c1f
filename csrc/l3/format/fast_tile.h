// The structure of a `fast` tile: what stands where (docs/format.md, "Profile 2"). Shared by every decoder.
#pragma once

#include "format/bytes.h"
#include "format/geometry.h"
#include "format/palette.h"

namespace l3 {

enum ColorTransform : uint32_t { kTransformNone = 0, kSubtractGreen = 1, kSubtractGreenAndMean = 2, kTransforms = 3 };

// The scale of 16-bit samples: up to kMaxShift how far they are shifted to the left, or kRepeatByte.
constexpr uint32_t kMaxShift = 14, kRepeatByte = 15;
constexpr uint32_t scale_factor(uint32_t scale) { return scale == kRepeatByte ? 0x0101 : 1u << scale; }

// How a tile's planes become samples: the colour transform is undone, then every sample is multiplied, modulo its
// range.
struct Transform {
  uint32_t color;   // a ColorTransform
  uint32_t factor;  // 1 for 8-bit samples
};

enum Predictor : uint32_t {
  kAbove = 0,        // N
  kSmoothAbove = 1,  // q = avg(avg(NW, NE), N)
  kLeft = 2,         // L
  kPlane = 3,        // L + N - NW
  kSmoothPlane = 4,  // L + q(x) - q(x - 1)
  kPredictors = 5,
  kLabelMap = 7,
};

// Whether rows after the first are running sums of the residuals.
constexpr bool sums_along_row(uint32_t predictor) { return predictor >= kLeft; }

constexpr uint32_t kGroup = 8;       // values in a group: 4 pixels by 2 rows
constexpr uint32_t kUnitGroups = 8;  // groups in a unit, side by side
constexpr uint32_t kMaxUnits = 64;   // in a tile

// A tile's first byte.
constexpr uint32_t color_of(uint32_t first_byte) { return first_byte & 15; }
constexpr uint32_t scale_of(uint32_t first_byte) { return first_byte >> 4; }
constexpr uint32_t first_byte_of(uint32_t color, uint32_t scale) { return color | scale << 4; }

// A channel's head: how its body is coded, the sample at (0, 0) and the body's bytes.
struct ChannelHead {
  uint32_t mode;
  uint32_t first;
  uint32_t body_size;

  constexpr uint32_t predictor() const { return mode & 7; }
  constexpr uint32_t index_bits() const { return mode >> 3 & 7; }
  constexpr bool has_bitmap() const { return mode >> 6 & 1; }
  constexpr bool has_unknown_bit() const { return mode >> 7; }
};
constexpr uint32_t mode_of(uint32_t predictor, uint32_t index_bits, bool has_bitmap) {
  return predictor | index_bits << 3 | uint32_t(has_bitmap) << 6;
}

// Bytes of a head, and of all heads with the byte before them.
constexpr uint32_t channel_head_size(uint32_t bits) { return 3 + bits / 8; }
constexpr uint32_t fast_heads_size(uint32_t channels, uint32_t bits) { return 1 + channels * channel_head_size(bits); }

// The head of channel `c`, in coding order, of a tile.
L3_HOST_DEVICE ChannelHead read_channel_head(const uint8_t *tile, uint32_t c, uint32_t bits) {
  const uint8_t *head = tile + fast_heads_size(c, bits);
  const uint32_t first = bits == 8 ? head[1] : load<uint16_t>(head + 1);
  return {head[0], first, load<uint16_t>(head + channel_head_size(bits) - 2)};
}

inline void write_channel_head(const ChannelHead &head, uint32_t c, uint32_t bits, uint8_t *tile) {
  uint8_t *out = tile + fast_heads_size(c, bits);
  out[0] = uint8_t(head.mode);
  std::memcpy(out + 1, &head.first, bits / 8);
  store(out + channel_head_size(bits) - 2, uint16_t(head.body_size));
}

// How far past its end a forged tile can make a decoder read, the width of vector loads included: a full body
// of octets and index words, none of which its byte count covers.
constexpr uint32_t kMaxOverread = L3_TILE * L3_TILE * 2 + kMaxUnits * 5 + 1024;

// One channel's body; positions are from the start of the tile's bytes.
struct FastChannel {
  uint32_t predictor;
  uint32_t index_bits;
  uint32_t first;    // the sample at (0, 0)
  uint64_t units;    // bit i: unit i is present
  uint32_t palette;  // position of the palette (of the whole body for label maps)
  uint32_t indices;  // position of the first index word
  uint32_t payload;  // position of the first octet
  uint32_t end;      // position after the body
};

struct FastTile {
  Transform transform;
  FastChannel channels[L3_MAX_CHANNELS];  // in coding order
};

constexpr uint64_t low_bits(uint32_t count) { return count >= 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1; }

// Whether all samples of a channel equal its first, because there is no residual but 0: all units are absent, or all
// groups have the code 0. Label maps are not looked into.
constexpr bool is_flat(const FastChannel &channel, const uint8_t *bytes, uint32_t bits) {
  if (channel.predictor == kLabelMap) return false;
  return channel.units == 0 ||
         (channel.index_bits == 0 && code_of_index(bytes + channel.palette, 0, channel.index_bits, bits) == 0);
}

// Reads the bitmap of a tile's units. Returns null, or what is wrong.
L3_HOST_DEVICE const char *read_unit_bitmap(const uint8_t *bytes, TileShape shape, uint64_t *bitmap) {
  *bitmap = 0;
  std::memcpy(bitmap, bytes, shape.unit_bitmap_size());
  return *bitmap & ~low_bits(shape.units()) ? "the unit bitmap has bits past the last unit" : nullptr;
}

// Reads and validates the tile's heads and the parts of each body that its head describes, but not what the octets
// say. Returns null, or what is wrong.
L3_HOST_DEVICE const char *parse_fast_tile(const uint8_t *bytes, uint32_t size, uint32_t channels, uint32_t bits,
                                           TileShape shape, FastTile *tile) {
  uint32_t position = fast_heads_size(channels, bits);
  if (size < position) return "too short for its heads";
  const uint32_t color = color_of(bytes[0]), scale = scale_of(bytes[0]);
  if (color >= kTransforms) return "unknown colour transform";
  if (color != kTransformNone && channels < 3) return "a colour transform in an image without colour";
  if (scale != 0 && bits == 8) return "a scale with 8-bit samples";
  tile->transform = {color, scale_factor(scale)};
  for (uint32_t c = 0; c < channels; c++) {
    FastChannel &channel = tile->channels[c];
    const ChannelHead head = read_channel_head(bytes, c, bits);
    channel.predictor = head.predictor();
    channel.index_bits = head.index_bits();
    channel.first = head.first;
    channel.palette = position;
    if (head.body_size > size - position) return "a body runs past the tile's end";
    channel.end = position += head.body_size;
    if (head.has_unknown_bit()) return "an unknown mode bit";
    if (channel.predictor == kLabelMap) {
      if (head.mode != kLabelMap) return "a label map with bits of another mode";
      continue;
    }
    if (channel.predictor >= kPredictors) return "an unknown predictor";
    if (channel.index_bits > max_index_bits(bits)) return "too many index bits";

    uint32_t fixed = palette_size(channel.index_bits, bits);
    const uint32_t bitmap_size = head.has_bitmap() ? shape.unit_bitmap_size() : 0;
    if (fixed + bitmap_size > head.body_size) return "a body too short for its palette and bitmap";
    if (const char *problem = check_palette(bytes + channel.palette, channel.index_bits, bits)) return problem;
    channel.units = low_bits(shape.units());
    if (head.has_bitmap())
      if (const char *problem = read_unit_bitmap(bytes + channel.palette + fixed, shape, &channel.units))
        return problem;
    fixed += bitmap_size;
    channel.indices = channel.palette + fixed;
    fixed += popcount(channel.units) * channel.index_bits;
    if (fixed > head.body_size) return "a body too short for its index words";
    channel.payload = channel.palette + fixed;
  }
  if (size - position > 3) return "bodies that do not fill the tile";
  return nullptr;
}

}  // namespace l3
