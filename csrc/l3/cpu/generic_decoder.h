// Back-end kernels in plain C++, for any sample size. Compiled once per instruction set, so that the compiler
// vectorises them for each.
#pragma once

#include <algorithm>

#include "cpu/kernels.h"
#include "format/octet.h"

// Internal linkage throughout: were these functions shared between the units, the linker would keep one instruction
// set's copy for all.
namespace l3::generic {
namespace {

template <typename Sample>
constexpr uint32_t kBits = 8 * sizeof(Sample);

// What the indices of a channel stand for.
template <typename Sample>
struct Palette {
  struct Code {
    uint8_t width;
    Sample minimum;
  };
  Code codes[code_count(kBits<Sample>)];

  // The palette was validated: its codes are known, and `index_bits` is no more than the table allows.
  Palette(const uint8_t *palette, uint32_t index_bits) {
    for (uint32_t i = 0; i < 1u << index_bits; i++) {
      const uint32_t code = code_of_index(palette, i, index_bits, kBits<Sample>);
      codes[i] = {uint8_t(code_width(code)), Sample(code_minimum(code))};
    }
  }
};

template <typename Sample>
constexpr Sample average(Sample a, Sample b) {
  return Sample((uint32_t(a) + b + 1) / 2);
}

// Predictor bases for a row from the row above; `width` is the tile's.
template <typename Sample>
inline void smooth(const Sample *above, uint32_t width, Sample *base) {
  Sample padded[L3_TILE + 2];
  padded[0] = above[0];
  std::memcpy(padded + 1, above, L3_TILE * sizeof(Sample));
  padded[L3_TILE + 1] = padded[width + 1] = above[width - 1];
  for (uint32_t x = 0; x < L3_TILE; x++) base[x] = average(average(padded[x], padded[x + 2]), padded[x + 1]);
}

// Running sums of a row, in place.
inline void sum_along_row(uint16_t *row) {
  uint16_t sum = 0;
  for (uint32_t x = 0; x < L3_TILE; x++) row[x] = sum = uint16_t(sum + row[x]);
}

// Eight samples at a time: a product sums pairs of samples over four lanes of 16 bits, none of which overflows.
inline void sum_along_row(uint8_t *row) {
  constexpr uint64_t low_bytes = 0x00FF00FF00FF00FFull, ones = 0x0001000100010001ull;
  uint64_t before = 0;  // the sum of all earlier samples
  for (uint32_t x = 0; x < L3_TILE; x += 8) {
    const uint64_t samples = load<uint64_t>(row + x), odd = samples >> 8 & low_bytes;
    const uint64_t through_odd = ((samples & low_bytes) + odd + before) * ones;
    // `before` went into every lane's sum once, through the lowest lane.
    store(row + x, ((through_odd - odd) & low_bytes) | (through_odd & low_bytes) << 8);
    before = through_odd >> 48 & 255;
  }
}

// Turns a row of residuals into samples in place. `above` is the row above, or null in row 0.
template <typename Sample>
inline void reconstruct_row(uint32_t predictor, Sample first, const Sample *above, uint32_t width, Sample *row) {
  if (!above || sums_along_row(predictor)) sum_along_row(row);
  alignas(64) Sample base[L3_TILE];
  if (!above || predictor == kLeft) {
    const Sample constant = above ? above[0] : first;
    for (uint32_t x = 0; x < L3_TILE; x++) base[x] = constant;
  } else if (predictor == kAbove || predictor == kPlane) {
    std::memcpy(base, above, sizeof base);
  } else {
    smooth(above, width, base);
  }
  for (uint32_t x = 0; x < L3_TILE; x++) row[x] = Sample(row[x] + base[x]);
}

template <typename Sample>
uint32_t decode_channel(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane) {
  const Palette<Sample> palette(bytes + channel.palette, channel.index_bits);
  const uint8_t *indices = bytes + channel.indices, *payload = bytes + channel.payload;
  const uint32_t index_mask = (1u << channel.index_bits) - 1;
  uint64_t units = channel.units;
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    Sample *upper = plane + 2 * pair * L3_TILE, *lower = upper + L3_TILE;
    std::memset(upper, 0, 2 * L3_TILE * sizeof(Sample));
    for (uint32_t first_group = 0; first_group < shape.groups(); first_group += kUnitGroups, units >>= 1) {
      if (!(units & 1)) continue;
      uint64_t word = load<uint64_t>(indices);
      indices += channel.index_bits;
      const uint32_t end = std::min(first_group + kUnitGroups, shape.groups());
      for (uint32_t group = first_group; group < end; group++, word >>= channel.index_bits) {
        const auto code = palette.codes[word & index_mask];
        Sample values[kGroup];
        unpack_octet(payload, code.width, values);
        payload += code.width;
        for (Sample &value : values) value = Sample(value + code.minimum);
        std::memcpy(upper + 4 * group, values, 4 * sizeof(Sample));
        std::memcpy(lower + 4 * group, values + 4, 4 * sizeof(Sample));
      }
    }
    const Sample first = Sample(channel.first);
    reconstruct_row<Sample>(channel.predictor, first, pair ? upper - L3_TILE : nullptr, shape.width, upper);
    reconstruct_row<Sample>(channel.predictor, first, upper, shape.width, lower);
  }
  return uint32_t(payload - bytes);
}

// Undoes the colour transform of one row in place; g, r and b are rows of planes.
template <typename Sample>
inline void undo_transform(uint32_t transform, const Sample *g, Sample *r, Sample *b) {
  if (transform == kTransformNone) return;
  constexpr uint32_t middle = 1u << (kBits<Sample> - 1);
  for (uint32_t x = 0; x < L3_TILE; x++) {
    const Sample red = Sample(r[x] + g[x] - middle);
    const uint32_t reference = transform == kSubtractGreen ? g[x] : (uint32_t(red) + g[x]) / 2;
    r[x] = red;
    b[x] = Sample(b[x] + reference - middle);
  }
}

template <typename Sample, uint32_t channels>
inline void interleave(const Sample *const rows[L3_MAX_CHANNELS], uint32_t width, Sample *out) {
  for (uint32_t x = 0; x < width; x++)
    for (uint32_t c = 0; c < channels; c++) out[channels * x + c] = rows[c][x];
}

// One row of a tile as interleaved pixels, the colour transform undone.
template <typename Sample>
inline void pixels_of_row(const DecodedTile<Sample> &tile, uint32_t y, Sample *out) {
  const uint32_t channels = tile.channels, width = tile.shape.width;
  const Sample *rows[L3_MAX_CHANNELS];  // in the image's order
  for (uint32_t n = 0; n < channels; n++) rows[channel_of_plane(n, channels)] = tile.planes.plane[n] + y * L3_TILE;
  alignas(64) Sample red[L3_TILE], blue[L3_TILE];
  if (tile.transform.color != kTransformNone) {
    std::memcpy(red, rows[0], sizeof red);
    std::memcpy(blue, rows[2], sizeof blue);
    undo_transform(tile.transform.color, rows[1], red, blue);
    rows[0] = red;
    rows[2] = blue;
  }
  switch (channels) {
    case 1: return interleave<Sample, 1>(rows, width, out);
    case 2: return interleave<Sample, 2>(rows, width, out);
    case 3: return interleave<Sample, 3>(rows, width, out);
    default: return interleave<Sample, 4>(rows, width, out);
  }
}

template <typename Sample>
inline void multiply(Sample *samples, uint32_t count, uint32_t factor) {
  for (uint32_t i = 0; i < count; i++) samples[i] = Sample(samples[i] * factor);
}

inline void copy_rows(const Rows &rows, Destination out) {
  const auto [first, stride, row_size, count] = rows;
  for (uint32_t y = 0; y < count; y++) std::memcpy(out.data + y * out.stride, first + y * stride, row_size);
}

template <typename Sample>
void store_tile(const DecodedTile<Sample> &decoded, Destination out, Stores /*stores*/) {
  const DecodedTile<Sample> tile = decoded;  // else it would be read again after every store
  const uint32_t samples = tile.shape.width * tile.channels, factor = tile.transform.factor;
  if (tile.channels == 1 && factor == 1) {
    const auto *rows = reinterpret_cast<const uint8_t *>(tile.planes.plane[0]);
    return copy_rows({rows, L3_TILE * sizeof(Sample), samples * uint32_t(sizeof(Sample)), tile.shape.height}, out);
  }
  alignas(64) Sample pixels[L3_TILE * L3_MAX_CHANNELS];
  for (uint32_t y = 0; y < tile.shape.height; y++) {
    pixels_of_row(tile, y, pixels);
    if (sizeof(Sample) == 2 && factor != 1) multiply(pixels, samples, factor);
    std::memcpy(out.data + y * out.stride, pixels, samples * sizeof(Sample));
  }
}

}  // namespace
}  // namespace l3::generic
