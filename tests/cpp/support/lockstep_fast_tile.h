// The kernels for `fast` tiles in lock step, a tile at a time.
#pragma once

#include <cstring>
#include <memory>

#include "checked_lanes.h"
#include "cuda/fast16_tile.h"
#include "cuda/fast8_tile.h"

namespace l3 {

template <typename Tile>
void decode_tile_in_lockstep(const uint8_t *buffer, const BatchImage &image, const BatchTile &tile, bool active) {
  const auto tables = std::make_unique<typename Tile::Tables>();
  for (uint32_t thread = 0; thread < Tile::Tables::kThreads; thread++) tables->fill(thread);
  const auto shared = std::make_unique<typename Tile::Shared>();  // exactly its size, for the sanitizer
  std::memset(static_cast<void *>(shared.get()), 0xEE, sizeof *shared);
  Tile().decode(buffer, image, tile, active, *tables, *shared);
}

// Decodes a tile with the kernel of a kind. `active` is as for the kernel.
template <WordLanes Team>
void decode_fast_tile(TileKind kind, const uint8_t *buffer, const BatchImage &image, const BatchTile &tile,
                      bool active = true) {
  const auto decode = [&]<uint32_t channels>() {
    if (kind == of_channels(TileKind::kFast8x1, channels))
      decode_tile_in_lockstep<Fast8Tile<Team, channels, false>>(buffer, image, tile, active);
    else if (kind == of_channels(TileKind::kFull8x1, channels))
      decode_tile_in_lockstep<Fast8Tile<Team, channels, true>>(buffer, image, tile, active);
    else if (kind == of_channels(TileKind::kFast16x1, channels))
      decode_tile_in_lockstep<Fast16Tile<Team, channels>>(buffer, image, tile, active);
  };
  decode.template operator()<1>();
  decode.template operator()<2>();
  decode.template operator()<3>();
  decode.template operator()<4>();
}
extern template void decode_fast_tile<CheckedLanes>(TileKind, const uint8_t *, const BatchImage &, const BatchTile &,
                                                    bool);

}  // namespace l3
