// Files of the published prototype ("LLL."; docs/format.md, "Prototype files").
#pragma once

#include "l3/l3.h"

namespace l3 {

constexpr uint32_t kPrototypeTileSize = L3_TILE * L3_TILE * 3;  // bytes of a decoded tile

bool is_prototype(const uint8_t *data, size_t size);
l3_status peek_prototype(const uint8_t *data, size_t size, l3_info *info, l3_error *error);

// Sets file->offsets to the table of patch sizes and file->payload to the patches' data, after checking the sizes'
// sum.
l3_status open_prototype(l3_file *file, l3_error *error);

// The tiles of a file, in ascending order. The file's table holds the patches' sizes and not their positions, which are
// found by adding up; the sums go on from tile to tile.
class PrototypeTiles {
 public:
  explicit PrototypeTiles(const l3_file &file) : file_(file) {}

  // Decodes a tile, which does not come before the last one, to 64 x 64 interleaved RGB pixels.
  l3_status decode(uint32_t tile, uint8_t *pixels, l3_error *error);

 private:
  // A patch and where its data start, from the payload's start.
  struct Cursor {
    uint64_t patch = 0, position = 0;
  };

  const l3_file &file_;
  Cursor cursors_[3];  // R, G, B
};

}  // namespace l3
