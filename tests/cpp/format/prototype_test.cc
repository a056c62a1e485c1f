// Files of the published prototype with many patches, whose places follow only from the sizes of all before them.
#include <algorithm>

#include "format/bytes.h"
#include "format/planes.h"
#include "images.h"
#include "testing.h"

using namespace l3;

namespace {

constexpr uint32_t kTilesX = 19, kTilesY = 23, kTiles = kTilesX * kTilesY;

// A patch of one value: row 0 is the value, each later row the one above it. Fields of zeros, `width` bits each, give
// it its size.
void append_patch(uint8_t value, uint32_t width, Bytes *patches) {
  for (uint32_t y = 0; y < L3_TILE; y++) {
    const size_t row = patches->size();
    patches->resize(row + 8 * width + 2);
    store(patches->data() + row, uint16_t(width | (y == 0 ? value : 0) << 4));
  }
}

uint32_t patch_size(uint32_t width) { return L3_TILE * (8 * width + 2); }

struct File {
  Bytes bytes;
  Image image;
};

// Patches of all sizes and random values.
File make_file() {
  Random random(1);
  Bytes file(13);
  std::copy_n("LLL.", 4, file.begin());
  store(file.data() + 4, uint32_t{kTilesX * L3_TILE});
  store(file.data() + 8, uint32_t{kTilesY * L3_TILE});
  file[12] = L3_TILE;
  Bytes values = random.bytes(3 * kTiles), sizes(2 * 3 * kTiles), patches;
  for (uint32_t patch = 0; patch < 3 * kTiles; patch++) {
    const uint32_t width = random.below(9);
    store(sizes.data() + 2 * patch, uint16_t(patch_size(width)));
    append_patch(values[patch], width, &patches);
  }
  file.insert(file.end(), sizes.begin(), sizes.end());
  file.insert(file.end(), patches.begin(), patches.end());

  Image image{kTilesX * L3_TILE, kTilesY * L3_TILE, 3, 8};
  for (uint32_t y = 0; y < image.height; y++)
    for (uint32_t x = 0; x < image.width; x++)
      for (uint32_t c = 0; c < 3; c++) image.pixels.push_back(values[c * kTiles + y / L3_TILE * kTilesX + x / L3_TILE]);
  return {std::move(file), std::move(image)};
}

}  // namespace

TEST(whole_image) {
  const File file = make_file();
  const Decoded decoded = decode(file.bytes);
  CHECK_EQUAL(decoded.message, "");
  CHECK(decoded.pixels == file.image.pixels);
}

TEST(regions) {
  const File file = make_file();
  Random random(2);
  for (uint32_t i = 0; i < 50; i++) {
    const uint32_t x = random.below(file.image.width), y = random.below(file.image.height);
    const l3_rect region = {x, y, random.between(1, file.image.width - x), random.between(1, file.image.height - y)};
    const testing::Context context("%u x %u pixels at (%u, %u)", region.width, region.height, region.x, region.y);
    CHECK(decode(file.bytes, &region).pixels == crop(file.image, region));
  }
}

TEST(pieces) {
  const File file = make_file();
  l3_file parsed;
  CHECK_EQUAL(l3_open(file.bytes.data(), file.bytes.size(), &parsed, nullptr), L3_OK);
  for (const uint32_t piece : {1u, 7u, 64u, kTiles - 1}) {
    const testing::Context context("pieces of %u tiles", piece);
    Bytes pixels(file.image.pixels.size());
    l3_output output{};
    output.data = pixels.data();
    output.row_stride = file.image.row_size();
    for (uint32_t first = 0; first < kTiles; first += piece)
      CHECK_EQUAL(l3_decode_tiles(&parsed, nullptr, &output, 0, first, std::min(piece, kTiles - first), nullptr),
                  L3_OK);
    CHECK(pixels == file.image.pixels);
  }
}

TEST(a_broken_patch_is_named) {
  File file = make_file();
  const uint32_t broken = 2 * kTiles + 100;  // of blue
  uint8_t *const size = file.bytes.data() + 13 + 2 * broken;
  store(size, uint16_t(load<uint16_t>(size) - 1));
  file.bytes.push_back(0);
  const Decoded decoded = decode(file.bytes);
  CHECK_EQUAL(decoded.status, L3_ERROR_CORRUPT);
  CHECK(decoded.message.starts_with("patch 100 of channel 2: "));
}
