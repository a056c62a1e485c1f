// Whether a file is whole and undamaged, found out without decoding it.
#include "format/check_tile.h"
#include "format/file.h"

namespace l3 {
namespace {

l3_status verify_metadata(const l3_file &file, l3_error *error) {
  size_t cursor = 0;
  l3_metadata entry;
  do {
    if (l3_status status = l3_next_metadata(&file, &cursor, &entry, error)) return status;
  } while (entry.key);
  return L3_OK;
}

l3_status verify_tiles(const l3_file &file, l3_error *error) {
  const l3_info info = info_of_tiles(file.info);
  uint8_t scratch[FileTiles::kScratchSize];
  FileTiles tiles(file, true, scratch);
  for (uint32_t tile = 0; tile < tile_count(info); tile++) {
    TileBytes source;
    if (l3_status status = tiles.read(tile, &source, error)) return status;
    bool has_label_map;
    if (const char *problem = check_tile(info, shape_of(tile_rect(info, tile)), source, &has_label_map))
      return fail_tile(info, tile, L3_ERROR_CORRUPT, problem, error);
  }
  return L3_OK;
}

}  // namespace
}  // namespace l3

using namespace l3;

extern "C" l3_status l3_verify(const l3_file *file, l3_error *error) {
  if (l3_status status = verify_metadata(*file, error)) return status;
  return verify_tiles(*file, error);
}
