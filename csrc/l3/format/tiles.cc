#include "format/tiles.h"

#include "format/bytes.h"
#include "format/crc32.h"
#include "format/error.h"

namespace l3 {

TileRange tiles_of(const l3_rect &rect) {
  const uint32_t x = rect.x / L3_TILE, y = rect.y / L3_TILE;
  return {x, y, (rect.x + rect.width - 1) / L3_TILE - x + 1, (rect.y + rect.height - 1) / L3_TILE - y + 1};
}

l3_status check_region(const l3_info &info, const l3_rect &region, l3_error *error) {
  if (!region.width || !region.height || region.width > info.width || region.height > info.height ||
      region.x > info.width - region.width || region.y > info.height - region.height)
    return fail(error, L3_ERROR_ARGUMENT, "the region of %u x %u pixels at (%u, %u) is not inside the image of %u x %u",
                region.width, region.height, region.x, region.y, info.width, info.height);
  return L3_OK;
}

l3_status check_output(const l3_info &info, const l3_rect &region, const l3_output &output, l3_error *error) {
  const uint64_t row_size =
      uint64_t(region.width) * l3_output_channels(&info, output.color) * l3_output_sample_size(&info, output.sample);
  if (!output.data || !row_size || output.row_stride < row_size)
    return fail(error, L3_ERROR_ARGUMENT,
                "an output without memory, of unknown kind, or with rows closer than their size");
  return L3_OK;
}

l3_status fail_tile(const l3_info &info, uint32_t tile, l3_status status, const char *problem, l3_error *error) {
  return fail(error, status, "tile %u (row %u, column %u): %s", tile, tile / info.tiles_x, tile % info.tiles_x,
              problem);
}

l3_status find_tile(const l3_file &file, uint32_t tile, bool verify, TileBytes *found, l3_error *error) {
  const uint32_t start = load<uint32_t>(file.offsets + 4 * size_t(tile));
  *found = {file.payload + start, load<uint32_t>(file.offsets + 4 * size_t(tile) + 4) - start};
  if (verify && file.checksums && crc32c(found->data, found->size) != load<uint32_t>(file.checksums + 4 * size_t(tile)))
    return fail_tile(file.info, tile, L3_ERROR_CHECKSUM, "the checksum does not match", error);
  if (found->size > kMaxTileBytes)
    return fail_tile(file.info, tile, L3_ERROR_CORRUPT, "longer than any tile can be", error);
  return L3_OK;
}

}  // namespace l3
