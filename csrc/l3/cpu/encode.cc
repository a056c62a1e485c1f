// Encoding: from the caller's pixels to a file.
#include <algorithm>

#include "cpu/kernels.h"
#include "format/bytes.h"
#include "format/container.h"
#include "format/crc32.h"
#include "format/error.h"
#include "format/geometry.h"
#include "format/metadata.h"
#include "format/paper.h"

namespace l3 {
namespace {

constexpr uint32_t kStoreSlack = 64;  // bytes that packing may write past a tile

l3_status check(const l3_image &image, const l3_encode_options &options, l3_info *info, l3_error *error) {
  *info = {};
  info->width = image.width;
  info->height = image.height;
  info->channels = image.channels;
  info->bits = image.bits;
  info->two_dimensional = image.two_dimensional != 0;
  info->profile = options.profile;
  info->has_checksums = options.checksums != 0;
  if (l3_status status = check_shape(info, error)) return status;
  if (!image.data || image.row_stride < size_t(image.width) * pixel_size(*info))
    return fail(error, L3_ERROR_ARGUMENT, "data is NULL, or row_stride is smaller than a row");
  if (image.two_dimensional && image.channels != 1)
    return fail(error, L3_ERROR_ARGUMENT, "a two-dimensional image has one channel");
  if (options.profile != L3_PROFILE_RAW && options.profile != L3_PROFILE_PAPER && options.profile != L3_PROFILE_FAST)
    return fail(error, L3_ERROR_ARGUMENT, "no profile %d to encode", int(options.profile));
  if (options.effort < 1 || options.effort > 3)
    return fail(error, L3_ERROR_ARGUMENT, "effort %u: must be 1 to 3", options.effort);
  return check_metadata(options.metadata, options.metadata_count, &info->metadata_size, error);
}

// Bytes that suffice for a tile, padded.
uint32_t tile_bound(const l3_info &info, TileShape shape) {
  const uint32_t raw_size = shape.pixels() * pixel_size(info);
  if (info.profile == L3_PROFILE_RAW) return aligned4(raw_size);
  // Whole octets, of 8 x 1 samples in `paper` and of 4 x 2 in `fast`, and beside them heads, palettes, bitmaps, index
  // words and row headers.
  const uint32_t octets =
      info.profile == L3_PROFILE_PAPER ? (shape.width + 7) / 8 * shape.height : shape.groups() * shape.row_pairs();
  const uint32_t rest = 1 + info.channels * (8 + 32 + 8 + std::max(5 * shape.units(), shape.height * 3));
  return aligned4(octets * 8 * pixel_size(info) + rest);
}

uint64_t payload_bound(const l3_info &info) {
  // All tiles are as large as the first, but those at the right and bottom edges.
  const l3_rect last = tile_rect(info, tile_count(info) - 1);
  const uint32_t width = std::min<uint32_t>(info.width, L3_TILE), height = std::min<uint32_t>(info.height, L3_TILE);
  const uint64_t columns = info.tiles_x - 1, rows = info.tiles_y - 1;
  return columns * rows * tile_bound(info, {width, height}) + columns * tile_bound(info, {width, last.height}) +
         rows * tile_bound(info, {last.width, height}) + tile_bound(info, {last.width, last.height});
}

size_t file_bound(const l3_info &info) {
  return size_t(layout_of(info).payload + payload_bound(info)) + std::max(kStoreSlack, kTrailerSize);
}

uint32_t store_raw_tile(const TilePixels &pixels, uint32_t row_size, uint8_t *out) {
  const auto [data, stride, channels, shape] = pixels;
  for (uint32_t y = 0; y < shape.height; y++) std::memcpy(out + y * row_size, data + y * stride, row_size);
  return shape.height * row_size;
}

// Writes a tile's bytes, not padded; returns its size.
uint32_t encode_tile(const l3_info &info, uint32_t effort, const Kernels &kernels, const TilePixels &pixels,
                     uint8_t *out) {
  switch (info.profile) {
    case L3_PROFILE_RAW: return store_raw_tile(pixels, pixels.shape.width * pixel_size(info), out);
    case L3_PROFILE_PAPER:
      return info.bits == 8 ? encode_paper_tile<uint8_t>(pixels, out) : encode_paper_tile<uint16_t>(pixels, out);
    default: {
      const auto encode_fast_tile = info.bits == 8 ? kernels.of_8_bits.encode_tile : kernels.of_16_bits.encode_tile;
      return encode_fast_tile(pixels, effort, out);
    }
  }
}

// Writes tiles and tables; returns the payload's size.
uint32_t encode_tiles(const l3_image &image, const l3_info &info, uint32_t effort, const Kernels &kernels,
                      uint8_t *file) {
  const Layout layout = layout_of(info);
  uint32_t position = 0;
  for (uint32_t tile = 0; tile < tile_count(info); tile++) {
    const l3_rect rect = tile_rect(info, tile);
    const uint8_t *first =
        static_cast<const uint8_t *>(image.data) + rect.y * image.row_stride + size_t(rect.x) * pixel_size(info);
    const TilePixels pixels{first, image.row_stride, info.channels, shape_of(rect)};
    uint8_t *const bytes = file + layout.payload + position;
    const uint32_t size = encode_tile(info, effort, kernels, pixels, bytes), padded = aligned4(size);
    std::memset(bytes + size, 0, padded - size);
    store(file + layout.offsets + 4 * size_t(tile), position);
    if (info.has_checksums) store(file + layout.checksums + 4 * size_t(tile), crc32c(bytes, padded));
    position += padded;
  }
  store(file + layout.offsets + 4 * size_t(tile_count(info)), position);
  return position;
}

}  // namespace
}  // namespace l3

using namespace l3;

extern "C" size_t l3_encode_bound(const l3_image *image, const l3_encode_options *options) {
  l3_info info;
  return check(*image, *options, &info, nullptr) ? 0 : file_bound(info);
}

extern "C" l3_status l3_encode(const l3_image *image, const l3_encode_options *options, void *out, size_t capacity,
                               size_t *written, l3_error *error) {
  l3_info info;
  if (l3_status status = check(*image, *options, &info, error)) return status;
  const size_t bound = file_bound(info);
  if (capacity < bound)
    return fail(error, L3_ERROR_CAPACITY, "the output holds %zu bytes, but %zu are needed", capacity, bound);
  const Kernels *kernels = active_kernels(error);
  if (!kernels) return L3_ERROR_UNSUPPORTED;
  uint8_t *const file = static_cast<uint8_t *>(out);
  write_metadata(options->metadata, options->metadata_count, file + layout_of(info).metadata);
  info.payload_size = encode_tiles(*image, info, options->effort, *kernels, file);
  const Layout layout = layout_of(info);
  std::memset(file + layout.payload + info.payload_size, 0, kTrailerSize);
  write_header(info, file);
  *written = layout.end;
  return L3_OK;
}
