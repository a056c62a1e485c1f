// Tiles and rectangles of an image.
#pragma once

#include <algorithm>

#include "format/host_device.h"
#include "l3/l3.h"

namespace l3 {

struct TileShape {
  uint32_t width, height;  // 1..L3_TILE

  constexpr uint32_t pixels() const { return width * height; }
  constexpr uint32_t row_pairs() const { return (height + 1) / 2; }
  constexpr uint32_t groups() const { return (width + 3) / 4; }  // in a row pair
  constexpr uint32_t units_per_row_pair() const { return (width + 31) / 32; }
  constexpr uint32_t units() const { return units_per_row_pair() * row_pairs(); }
  constexpr uint32_t unit_bitmap_size() const { return (units() + 7) / 8; }  // bytes
};

inline uint32_t sample_size(const l3_info &info) { return info.bits / 8; }
inline uint32_t pixel_size(const l3_info &info) { return info.channels * sample_size(info); }
inline uint32_t tile_count(const l3_info &info) { return info.tiles_x * info.tiles_y; }

// The part of an image, whatever describes it, that the tile in a column and a row covers.
template <typename Image>
L3_HOST_DEVICE l3_rect tile_rect(const Image &image, uint32_t column, uint32_t row) {
  const uint32_t x = column * L3_TILE, y = row * L3_TILE;
  return {x, y, std::min<uint32_t>(L3_TILE, image.width - x), std::min<uint32_t>(L3_TILE, image.height - y)};
}
inline l3_rect tile_rect(const l3_info &info, uint32_t tile) {
  return tile_rect(info, tile % info.tiles_x, tile / info.tiles_x);
}

L3_HOST_DEVICE TileShape shape_of(const l3_rect &rect) { return {rect.width, rect.height}; }

// A rectangle of a tile, by its edges.
struct TileEdges {
  uint32_t left, top, right, bottom;

  constexpr uint32_t width() const { return right - left; }
  constexpr uint32_t height() const { return bottom - top; }
};

// The part of a tile that lies in a region, which touches it.
L3_HOST_DEVICE TileEdges part_in_region(const l3_rect &tile, const l3_rect &region) {
  const uint32_t left = region.x > tile.x ? region.x - tile.x : 0, top = region.y > tile.y ? region.y - tile.y : 0;
  return {left, top, std::min(tile.width, region.x + region.width - tile.x),
          std::min(tile.height, region.y + region.height - tile.y)};
}

}  // namespace l3
