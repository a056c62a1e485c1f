// The kernel for tiles of profile `raw` that are wanted as they are stored: rows of bytes, copied to
// the output.
#pragma once

#include "copy_row.h"
#include "tile_part.h"

namespace l3 {

// Copies the rows of one of `teams` teams.
template <WordLanes Team>
L3_DEVICE void copy_stored_rows(const TilePart &tile, uint32_t team, uint32_t teams) {
  const uint32_t pixel_size = tile.image.output_pixel_size, stored_row = tile.shape.width * pixel_size;
  for (uint32_t y = team; y < tile.height; y += teams) {
    const uint32_t begin = (tile.top + y) * stored_row + tile.left * pixel_size;
    copy_row<Team>(tile.bytes, begin, tile.out + y * tile.image.row_stride, tile.width * pixel_size);
  }
}

}  // namespace l3
