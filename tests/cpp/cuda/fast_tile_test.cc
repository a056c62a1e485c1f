// The kernels for `fast` tiles, run in lock step on the CPU, against the CPU decoder.
#include <algorithm>

#include "checked_lanes.h"
#include "cpu/kernels.h"
#include "fast_tiles.h"
#include "format/bytes.h"
#include "images.h"
#include "lockstep_fast_tile.h"
#include "testing.h"

using namespace l3;

namespace {

// The kinds of kernels, by that for one channel.
constexpr TileKind kKernels[] = {TileKind::kFast8x1, TileKind::kFull8x1, TileKind::kFast16x1};

uint32_t bits_of(TileKind kernel) { return kernel == TileKind::kFast16x1 ? 16 : 8; }

void decode_tile(TileKind kernel, const Bytes &buffer, const BatchImage &image, const BatchTile &tile,
                 bool active = true) {
  decode_fast_tile<CheckedLanes>(of_channels(kernel, image.channels), buffer.data(), image, tile, active);
}

// Memory for a region's rows with canaries around it, starting at any address.
struct Target {
  static constexpr size_t kMargin = 64;
  static constexpr uint8_t kUntouched = 0xA5;
  size_t row_stride, offset;
  Bytes memory;

  Target(uint32_t rows, size_t stride, size_t misalignment)
      : row_stride(stride), memory(rows * stride + 3 * kMargin, kUntouched) {
    offset = kMargin + (-reinterpret_cast<uintptr_t>(memory.data())) % kMargin + misalignment;
  }
  uint8_t *pixels() { return memory.data() + offset; }
};

BatchImage describe(const l3_info &info, const l3_rect &region, Target &target) {
  BatchImage image{};
  image.out = target.pixels();
  image.row_stride = target.row_stride;
  image.width = info.width;
  image.height = info.height;
  image.region = region;
  image.channels = info.channels;
  image.bits = info.bits;
  image.color = L3_COLOR_NATIVE;
  image.sample = L3_SAMPLE_NATIVE;
  return image;
}

// The tile as a batch describes it, with the whole file for the buffer.
BatchTile describe(const l3_file &parsed, const Bytes &buffer, uint32_t x, uint32_t y) {
  const uint8_t *offsets = parsed.offsets + 4 * size_t(y * parsed.info.tiles_x + x);
  const uint32_t start = load<uint32_t>(offsets);
  BatchTile tile{};
  tile.bytes = uint32_t(parsed.payload - buffer.data()) + start;
  tile.size = load<uint32_t>(offsets + 4) - start;
  tile.x = uint16_t(x);
  tile.y = uint16_t(y);
  return tile;
}

bool has_label_map(const Bytes &buffer, const l3_info &info, const BatchTile &tile) {
  const TileShape shape = shape_of(tile_rect(info, tile.y * info.tiles_x + tile.x));
  FastTile parsed;
  CHECK(!parse_fast_tile(buffer.data() + tile.bytes, tile.size, info.channels, info.bits, shape, &parsed));
  return std::any_of(parsed.channels, parsed.channels + info.channels,
                     [](const FastChannel &c) { return c.predictor == kLabelMap; });
}

l3_rect random_region(Random &random, uint32_t width, uint32_t height) {
  if (random.below(2)) return {0, 0, width, height};
  const uint32_t x = random.below(width), y = random.below(height);
  return {x, y, random.between(1, width - x), random.between(1, height - y)};
}

// Compares the rows of a tile of one channel with the CPU's.
template <typename Sample, typename Kernels>
void check_rows(const Kernels &kernels, const Bytes &buffer, const FastTile &parsed, TileShape shape, Target &target) {
  Planes<Sample> planes;
  const FastChannel &channel = parsed.channels[0];
  CHECK_EQUAL(kernels.decode_channel(buffer.data(), channel, shape, planes.plane[0]), channel.end);
  for (uint32_t y = 0; y < shape.height; y++)
    for (uint32_t x = 0; x < shape.width; x++)
      CHECK_EQUAL(load<Sample>(target.pixels() + (y * shape.width + x) * sizeof(Sample)),
                  Sample(planes.plane[0][y * L3_TILE + x] * parsed.transform.factor));
}

}  // namespace

TEST(kernels_decode_what_the_cpu_decodes) {
  Random random(1);
  uint32_t tiles = 0, with_label_map = 0;
  for (uint32_t round = 0; round < 600; round++) {
    const TileKind kernel = kKernels[round % std::size(kKernels)];
    const uint32_t channels = random.between(1, 4), pixel_size = channels * bits_of(kernel) / 8;
    const bool whole_tiles = random.below(4) == 0;
    const uint32_t width = whole_tiles ? 64 * random.between(1, 3) : random.between(1, 200),
                   height = random.between(1, 150);
    const Image source =
        make_image(random, width, height, channels, bits_of(kernel), kKinds[random.below(std::size(kKinds))]);
    Bytes file = encode(source, encode_options(L3_PROFILE_FAST, random.between(1, 3)));
    file.resize(file.size() + kMaxOverread);  // as a batch is padded
    l3_file parsed;
    CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);

    const l3_rect region = random_region(random, width, height);
    const testing::Context context("kernel %u, %u x %u x %u, region %u x %u at (%u, %u)", uint32_t(kernel), width,
                                   height, channels, region.width, region.height, region.x, region.y);
    // Rows and start at multiples of 16, of 4, or anywhere: each has its own way of storing.
    const uint32_t alignment = std::max(1u << 2 * random.below(3), bits_of(kernel) / 8);
    const size_t stride = (region.width * pixel_size + random.below(40) + alignment - 1) / alignment * alignment;
    Target target(region.height, stride, random.below(16 / alignment) * alignment);
    const Bytes before = target.memory;
    const BatchImage image = describe(parsed.info, region, target);

    const Bytes expected = crop(source, region);
    for (uint32_t y = region.y / L3_TILE; y <= (region.y + region.height - 1) / L3_TILE; y++) {
      for (uint32_t x = region.x / L3_TILE; x <= (region.x + region.width - 1) / L3_TILE; x++) {
        const BatchTile tile = describe(parsed, file, x, y);
        if (has_label_map(file, parsed.info, tile)) {
          if (kernel == TileKind::kFast8x1) continue;  // another kernel's work
          with_label_map++;
        }
        decode_tile(kernel, file, image, tile);
        tiles++;
        // The part of the tile in the region, counted from the region's corner.
        const auto begins = [](uint32_t tile, uint32_t corner) { return std::max(tile * L3_TILE, corner) - corner; };
        const auto ends = [](uint32_t tile, uint32_t corner, uint32_t size) {
          return std::min((tile + 1) * L3_TILE - corner, size);
        };
        const size_t begin = size_t(begins(x, region.x)) * pixel_size,
                     size = size_t(ends(x, region.x, region.width)) * pixel_size - begin;
        for (uint32_t row = begins(y, region.y); row < ends(y, region.y, region.height); row++) {
          uint8_t *decoded = target.pixels() + row * stride + begin;
          CHECK(std::equal(decoded, decoded + size, expected.data() + row * region.width * pixel_size + begin));
          std::fill(decoded, decoded + size,
                    Target::kUntouched);  // so that in the end nothing is left but what must not be touched
        }
      }
    }
    CHECK(target.memory == before);
  }
  CHECK(tiles > 500);
  CHECK(with_label_map > 60);
}

TEST(kernels_without_a_tile_of_their_own_store_nothing) {
  Random random(2);
  for (const TileKind kernel : kKernels) {
    const uint32_t bits = bits_of(kernel);
    const Image source = make_image(random, 64, 64, 3, bits, Kind::kSlope);
    Bytes file = encode(source, encode_options(L3_PROFILE_FAST));
    file.resize(file.size() + kMaxOverread);
    l3_file parsed;
    CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
    Target target(64, 192 * bits / 8, 0);
    const Bytes before = target.memory;
    decode_tile(kernel, file, describe(parsed.info, {0, 0, 64, 64}, target), describe(parsed, file, 0, 0), false);
    CHECK(target.memory == before);
  }
}

// Bodies that no encoder writes: every predictor, index width and bitmap, in tiles of every shape; and bodies that are
// not consumed exactly, whose pixels may be any but which must not make the kernel leave its memory (the sanitized
// build sees to that).
TEST(kernels_decode_any_body_and_survive_any_other) {
  Random random(3);
  for (uint32_t round = 0; round < 4000; round++) {
    const TileKind kernel = kKernels[round % std::size(kKernels)];
    const uint32_t bits = bits_of(kernel);
    const ChannelChoice choice{bits,
                               random.below(kPredictors),
                               random.below(max_index_bits(bits) + 1),
                               random.below(2) == 1,
                               {random.between(1, 64), random.between(1, 64)}};
    const bool damaged = random.below(4) == 0;
    Bytes bytes = random_tile(random, choice);
    if (damaged) bytes = with_random_body(random, choice, bytes);
    const testing::Context context("kernel %u, predictor %u, %u index bits, bitmap %d, %u x %u, damaged %d",
                                   uint32_t(kernel), choice.predictor, choice.index_bits, choice.has_bitmap,
                                   choice.shape.width, choice.shape.height, damaged);
    FastTile parsed;
    CHECK(!parse_fast_tile(bytes.data(), uint32_t(bytes.size()), 1, bits, choice.shape, &parsed));

    Bytes buffer = random.bytes(bytes.size() + kMaxOverread);
    std::copy(bytes.begin(), bytes.end(), buffer.begin());
    const uint32_t width = choice.shape.width, height = choice.shape.height;
    Target target(height, width * bits / 8, 0);
    l3_info info{};
    info.width = width;
    info.height = height;
    info.channels = 1;
    info.bits = bits;
    BatchTile tile{};
    tile.size = uint32_t(bytes.size());
    decode_tile(kernel, buffer, describe(info, {0, 0, width, height}, target), tile);
    if (damaged) continue;
    if (bits == 8)
      check_rows<uint8_t>(kPortableKernels.of_8_bits, buffer, parsed, choice.shape, target);
    else
      check_rows<uint16_t>(kPortableKernels.of_16_bits, buffer, parsed, choice.shape, target);
  }
}
