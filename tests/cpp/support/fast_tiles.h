// Random tiles of profile `fast`. Any palette, indices and octets make a valid body as long as their sizes
// agree, so tiles need no encoder and cover what none would choose.
#pragma once

#include "format/fast_tile.h"
#include "images.h"

namespace l3 {

struct ChannelChoice {
  uint32_t bits, predictor, index_bits;
  bool has_bitmap;
  TileShape shape;
};

// A valid tile of one channel, of any scale.
Bytes random_tile(Random &random, const ChannelChoice &choice);

// Replaces the index words and octets of a tile by random bytes, a random number of them: what parse_fast_tile
// accepts though the body is unlikely to be consumed exactly.
Bytes with_random_body(Random &random, const ChannelChoice &choice, const Bytes &tile);

// A file whose image is the tile.
Bytes file_of_tile(const ChannelChoice &choice, const Bytes &tile);

}  // namespace l3
