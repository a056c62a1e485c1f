// Decoding: from a parsed file to the caller's pixels, tile by tile.
#include <algorithm>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/kernels.h"
#include "format/error.h"
#include "format/file.h"
#include "format/paper.h"
#include "format/tiles.h"
#include "output/convert.h"

namespace l3 {
namespace {

// All memory that decoding takes beyond its output; lives on the stack.
struct Scratch {
  union {
    Planes<uint8_t> planes_8;
    Planes<uint16_t> planes_16;
  };
  alignas(kCacheLine) uint8_t before_pixels[kCacheLine];  // copy_rows_uncached reads around rows
  uint8_t pixels[kMaxTileSize + kCacheLine];
  uint8_t tile[kMaxTileBytes + kMaxOverread];  // where a tile's bytes are copied to
  PartialLines partial_lines;
};

class TileDecoder {
 public:
  TileDecoder(const l3_file &file, const l3_output &output, uint32_t options, const Kernels &kernels, l3_error *error)
      : file_(file),
        info_(info_of_tiles(file.info)),
        output_(output),
        kernels_(kernels),
        error_(error),
        verifies_(file.checksums &&
                  ((options & L3_VERIFY) || ((options & L3_VERIFY_UNLESS_STORED) && info_.profile != L3_PROFILE_RAW))),
        tiles_(file, false, scratch_.tile) {
    native_output_ = !needs_conversion(info_.channels, info_.bits, output.color, output.sample);
    uncached_ = native_output_ && output.bypass_cache && kernels.copy_rows_uncached;
    output_pixel_size_ = l3_output_channels(&info_, output.color) * l3_output_sample_size(&info_, output.sample);
  }

  // Non-temporal stores wait for no later store: without a fence, whoever learns that the pixels are there might not
  // see them.
  ~TileDecoder() {
#if defined(__x86_64__)
    if (uncached_) _mm_sfence();
#endif
  }
  TileDecoder(const TileDecoder &) = delete;
  TileDecoder &operator=(const TileDecoder &) = delete;

  // A region, and where its top left pixel lands.
  struct Target {
    l3_rect region;
    uint8_t *data;
  };

  // Decodes the part of a tile that lies in a region. `right_follows`: the next tile to be decoded is the one to the
  // right, for the same region.
  l3_status decode(uint32_t tile, const Target &target, bool right_follows) {
    const l3_rect rect = tile_rect(info_, tile);
    const TileEdges part = part_in_region(rect, target.region);
    const bool whole = part.width() == rect.width && part.height() == rect.height;
    if (whole && native_output_ && (!uncached_ || starts_at_lines(target)))
      return decode_to(tile, shape_of(rect), {place_of(rect, part, target), output_.row_stride},
                       uncached_ ? Stores::kUncached : Stores::kCached);
    if (l3_status status = decode_whole(tile)) return status;
    write_part(tile, target, right_follows);
    return L3_OK;
  }

  // Decodes a whole tile, for write_part() to take parts of.
  l3_status decode_whole(uint32_t tile) {
    const TileShape shape = shape_of(tile_rect(info_, tile));
    return decode_to(tile, shape, {scratch_.pixels, size_t(shape.width) * pixel_size(info_)}, Stores::kCached);
  }

  // Writes the part of the tile that decode_whole() has decoded last.
  void write_part(uint32_t tile, const Target &target, bool right_follows) {
    const l3_rect rect = tile_rect(info_, tile);
    const TileEdges part = part_in_region(rect, target.region);
    uint8_t *const out = place_of(rect, part, target);
    const size_t row_stride = size_t(rect.width) * pixel_size(info_);
    const uint8_t *pixels = scratch_.pixels + part.top * row_stride + size_t(part.left) * pixel_size(info_);
    const Rows rows{pixels, row_stride, part.width() * pixel_size(info_), part.height()};
    if (!native_output_) {
      l3_output converted = output_;
      converted.data = out;
      convert({pixels, row_stride, part.width(), part.height(), info_.channels, info_.bits}, converted);
    } else if (uncached_) {
      const bool to_right = right_follows && rows.size >= kCacheLine && !starts_at_lines(target);
      kernels_.copy_rows_uncached(rows, {out, output_.row_stride},
                                  to_right ? UnfinishedLine::kWaits : UnfinishedLine::kWritten, scratch_.partial_lines);
    } else {
      kernels_.copy_rows(rows, {out, output_.row_stride});
    }
  }

 private:
  // Whether every row of a tile starts at a cache line of the output.
  bool starts_at_lines(const Target &target) const {
    return (reinterpret_cast<uintptr_t>(target.data) | output_.row_stride) % kCacheLine == 0 &&
           target.region.x % L3_TILE == 0;
  }

  // Where the part of a tile that lies in a region lands.
  uint8_t *place_of(const l3_rect &rect, const TileEdges &part, const Target &target) const {
    return target.data + size_t(rect.y + part.top - target.region.y) * output_.row_stride +
           size_t(rect.x + part.left - target.region.x) * output_pixel_size_;
  }

  l3_status corrupt(uint32_t tile, const char *problem) {
    return fail_tile(info_, tile, L3_ERROR_CORRUPT, problem, error_);
  }

  // Kernels read past a tile's end. A tile too close to the end of the caller's bytes for that is decoded from a copy.
  // What follows there does not matter, and may be left of an earlier tile, but it must have been written. All tiles of
  // a small file are copied, so that clearing it for each would take long.
  void make_readable_past_end(TileBytes *source) {
    if (size_t(file_.data + file_.size - source->data) - source->size >= kMaxOverread) return;
    std::memcpy(scratch_.tile, source->data, source->size);
    copied_ = std::max(copied_, source->size);
    if (const uint32_t end = source->size + kMaxOverread; end > copied_) {
      std::memset(scratch_.tile + copied_, 0, end - copied_);
      copied_ = end;
    }
    source->data = scratch_.tile;
  }

  // Decodes a whole tile to its native pixels; uncached only to rows that start at cache lines. Its checksum is
  // verified afterwards, when its bytes are in the cache: decoding goes on while it waits for memory, summing does not.
  // A wrong checksum is the error then, whatever decoding found.
  l3_status decode_to(uint32_t tile, TileShape shape, Destination out, Stores stores) {
    const l3_status status = decode_unverified(tile, shape, out, stores);
    if (verifies_) {
      TileBytes verified;
      if (l3_status damage = find_tile(file_, tile, true, &verified, error_)) return damage;
    }
    return status;
  }

  l3_status decode_unverified(uint32_t tile, TileShape shape, Destination out, Stores stores) {
    TileBytes source;
    if (l3_status status = tiles_.read(tile, &source, error_)) return status;
    if (info_.profile == L3_PROFILE_RAW) {
      if (const char *problem = check_raw_tile(info_, shape, source.size)) return corrupt(tile, problem);
      const uint32_t row_size = shape.width * pixel_size(info_);
      copy_to({source.data, row_size, row_size, shape.height}, out, stores);
      return L3_OK;
    }
    make_readable_past_end(&source);
    const char *problem = info_.bits == 8 ? decode_planes(source, shape, out, stores, scratch_.planes_8)
                                          : decode_planes(source, shape, out, stores, scratch_.planes_16);
    return problem ? corrupt(tile, problem) : L3_OK;
  }

  void copy_to(const Rows &rows, Destination out, Stores stores) {
    if (stores == Stores::kUncached)
      kernels_.copy_rows_uncached(rows, out, UnfinishedLine::kWritten, scratch_.partial_lines);
    else
      kernels_.copy_rows(rows, out);
  }

  // Returns null, or what is wrong.
  template <typename Sample>
  const char *decode_planes(const TileBytes &source, TileShape shape, Destination out, Stores stores,
                            Planes<Sample> &planes) {
    const SampleKernels<Sample> &kernels = kernels_.of_samples<Sample>();
    Transform transform = {kTransformNone, 1};
    if (info_.profile == L3_PROFILE_PAPER) {
      if (const char *problem = decode_paper_tile(source.data, source.size, info_.channels, shape, &planes))
        return problem;
    } else {
      FastTile fast;
      if (const char *problem = parse_fast_tile(source.data, source.size, info_.channels, info_.bits, shape, &fast))
        return problem;
      const auto flat = [&](const FastChannel &channel) { return is_flat(channel, source.data, info_.bits); };
      const bool flat_tile = std::all_of(fast.channels, fast.channels + info_.channels, flat);
      for (uint32_t c = 0; c < info_.channels; c++) {
        const FastChannel &channel = fast.channels[c];
        Sample *const plane = planes.plane[c];
        if (flat(channel)) {
          if (channel.payload != channel.end) return kBodyNotConsumed;
          std::fill_n(plane, flat_tile ? uint32_t{L3_TILE} : kPlaneSize, Sample(channel.first));
        } else if (channel.predictor == kLabelMap) {
          if (const char *problem = kernels.decode_label_map(source.data, channel, shape, plane)) return problem;
        } else if (kernels.decode_channel(source.data, channel, shape, plane) != channel.end) {
          return kBodyNotConsumed;
        }
      }
      if (flat_tile) {
        repeat_first_row<Sample>({planes, info_.channels, fast.transform, shape}, out, stores);
        return nullptr;
      }
      transform = fast.transform;
    }
    kernels.store_tile({planes, info_.channels, transform, shape}, out, stores);
    return nullptr;
  }

  // Writes a tile whose rows are all like the first.
  template <typename Sample>
  void repeat_first_row(const DecodedTile<Sample> &tile, Destination out, Stores stores) {
    const uint32_t size = tile.shape.width * pixel_size(info_);
    alignas(kCacheLine) uint8_t row[kCacheLine + L3_TILE * L3_MAX_CHANNELS * sizeof(Sample) + kCacheLine];
    uint8_t *const pixels = row + kCacheLine;  // copy_rows_uncached reads around rows
    kernels_.of_samples<Sample>().store_tile({tile.planes, tile.channels, tile.transform, {tile.shape.width, 1}},
                                             {pixels, size}, Stores::kCached);
    copy_to({pixels, 0, size, tile.shape.height}, out, stores);
  }

  const l3_file &file_;
  const l3_info info_;
  const l3_output &output_;
  const Kernels &kernels_;
  l3_error *const error_;
  const bool verifies_;
  FileTiles tiles_;
  bool native_output_;  // no conversion
  bool uncached_;       // writes past the cache
  uint32_t output_pixel_size_;
  uint32_t copied_ = 0;  // bytes of scratch_.tile that have been written
  Scratch scratch_;
};

// Refuses entries of a list of tiles that are not of their region's.
l3_status check_region_tile(const l3_info &info, const l3_rect &region, uint32_t tile, l3_error *error) {
  const uint32_t x = tile % info.tiles_x, y = tile / info.tiles_x;
  const TileRange range = tiles_of(region);
  if (x - range.x >= range.columns || y - range.y >= range.rows)
    return fail(error, L3_ERROR_ARGUMENT, "tile %u, which its region does not touch", tile);
  return L3_OK;
}

// Whether the tile to the right of the first in a list is the next to be decoded, and like the first for that region
// alone.
bool right_follows(const l3_info &info, const l3_region_tile *first, const l3_region_tile *end) {
  const uint32_t right = first->tile + 1;
  return first + 1 < end && first[1].tile == right && right % info.tiles_x != 0 && first[1].region == first->region &&
         (first + 2 == end || first[2].tile != right);
}

l3_rect region_of(const l3_file &file, const l3_rect *roi) {
  return roi ? *roi : l3_rect{0, 0, file.info.width, file.info.height};
}

}  // namespace
}  // namespace l3

using namespace l3;

extern "C" uint32_t l3_output_channels(const l3_info *info, l3_color color) {
  return converted_channels(info->channels, color);
}

extern "C" uint32_t l3_output_sample_size(const l3_info *info, l3_sample sample) {
  return converted_sample_size(info->bits, sample);
}

extern "C" uint32_t l3_region_tile_count(const l3_file *file, const l3_rect *roi) {
  return tiles_of(region_of(*file, roi)).count();
}

extern "C" l3_status l3_decode_tiles(const l3_file *file, const l3_rect *roi, const l3_output *output, uint32_t options,
                                     uint32_t first, uint32_t count, l3_error *error) {
  const l3_rect region = region_of(*file, roi);
  if (l3_status status = check_region(file->info, region, error)) return status;
  if (l3_status status = check_output(file->info, region, *output, error)) return status;
  const TileRange tiles = tiles_of(region);
  if (first > tiles.count() || count > tiles.count() - first)
    return fail(error, L3_ERROR_ARGUMENT, "tiles %u to %u of %u", first, first + count, tiles.count());
  const Kernels *kernels = active_kernels(error);
  if (!kernels) return L3_ERROR_UNSUPPORTED;

  TileDecoder decoder(*file, *output, options, *kernels, error);
  const TileDecoder::Target target{region, static_cast<uint8_t *>(output->data)};
  for (uint32_t i = first; i < first + count; i++) {
    const uint32_t tile = (tiles.y + i / tiles.columns) * file->info.tiles_x + tiles.x + i % tiles.columns;
    const bool right_follows = i + 1 < first + count && (i + 1) % tiles.columns != 0;
    if (l3_status status = decoder.decode(tile, target, right_follows)) return status;
  }
  return L3_OK;
}

extern "C" l3_status l3_decode(const l3_file *file, const l3_rect *roi, const l3_output *output, uint32_t options,
                               l3_error *error) {
  const l3_rect region = region_of(*file, roi);
  if (l3_status status = check_region(file->info, region, error)) return status;
  return l3_decode_tiles(file, roi, output, options, 0, l3_region_tile_count(file, roi), error);
}

extern "C" size_t l3_list_region_tiles(const l3_file *file, const l3_rect *regions, size_t count,
                                       l3_region_tile *tiles) {
  size_t listed = 0;
  for (size_t i = 0; i < count; i++) {
    const TileRange range = tiles_of(regions[i]);
    if (!tiles) {
      listed += range.count();
      continue;
    }
    for (uint32_t y = range.y; y < range.y + range.rows; y++)
      for (uint32_t x = range.x; x < range.x + range.columns; x++)
        tiles[listed++] = {y * file->info.tiles_x + x, uint32_t(i)};
  }
  if (tiles && count > 1)
    std::sort(tiles, tiles + listed, [](const l3_region_tile &a, const l3_region_tile &b) {
      return a.tile != b.tile ? a.tile < b.tile : a.region < b.region;
    });
  return listed;
}

extern "C" l3_status l3_decode_region_tiles(const l3_file *file, const l3_rect *regions, const l3_output *output,
                                            size_t region_stride, uint32_t options, const l3_region_tile *tiles,
                                            size_t count, l3_error *error) {
  const Kernels *kernels = active_kernels(error);
  if (!kernels) return L3_ERROR_UNSUPPORTED;

  TileDecoder decoder(*file, *output, options, *kernels, error);
  const auto target = [&](size_t i) {
    const uint32_t region = tiles[i].region;
    return TileDecoder::Target{regions[region], static_cast<uint8_t *>(output->data) + region * region_stride};
  };
  for (size_t i = 0, next; i < count; i = next) {
    const uint32_t tile = tiles[i].tile;
    for (next = i; next < count && tiles[next].tile == tile; next++) {
      const l3_rect &region = regions[tiles[next].region];
      if (l3_status status = check_region(file->info, region, error)) return status;
      if (l3_status status = check_output(file->info, region, *output, error)) return status;
      if (l3_status status = check_region_tile(file->info, region, tile, error)) return status;
    }
    if (next == i + 1) {
      if (l3_status status = decoder.decode(tile, target(i), right_follows(file->info, tiles + i, tiles + count)))
        return status;
      continue;
    }
    if (l3_status status = decoder.decode_whole(tile)) return status;
    for (; i < next; i++) decoder.write_part(tile, target(i), false);
  }
  return L3_OK;
}
