// A tile of a batch as a kernel finds it.
#pragma once

#include "batch.h"
#include "format/geometry.h"
#include "format/host_device.h"

namespace l3 {

// The tile at a place in the batch's `order`.
L3_DEVICE const BatchTile &ordered_tile(const uint8_t *buffer, const BatchLayout &layout, uint32_t place) {
  const uint32_t number = reinterpret_cast<const uint32_t *>(buffer + layout.order)[place];
  return reinterpret_cast<const BatchTile *>(buffer + layout.tiles)[number];
}

L3_DEVICE const BatchImage &image_of(const uint8_t *buffer, const BatchLayout &layout, const BatchTile &tile) {
  return reinterpret_cast<const BatchImage *>(buffer + layout.images)[tile.image];
}

// A tile's bytes, and what is wanted of the tile.
struct TilePart {
  const BatchImage &image;
  const uint8_t *bytes;
  uint32_t size;  // in bytes
  TileShape shape;
  uint32_t left, top, width, height;  // the part that lies in the region; relative to the tile
  uint8_t *out;                       // that part's top left pixel

  L3_DEVICE TilePart(const uint8_t *buffer, const BatchImage &batch_image, const BatchTile &tile)
      : image(batch_image), bytes(buffer + tile.bytes), size(tile.size) {
    const uint32_t x = tile.x * L3_TILE, y = tile.y * L3_TILE;
    shape = {least(L3_TILE, image.width - x), least(L3_TILE, image.height - y)};
    left = image.left > x ? image.left - x : 0;
    top = image.top > y ? image.top - y : 0;
    width = least(shape.width, image.left + image.region_width - x) - left;
    height = least(shape.height, image.top + image.region_height - y) - top;
    out = image.out + (y + top - image.top) * image.row_stride +
          uint64_t(x + left - image.left) * image.output_pixel_size;
  }

 private:
  static L3_DEVICE uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
};

}  // namespace l3
