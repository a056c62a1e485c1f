// A file of either kind, the container's or the prototype's: what others see of it is the same. Nothing else knows
// files of the prototype, whose tiles are decoded here, and are handed on as those of profile `raw`.
#pragma once

#include "format/prototype.h"
#include "format/tiles.h"

namespace l3 {

// What a decoder is to know of a file: what it says, but the profile of the tiles that FileTiles gives.
l3_info info_of_tiles(const l3_info &info);

// The bytes of `count` tiles that follow each other from `first` on.
uint64_t size_of_tiles(const l3_file &file, uint32_t first, uint32_t count);

// The tiles of a file, in ascending order.
class FileTiles {
 public:
  static constexpr uint32_t kScratchSize = kPrototypeTileSize;

  // `verify`: read() checks what checksums there are. `scratch`: kScratchSize bytes, where read() may put a tile.
  FileTiles(const l3_file &file, bool verify, uint8_t *scratch)
      : file_(file), verify_(verify), scratch_(scratch), prototype_(file) {}

  // Copies the bytes of `count` tiles, which may be read() then, from `first` on to `out`.
  l3_status copy(uint32_t first, uint32_t count, uint8_t *out, l3_error *error);

  // Finds a tile's bytes. They stay until the next call.
  l3_status read(uint32_t tile, TileBytes *found, l3_error *error);

 private:
  const l3_file &file_;
  const bool verify_;
  uint8_t *const scratch_;
  PrototypeTiles prototype_;
  // The tiles that were decoded last, of the prototype's.
  const uint8_t *decoded_ = nullptr;
  uint32_t first_decoded_ = 0, decoded_count_ = 0;
};

}  // namespace l3
