// What every decoder begins with: the tiles that a region touches, their bytes, and how what is wrong with them is
// reported.
#pragma once

#include "format/container.h"
#include "format/geometry.h"
#include "format/planes.h"

namespace l3 {

constexpr uint32_t kMaxTileSize = kPlaneSize * L3_MAX_CHANNELS * 2;        // bytes of a decoded tile
constexpr uint32_t kMaxTileBytes = kMaxTileSize + L3_MAX_CHANNELS * 1024;  // no valid tile is longer

// The tiles that a rectangle touches.
struct TileRange {
  uint32_t x, y, columns, rows;

  uint32_t count() const { return columns * rows; }
};
TileRange tiles_of(const l3_rect &rect);

// Refuses regions that are empty or not inside the image.
l3_status check_region(const l3_info &info, const l3_rect &region, l3_error *error);

// Refuses outputs that cannot hold the region.
l3_status check_output(const l3_info &info, const l3_rect &region, const l3_output &output, l3_error *error);

// Reports what is wrong with a tile.
l3_status fail_tile(const l3_info &info, uint32_t tile, l3_status status, const char *problem, l3_error *error);

// A problem that decoders find in different ways.
constexpr const char *kBodyNotConsumed = "a body that is not consumed exactly";

struct TileBytes {
  const uint8_t *data;
  uint32_t size;
};

// A tile's bytes where they stand in a file, its checksum verified if asked for.
l3_status find_tile(const l3_file &file, uint32_t tile, bool verify, TileBytes *found, l3_error *error);

// What is wrong with the bytes of a tile of profile `raw`, or null.
inline const char *check_raw_tile(const l3_info &info, TileShape shape, uint32_t size) {
  return size == aligned4(shape.pixels() * pixel_size(info)) ? nullptr : "a stored tile of the wrong size";
}

}  // namespace l3
