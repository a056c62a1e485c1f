// Tiles and rectangles of an image.
#pragma once

#include <algorithm>

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

// The part of the image that a tile covers.
inline l3_rect tile_rect(const l3_info &info, uint32_t tile) {
  uint32_t x = tile % info.tiles_x * L3_TILE, y = tile / info.tiles_x * L3_TILE;
  return {x, y, std::min<uint32_t>(L3_TILE, info.width - x), std::min<uint32_t>(L3_TILE, info.height - y)};
}

inline TileShape shape_of(const l3_rect &rect) { return {rect.width, rect.height}; }

inline l3_rect intersect(const l3_rect &a, const l3_rect &b) {
  uint32_t left = std::max(a.x, b.x), top = std::max(a.y, b.y);
  uint32_t right = std::min(a.x + a.width, b.x + b.width), bottom = std::min(a.y + a.height, b.y + b.height);
  return {left, top, right - left, bottom - top};
}

}  // namespace l3
