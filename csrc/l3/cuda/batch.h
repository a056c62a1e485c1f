// What a batch looks like to the kernels, and how the host lays it out. Plain C++: needs no CUDA, and is tested
// without.
//
// A batch is one buffer, gathered in pinned memory and copied to the device at once:
//   BatchImage[images], BatchTile[tiles], uint32_t order[tiles], the tiles' bytes (from a multiple of 16 on),
//   kMaxOverread bytes of slack.
// Tiles stand image by image, row by row. `order` lists their numbers by kind, so that each kernel finds its tiles side
// by side.
#pragma once

#include <vector>

#include "l3/l3_cuda.h"

namespace l3 {

// Which kernel decodes a tile: stored tiles that are not converted; `fast` tiles of images of one to four channels, of
// 8 bits without label maps and conversion, of 8 bits with either, of 16 bits; and all others, by the bits of a sample.
enum class TileKind : uint32_t {
  kStored,
  kFast8x1,
  kFast8x2,
  kFast8x3,
  kFast8x4,
  kFull8x1,
  kFull8x2,
  kFull8x3,
  kFull8x4,
  kFast16x1,
  kFast16x2,
  kFast16x3,
  kFast16x4,
  kGeneral8,
  kGeneral16
};
constexpr uint32_t kTileKinds = 15;
constexpr TileKind kLeftOut = TileKind(kTileKinds);  // of broken images

// The kind for `channels` channels of the kinds that begin with that for one.
constexpr TileKind of_channels(TileKind one, uint32_t channels) { return TileKind(uint32_t(one) + channels - 1); }

// The reverse; 0 for other kinds.
constexpr uint32_t channels_of(TileKind kind, TileKind one) {
  const uint32_t others = uint32_t(kind) - uint32_t(one);
  return others < L3_MAX_CHANNELS ? others + 1 : 0;
}

// An image as kernels see it.
struct BatchImage {
  uint8_t *out;            // device memory: the region's top left pixel
  uint64_t row_stride;     // bytes
  uint32_t width, height;  // of the image, pixels
  l3_rect region;
  uint32_t channels, bits, profile;
  uint32_t color, sample;      // l3_color, l3_sample; native where no conversion is needed
  uint32_t output_pixel_size;  // bytes

  constexpr bool converts() const { return color != L3_COLOR_NATIVE || sample != L3_SAMPLE_NATIVE; }
};
static_assert(sizeof(BatchImage) == 64);

struct BatchTile {
  uint32_t bytes;  // position in the buffer, a multiple of 4
  uint32_t size;   // bytes
  uint32_t image;
  uint16_t x, y;  // in tiles
};
static_assert(sizeof(BatchTile) == 16);

// Positions in the buffer, bytes.
struct BatchLayout {
  uint32_t images, tiles, order, tile_bytes, end;  // end includes the slack
  uint32_t tile_count;
  uint32_t kind_begin[kTileKinds + 1];  // in `order`: where each kind's tiles start; set by finish()
};

// Lays out one batch after the other; its memory is reused.
class BatchPlan {
 public:
  // Computes the layout. `images` must stay as they are until all are gathered. Fails where a region is not inside its
  // image, an output is unusable, or the buffer would exceed 4 GiB; *failed is the image then, else `count`.
  l3_status plan(const l3_cuda_image *images, size_t count, size_t *failed, l3_error *error);

  // Copies the tiles' bytes of image `i` to `buffer` (of layout().end bytes, aligned to a BatchImage), and writes its
  // descriptors. Refuses every tile that l3_decode would, with the same error, so that kernels need not, and leaves
  // the whole image out then. Calls for different images may run concurrently.
  l3_status gather(size_t i, bool verify, uint8_t *buffer, l3_error *error);

  // After all images are gathered: sorts the tiles of those that are not left out by kind into `order`.
  void finish(uint8_t *buffer);

  const BatchLayout &layout() const { return layout_; }

 private:
  l3_status gather_tiles(size_t i, bool verify, uint8_t *buffer, l3_error *error);

  struct ImagePlace {
    uint32_t first_tile, tiles;  // in the batch
    uint32_t bytes;              // position, from layout_.tile_bytes
  };
  const l3_cuda_image *images_ = nullptr;
  std::vector<ImagePlace> places_;
  std::vector<TileKind> kinds_;  // of each tile
  BatchLayout layout_{};
};

}  // namespace l3
