// Whether a tile decodes, found out without decoding it.
#pragma once

#include "format/geometry.h"
#include "format/tiles.h"

namespace l3 {

// What is wrong with the bytes of a tile of shape `shape`, or null: exactly what its decoder would say.
// `has_label_map` tells whether a channel of the tile is one.
const char *check_tile(const l3_info &info, TileShape shape, const TileBytes &tile, bool *has_label_map);

}  // namespace l3
