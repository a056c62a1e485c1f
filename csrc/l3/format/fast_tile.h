// The structure of a `fast` tile: what stands where (docs/format.md, "Profile 2"). Shared by every decoder.
#pragma once

#include "format/bytes.h"
#include "format/geometry.h"

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
constexpr uint32_t max_index_bits(uint32_t bits) { return bits == 8 ? 4 : 5; }
constexpr uint32_t code_count(uint32_t bits) { return 2 * bits; }

// A code's field width in bits, and the number to add to its fields, modulo the sample's range.
constexpr uint32_t code_width(uint32_t code) { return (code + 1) / 2; }
constexpr uint32_t code_minimum(uint32_t code) {
  return code == 0 ? 0 : (code % 2 ? 0u : 1u) - (1u << (code_width(code) - 1));
}

constexpr uint32_t palette_size(uint32_t index_bits, uint32_t bits) {
  if (index_bits == max_index_bits(bits)) return 0;
  uint32_t codes = 1u << index_bits;
  return bits == 16 ? codes : codes == 1 ? 1 : codes / 2;
}

constexpr uint32_t channel_head_size(uint32_t bits) { return 3 + bits / 8; }

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

// Reads a bitmap of `units` bits; null if bits past them are set.
L3_HOST_DEVICE const char *read_unit_bitmap(const uint8_t *bytes, uint32_t units, uint64_t *bitmap) {
  *bitmap = 0;
  std::memcpy(bitmap, bytes, (units + 7) / 8);
  return *bitmap & ~low_bits(units) ? "the unit bitmap has bits past the last unit" : nullptr;
}

// Reads and validates the tile's heads and the parts of each body that its head describes, but not what the octets
// say. Returns null, or what is wrong.
L3_HOST_DEVICE const char *parse_fast_tile(const uint8_t *bytes, uint32_t size, uint32_t channels, uint32_t bits,
                                           TileShape shape, FastTile *tile) {
  const uint32_t head_size = channel_head_size(bits);
  uint32_t position = 1 + channels * head_size;
  if (size < position) return "too short for its heads";
  const uint32_t color = bytes[0] & 15, scale = bytes[0] >> 4;
  if (color >= kTransforms) return "unknown colour transform";
  if (color != kTransformNone && channels < 3) return "a colour transform without colour";
  if (scale != 0 && bits == 8) return "a scale with 8-bit samples";
  tile->transform = {color, scale_factor(scale)};
  for (uint32_t c = 0; c < channels; c++) {
    FastChannel &channel = tile->channels[c];
    const uint8_t *head = bytes + 1 + c * head_size;
    channel.predictor = head[0] & 7;
    channel.index_bits = head[0] >> 3 & 7;
    const bool has_bitmap = head[0] >> 6 & 1;
    channel.first = bits == 8 ? head[1] : load<uint16_t>(head + 1);
    channel.palette = position;
    const uint32_t count = load<uint16_t>(head + head_size - 2);
    if (count > size - position) return "a body runs past the tile's end";
    channel.end = position += count;
    if (head[0] >> 7) return "an unknown mode bit";
    if (channel.predictor == kLabelMap) {
      if (head[0] != kLabelMap) return "a label map with bits of another mode";
      continue;
    }
    if (channel.predictor >= kPredictors) return "an unknown predictor";
    if (channel.index_bits > max_index_bits(bits)) return "too many index bits";

    uint32_t fixed = palette_size(channel.index_bits, bits);
    const uint32_t bitmap_size = has_bitmap ? (shape.units() + 7) / 8 : 0;
    if (fixed + bitmap_size > count) return "a body too short for its palette and bitmap";
    if (bits == 8 && channel.index_bits == 0 && bytes[channel.palette] > 15) return "an unknown code in the palette";
    if (bits == 16)
      for (uint32_t i = 0; i < fixed; i++)
        if (bytes[channel.palette + i] >= code_count(16)) return "an unknown code in the palette";
    channel.units = low_bits(shape.units());
    if (has_bitmap)
      if (const char *problem = read_unit_bitmap(bytes + channel.palette + fixed, shape.units(), &channel.units))
        return problem;
    fixed += bitmap_size;
    channel.indices = channel.palette + fixed;
    fixed += popcount(channel.units) * channel.index_bits;
    if (fixed > count) return "a body too short for its index words";
    channel.payload = channel.palette + fixed;
  }
  if (size - position > 3) return "bodies that do not fill the tile";
  return nullptr;
}

}  // namespace l3
