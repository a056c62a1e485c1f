// The samples of one tile. As planes of channels, the form in which tiles are predicted, they stand in coding order: G,
// R, B, A for three and four channels, the image's order for one and two.
#pragma once

#include <cstddef>

#include "format/geometry.h"

namespace l3 {

constexpr uint32_t kPlaneSize = L3_TILE * L3_TILE;  // samples; rows are L3_TILE samples apart whatever the tile's width

// The image's channel that plane `n` holds, and also the plane that holds channel `n`.
constexpr uint32_t channel_of_plane(uint32_t n, uint32_t channels) { return channels < 3 || n > 1 ? n : 1 - n; }

template <typename Sample>
struct Planes {
  alignas(64) Sample plane[L3_MAX_CHANNELS][kPlaneSize];
};

// A tile as interleaved pixels, which need not be aligned, in rows `stride` bytes apart.
struct TilePixels {
  const uint8_t *data;
  size_t stride;
  uint32_t channels;
  TileShape shape;
};

}  // namespace l3
