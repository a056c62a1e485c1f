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
    const l3_rect rect = tile_rect(image, tile.x, tile.y);
    const TileEdges part = part_in_region(rect, image.region);
    shape = shape_of(rect);
    left = part.left;
    top = part.top;
    width = part.width();
    height = part.height();
    out = image.out + (rect.y + top - image.region.y) * image.row_stride +
          uint64_t(rect.x + left - image.region.x) * image.output_pixel_size;
  }
};

}  // namespace l3
