// Channel planes of one tile, the form in which tiles are predicted. Planes stand in coding order: G, R, B, A for three
// and four channels, the image's order for one and two.
#pragma once

#include <cstdint>

#include "l3/l3.h"

namespace l3 {

constexpr uint32_t kPlaneSize = L3_TILE * L3_TILE;  // samples; rows are L3_TILE samples apart whatever the tile's width

// The image's channel that plane `n` holds, and also the plane that holds channel `n`.
constexpr uint32_t channel_of_plane(uint32_t n, uint32_t channels) { return channels < 3 || n > 1 ? n : 1 - n; }

template <typename Sample>
struct Planes {
  alignas(64) Sample plane[L3_MAX_CHANNELS][kPlaneSize];
};

}  // namespace l3
