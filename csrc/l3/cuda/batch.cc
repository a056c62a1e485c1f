#include "batch.h"

#include <algorithm>

#include "format/bytes.h"
#include "format/check_tile.h"
#include "format/error.h"
#include "format/fast_tile.h"
#include "format/file.h"
#include "format/tiles.h"
#include "output/convert.h"

namespace l3 {
namespace {

// Bytes from a row to the next that kernels can count with.
constexpr size_t kMaxRowStride = size_t{1} << 30;

// What kernels want of an output beyond what every decoder does.
l3_status check_device_output(const l3_info &info, const l3_output &output, l3_error *error) {
  const uint32_t sample_size = l3_output_sample_size(&info, output.sample);
  if ((reinterpret_cast<uintptr_t>(output.data) | output.row_stride) % sample_size)
    return fail(error, L3_ERROR_ARGUMENT, "an output whose start or rows are not aligned to its samples of %u bytes",
                sample_size);
  if (output.row_stride > kMaxRowStride)
    return fail(error, L3_ERROR_ARGUMENT, "an output whose rows are more than 1 GiB apart");
  return L3_OK;
}

// Bytes that an image's tiles take in the buffer.
uint64_t tile_bytes(const l3_file &file, const TileRange &range) {
  uint64_t size = 0;
  for (uint32_t row = 0; row < range.rows; row++)
    size += size_of_tiles(file, (range.y + row) * file.info.tiles_x + range.x, range.columns);
  return size;
}

BatchImage describe(const l3_cuda_image &image) {
  const l3_info info = info_of_tiles(image.file.info);
  const l3_output &output = image.output;
  const bool converts = needs_conversion(info.channels, info.bits, output.color, output.sample);
  BatchImage described;
  described.out = static_cast<uint8_t *>(output.data);
  described.row_stride = output.row_stride;
  described.width = info.width;
  described.height = info.height;
  described.region = image.region;
  described.channels = info.channels;
  described.bits = info.bits;
  described.profile = info.profile;
  described.color = converts ? output.color : L3_COLOR_NATIVE;
  described.sample = converts ? output.sample : L3_SAMPLE_NATIVE;
  described.output_pixel_size = l3_output_channels(&info, output.color) * l3_output_sample_size(&info, output.sample);
  return described;
}

// The kind of an image's tiles that are not label maps.
TileKind kind_of(const BatchImage &image) {
  if (image.profile == L3_PROFILE_FAST) {
    const TileKind one = image.bits == 16   ? TileKind::kFast16x1
                         : image.converts() ? TileKind::kFull8x1
                                            : TileKind::kFast8x1;
    return of_channels(one, image.channels);
  }
  if (image.profile == L3_PROFILE_RAW && !image.converts()) return TileKind::kStored;
  return image.bits == 8 ? TileKind::kGeneral8 : TileKind::kGeneral16;
}

// The kind of a tile with a label map where others are of kind `kind`.
TileKind with_label_map(TileKind kind) {
  const uint32_t channels = channels_of(kind, TileKind::kFast8x1);
  return channels ? of_channels(TileKind::kFull8x1, channels) : kind;
}

}  // namespace

l3_status BatchPlan::plan(const l3_cuda_image *images, size_t count, size_t *failed, l3_error *error) {
  images_ = images;
  places_.clear();
  uint64_t tiles = 0, bytes = 0;  // so far
  // The size of everything but the tiles' bytes, which start aligned: stored tiles can be loaded 16 bytes at a time
  // then.
  const auto tables_size = [&] {
    return (count * sizeof(BatchImage) + tiles * (sizeof(BatchTile) + sizeof(uint32_t)) + 15) / 16 * 16;
  };
  for (size_t i = 0; i < count; i++) {
    *failed = i;
    const l3_info &info = images[i].file.info;
    if (l3_status status = check_region(info, images[i].region, error)) return status;
    if (l3_status status = check_output(info, images[i].region, images[i].output, error)) return status;
    if (l3_status status = check_device_output(info, images[i].output, error)) return status;
    const TileRange range = tiles_of(images[i].region);
    places_.push_back({uint32_t(tiles), range.count(), uint32_t(bytes)});
    tiles += range.count();
    bytes += tile_bytes(images[i].file, range);
    if (tables_size() + bytes + kMaxOverread > UINT32_MAX)
      return fail(error, L3_ERROR_LIMIT, "the batch's compressed tiles exceed the limit of 4 GiB with this image");
  }
  *failed = count;
  kinds_.resize(tiles);
  layout_ = {};
  layout_.tile_count = uint32_t(tiles);
  layout_.tiles = uint32_t(count * sizeof(BatchImage));
  layout_.order = layout_.tiles + uint32_t(tiles * sizeof(BatchTile));
  layout_.tile_bytes = uint32_t(tables_size());
  layout_.end = layout_.tile_bytes + uint32_t(bytes) + kMaxOverread;
  return L3_OK;
}

l3_status BatchPlan::gather(size_t i, bool verify, uint8_t *buffer, l3_error *error) {
  const l3_status status = gather_tiles(i, verify, buffer, error);
  if (status) std::fill_n(kinds_.begin() + places_[i].first_tile, places_[i].tiles, kLeftOut);
  return status;
}

l3_status BatchPlan::gather_tiles(size_t i, bool verify, uint8_t *buffer, l3_error *error) {
  const l3_info info = info_of_tiles(images_[i].file.info);
  const BatchImage image = describe(images_[i]);
  store(buffer + layout_.images + i * sizeof image, image);

  const TileKind kind = kind_of(image);
  const TileRange range = tiles_of(images_[i].region);
  uint8_t scratch[FileTiles::kScratchSize];
  FileTiles tiles(images_[i].file, verify, scratch);
  uint32_t number = places_[i].first_tile, position = layout_.tile_bytes + places_[i].bytes;
  for (uint32_t y = range.y; y < range.y + range.rows; y++) {
    // The bytes of neighbours lie side by side. Copying a row of tiles first brings them to the cache, for the checks
    // to find there.
    const uint32_t first = y * info.tiles_x + range.x;
    if (l3_status status = tiles.copy(first, range.columns, buffer + position, error)) return status;
    for (uint32_t tile = first; tile < first + range.columns; tile++, number++) {
      TileBytes source;
      if (l3_status status = tiles.read(tile, &source, error)) return status;
      bool has_label_map;
      if (const char *problem = check_tile(info, shape_of(tile_rect(info, tile)), source, &has_label_map))
        return fail_tile(info, tile, L3_ERROR_CORRUPT, problem, error);
      kinds_[number] = has_label_map ? with_label_map(kind) : kind;
      store(buffer + layout_.tiles + number * sizeof(BatchTile),
            BatchTile{position, source.size, uint32_t(i), uint16_t(tile % info.tiles_x), uint16_t(y)});
      position += source.size;
    }
  }
  return L3_OK;
}

void BatchPlan::finish(uint8_t *buffer) {
  uint32_t counts[kTileKinds + 1] = {};  // and of those left out
  for (const TileKind kind : kinds_) counts[uint32_t(kind)]++;
  uint32_t next[kTileKinds];
  for (uint32_t kind = 0; kind < kTileKinds; kind++) {
    next[kind] = layout_.kind_begin[kind];
    layout_.kind_begin[kind + 1] = layout_.kind_begin[kind] + counts[kind];
  }
  for (uint32_t tile = 0; tile < layout_.tile_count; tile++)
    if (kinds_[tile] != kLeftOut) store(buffer + layout_.order + next[uint32_t(kinds_[tile])]++ * sizeof tile, tile);
}

}  // namespace l3
