// The work of every CPU back end against the lock-step form and the portable one, kernel by kernel.
#include "cpu/kernels.h"

#include <algorithm>
#include <memory>

#include "backends.h"
#include "cpu/generic_label_map_encoder.h"
#include "fast_tiles.h"
#include "format/label_map.h"
#include "lockstep/host_lanes.h"
#include "lockstep_channel.h"
#include "lockstep_label_map.h"
#include "testing.h"

using namespace l3;

namespace {

template <typename Sample>
constexpr uint32_t kBits = 8 * sizeof(Sample);

template <typename Sample>
using DecodeChannel = decltype(SampleKernels<Sample>::decode_channel);

// A tile with as many bytes after it as kernels may read, and not one more.
Bytes with_overread(Random &random, const Bytes &tile) {
  Bytes bytes = random.bytes(tile.size() + kMaxOverread);
  std::copy(tile.begin(), tile.end(), bytes.begin());
  return bytes;
}

// A channel decoded into one plane of several, the others being there to be left alone.
template <typename Sample>
struct DecodedChannel {
  static constexpr Sample kUntouched = 0x5A;
  Planes<Sample> planes;
  uint32_t end;

  DecodedChannel(DecodeChannel<Sample> decode, const Bytes &bytes, const FastChannel &channel, TileShape shape) {
    for (auto &plane : planes.plane) std::fill(std::begin(plane), std::end(plane), kUntouched);
    end = decode(bytes.data(), channel, shape, planes.plane[1]);
    for (uint32_t n : {0, 2, 3})
      CHECK(std::all_of(std::begin(planes.plane[n]), std::end(planes.plane[n]),
                        [](Sample sample) { return sample == kUntouched; }));
  }
};

template <typename Sample>
void check_same_pixels(const Planes<Sample> &actual, const Planes<Sample> &expected, TileShape shape) {
  for (uint32_t y = 0; y < shape.height; y++)
    for (uint32_t x = 0; x < shape.width; x++)
      if (actual.plane[1][y * L3_TILE + x] != expected.plane[1][y * L3_TILE + x])
        testing::fail(__FILE__, __LINE__,
                      "the samples at (" + std::to_string(x) + ", " + std::to_string(y) + ") differ");
}

// All back ends must agree with the lock-step form about where a tile ends, and about its pixels if that is where it
// should end.
template <typename Sample>
void check_decoding(Random &random, const ChannelChoice &choice, const Bytes &tile, bool valid) {
  FastTile parsed;
  const char *problem = parse_fast_tile(tile.data(), uint32_t(tile.size()), 1, kBits<Sample>, choice.shape, &parsed);
  CHECK_EQUAL(std::string(problem ? problem : ""), "");
  const FastChannel &channel = parsed.channels[0];
  const Bytes bytes = with_overread(random, tile);
  const DecodedChannel<Sample> expected(lockstep::decode_channel<HostLanes, Sample>, bytes, channel, choice.shape);
  if (valid) CHECK_EQUAL(expected.end, channel.end);
  for (const Kernels *kernels : runnable_backends()) {
    const testing::Context context("%s", kernels->name);
    const DecodedChannel<Sample> actual(kernels->of_samples<Sample>().decode_channel, bytes, channel, choice.shape);
    CHECK_EQUAL(actual.end, expected.end);
    if (actual.end == channel.end) check_same_pixels(actual.planes, expected.planes, choice.shape);
  }
}

// Every width and every height of a tile once, paired at random.
std::vector<TileShape> tile_shapes(Random &random) {
  std::vector<TileShape> shapes;
  const uint32_t shift = random();
  for (uint32_t size = 0; size < L3_TILE; size++) shapes.push_back({size + 1, (37 * size + shift) % L3_TILE + 1});
  return shapes;
}

template <typename Sample>
void check_channels() {
  Random random(kBits<Sample>);
  for (uint32_t predictor = 0; predictor < kPredictors; predictor++)
    for (uint32_t index_bits = 0; index_bits <= max_index_bits(kBits<Sample>); index_bits++)
      for (const bool has_bitmap : {false, true})
        for (const TileShape shape : tile_shapes(random)) {
          const ChannelChoice choice{kBits<Sample>, predictor, index_bits, has_bitmap, shape};
          const testing::Context context("predictor %u, %u index bits, bitmap %d, %u x %u", predictor, index_bits,
                                         has_bitmap, shape.width, shape.height);
          const Bytes tile = random_tile(random, choice);
          check_decoding<Sample>(random, choice, tile, true);
          check_decoding<Sample>(random, choice, with_random_body(random, choice, tile), false);
        }
}

// All index words or octets ask for the most: the farthest that a forged body can make a kernel read.
template <typename Sample>
void check_greediest_body() {
  Random random(0);
  for (uint32_t index_bits = 0; index_bits <= max_index_bits(kBits<Sample>); index_bits++) {
    const ChannelChoice choice{kBits<Sample>, kPlane, index_bits, false, {L3_TILE, L3_TILE}};
    const testing::Context context("%u index bits", index_bits);
    const uint32_t heads = 1 + channel_head_size(kBits<Sample>), palette = palette_size(index_bits, kBits<Sample>);
    const uint32_t body_size = palette + choice.shape.units() * index_bits;
    Bytes tile(heads + body_size, 0xFF);
    std::fill_n(tile.begin(), heads, 0);
    tile[1] = uint8_t(kPlane | index_bits << 3);
    store(tile.data() + heads - 2, uint16_t(body_size));
    std::fill_n(tile.begin() + heads, palette, kBits<Sample> == 16 ? 31 : index_bits ? 0xFF : 15);
    check_decoding<Sample>(random, choice, tile, false);
  }
}

// ---- Label maps

// A channel with up to `labels` values. Of `repeated` in eight samples, each has the value above it.
template <typename Sample>
std::vector<Sample> labelled_plane(Random &random, TileShape shape, uint32_t labels, uint32_t repeated) {
  std::vector<Sample> values(labels), plane(kPlaneSize);
  for (Sample &value : values) value = Sample(random());
  for (uint32_t y = 0; y < shape.height; y++)
    for (uint32_t x = 0; x < shape.width; x++)
      plane[y * L3_TILE + x] =
          y && random.below(8) < repeated ? plane[(y - 1) * L3_TILE + x] : values[random.below(labels)];
  return plane;
}

// A plane as the encoder holds it.
template <typename Sample>
generic::QuarteredPlane<Sample> quartered(const std::vector<Sample> &plane, TileShape shape) {
  generic::QuarteredPlane<Sample> quartered;
  for (uint32_t y = 0; y < shape.height; y++) {
    Sample *const rows[] = {quartered.row(y)};
    generic::load_narrow_row(reinterpret_cast<const uint8_t *>(&plane[y * L3_TILE]), shape.width, rows);
  }
  return quartered;
}

// All back ends must refuse a body that parse_label_map refuses, and else agree with the lock-step form about pixels.
template <typename Sample>
void check_label_map(Random &random, const Bytes &body, const FastChannel &channel, TileShape shape) {
  LabelMap map;
  const char *problem = parse_label_map<Sample>(body.data(), channel, shape, &map);
  const std::string expected_problem = problem ? problem : "";
  const Bytes bytes = with_overread(random, body);
  const auto expected = std::make_unique<Planes<Sample>>(), actual = std::make_unique<Planes<Sample>>();
  if (!problem) lockstep::decode_label_map<HostLanes>(bytes.data(), channel, shape, expected->plane[1]);
  for (const Kernels *kernels : runnable_backends()) {
    const testing::Context context("%s", kernels->name);
    problem = kernels->of_samples<Sample>().decode_label_map(bytes.data(), channel, shape, actual->plane[1]);
    CHECK_EQUAL(std::string(problem ? problem : ""), expected_problem);
    if (!problem) check_same_pixels(*actual, *expected, shape);
  }
}

template <typename Sample>
void check_label_maps() {
  Random random(7);
  for (const uint32_t labels : {1u, 2u, 3u, 4u, 5u, 17u, 32u, 33u, 64u, 65u, 128u, 129u, 255u, 256u})
    for (const TileShape shape : tile_shapes(random)) {
      const uint32_t repeated = random.below(9);
      const testing::Context context("%u labels, %u in 8 repeated, %u x %u", labels, repeated, shape.width,
                                     shape.height);
      const auto plane = labelled_plane<Sample>(random, shape, labels, repeated);
      Bytes body(sizeof(Planes<Sample>));
      FastChannel channel{};
      channel.first = plane[0];
      channel.end = generic::encode_label_map(quartered(plane, shape), shape, body.data(), uint32_t(body.size()));
      body.resize(channel.end);
      CHECK(channel.end != 0);

      const auto decoded = std::make_unique<Planes<Sample>>(), original = std::make_unique<Planes<Sample>>();
      std::copy(plane.begin(), plane.end(), original->plane[1]);
      const Bytes bytes = with_overread(random, body);
      CHECK(!kPortableKernels.of_samples<Sample>().decode_label_map(bytes.data(), channel, shape, decoded->plane[1]));
      check_same_pixels(*decoded, *original, shape);
      check_label_map<Sample>(random, body, channel, shape);
      for (uint32_t i = 0; i < 8; i++) {
        Bytes damaged = body;
        damaged[random.below(uint32_t(body.size()))] = uint8_t(random());
        check_label_map<Sample>(random, damaged, channel, shape);
      }
      channel.end -= random.below(std::min(channel.end, 20u));
      check_label_map<Sample>(random, Bytes(body.begin(), body.begin() + channel.end), channel, shape);
    }
}

// Which ranks lead to a label of the table does not depend on the label above, against what the format says of each.
template <typename Sample>
void check_ranks() {
  Random random(8);
  for (const uint32_t labels : {1u, 2u, 3u, 4u, 6u, 9u, 255u, 256u})
    for (uint32_t above = 0; above < labels; above += labels < 16 ? 1 : 51)
      for (uint32_t rank = 0; rank < 1u << rank_bits(labels); rank++) {
        const testing::Context context("%u labels, rank %u, %u above", labels, rank, above);
        // One pixel, marked: the labels, then the masks of a unit, a group and a pixel, then the rank.
        Bytes body{uint8_t(labels - 1)};
        const auto value = [](uint32_t place) { return Sample(sizeof(Sample) == 1 ? place : 255 * place + 3); };
        for (uint32_t place = 0; place < labels; place++)
          for (uint32_t byte = 0; byte < sizeof(Sample); byte++) body.push_back(uint8_t(value(place) >> 8 * byte));
        for (uint32_t i = 0; i < 3; i++) body.push_back(1);
        if (rank_bits(labels)) body.push_back(uint8_t(rank));
        FastChannel channel{};
        channel.first = value(above);
        channel.end = uint32_t(body.size());
        const uint32_t place = rank < above ? rank : rank + 1;
        const Bytes bytes = with_overread(random, body);
        for (const Kernels *kernels : runnable_backends()) {
          const testing::Context backend("%s", kernels->name);
          const auto planes = std::make_unique<Planes<Sample>>();
          const char *problem =
              kernels->of_samples<Sample>().decode_label_map(bytes.data(), channel, {1, 1}, planes->plane[0]);
          CHECK_EQUAL(std::string(problem ? problem : ""), place < labels ? "" : "a label beyond the table");
          CHECK(problem || planes->plane[0][0] == value(place));
        }
      }
}

// ---- Pixels

template <typename Sample>
Planes<Sample> random_planes(Random &random) {
  Planes<Sample> planes;
  for (auto &plane : planes.plane)
    for (Sample &sample : plane) sample = Sample(random());
  return planes;
}

// docs/format.md, "Colour transform", read backwards.
template <typename Sample>
Sample unscaled_sample_of(const Planes<Sample> &planes, uint32_t channels, uint32_t transform, uint32_t channel,
                          uint32_t at) {
  constexpr uint32_t middle = 1u << (kBits<Sample> - 1);
  const Sample stored = planes.plane[channel_of_plane(channel, channels)][at];
  if (transform == kTransformNone || channel == 1 || channel == 3) return stored;
  const Sample green = planes.plane[0][at], red = Sample(planes.plane[1][at] + green - middle);
  if (channel == 0) return red;
  return Sample(stored + (transform == kSubtractGreen ? green : (uint32_t(red) + green) / 2) - middle);
}

template <typename Sample>
Sample sample_of(const Planes<Sample> &planes, uint32_t channels, Transform transform, uint32_t channel, uint32_t at) {
  return Sample(unscaled_sample_of(planes, channels, transform.color, channel, at) * transform.factor);
}

// Where a block of rows goes: `start` bytes after the beginning of a cache line, rows `stride` bytes apart.
struct Placement {
  uint32_t start, stride;
  bool at_lines() const { return start % kCacheLine == 0 && stride % kCacheLine == 0; }
};

std::vector<Placement> placements(Random &random, uint32_t row_size) {
  const uint32_t lines = (row_size + kCacheLine - 1) / kCacheLine * kCacheLine;
  return {{0, lines},
          {0, lines + kCacheLine},
          {32, lines},
          {random.below(kCacheLine), row_size},
          {random.below(kCacheLine), lines + random.below(100)}};
}

// Calls write(out) for a block in a buffer and compares the whole buffer, so that a write beside the block is seen.
template <typename Write>
void check_writing(const Placement &placement, const Bytes &block, uint32_t row_size, Write write) {
  const testing::Context context("start %u, stride %u", placement.start, placement.stride);
  constexpr uint32_t margin = 128;
  const uint32_t rows = uint32_t(block.size()) / row_size;
  const size_t before = margin + placement.start,
               size = before + size_t(rows - 1) * placement.stride + row_size + margin;
  Bytes memory(size + 64), expected(size, 0xA5);
  uint8_t *const buffer = memory.data() + (-uintptr_t(memory.data()) & 63);  // starts a cache line
  std::fill_n(buffer, size, 0xA5);
  for (uint32_t y = 0; y < rows; y++)
    std::copy_n(block.begin() + y * row_size, row_size,
                expected.begin() + ptrdiff_t(before + size_t(y) * placement.stride));
  write(buffer + before);
  CHECK(std::equal(expected.begin(), expected.end(), buffer));
}

template <typename Sample>
void check_store_tile() {
  Random random(3);
  const auto planes = std::make_unique<Planes<Sample>>(random_planes<Sample>(random));
  for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++)
    for (uint32_t color = 0; color < (channels < 3 ? 1u : uint32_t(kTransforms)); color++)
      for (uint32_t width = 1; width <= L3_TILE; width++) {
        const TileShape shape{width, width % 8 == 0 ? random.between(1, L3_TILE) : random.between(1, 5)};
        const Transform transform = {color,
                                     kBits<Sample> == 16 && random.below(2) ? scale_factor(random.below(16)) : 1};
        const uint32_t row_size = width * channels * sizeof(Sample);
        Bytes block(row_size * shape.height);
        for (uint32_t i = 0; i < shape.pixels() * channels; i++) {
          const uint32_t at = i / channels / width * L3_TILE + i / channels % width;
          store(block.data() + i * sizeof(Sample), sample_of(*planes, channels, transform, i % channels, at));
        }
        for (const Kernels *kernels : runnable_backends()) {
          const testing::Context context("%s, %u channels, transform %u, factor %u, %u x %u", kernels->name, channels,
                                         color, transform.factor, width, shape.height);
          for (const Placement &placement : placements(random, row_size))
            for (const Stores stores : {Stores::kCached, Stores::kUncached})
              if (stores == Stores::kCached || placement.at_lines())
                check_writing(placement, block, row_size, [&](uint8_t *out) {
                  kernels->of_samples<Sample>().store_tile({*planes, channels, transform, shape},
                                                           {out, placement.stride}, stores);
                });
        }
      }
}

// ---- Encoding

// A copy of the pixels with `gap` bytes before each row, whose samples it may misalign. Ends with the last row.
Bytes with_gaps(Random &random, const Image &image, uint32_t gap) {
  Bytes spread;
  for (uint32_t y = 0; y < image.height; y++) {
    const auto row = image.pixels.begin() + ptrdiff_t(y * image.row_size());
    const Bytes filler = random.bytes(gap);
    spread.insert(spread.end(), filler.begin(), filler.end());
    spread.insert(spread.end(), row, row + ptrdiff_t(image.row_size()));
  }
  return Bytes(spread.begin(), spread.end());
}

template <typename Sample>
void check_encode_tile() {
  Random random(4);
  for (const Kind kind : kKinds)
    for (uint32_t effort = 1; effort <= 3; effort++)
      for (uint32_t i = 0; i < 24; i++) {
        const TileShape shape{i % 3 ? random.between(1, 64) : 64, i % 4 ? random.between(1, 64) : 64};
        const uint32_t channels = 1 + i % L3_MAX_CHANNELS;
        const testing::Context context("kind %d, effort %u, %u channels, %u x %u", int(kind), effort, channels,
                                       shape.width, shape.height);
        const Image image = make_image(random, shape.width, shape.height, channels, kBits<Sample>, kind);
        const uint32_t gap = random.below(4);
        const Bytes pixels = with_gaps(random, image, gap);
        const auto encode_with = [&](const Kernels &kernels) {
          Bytes tile(sizeof(Planes<Sample>) + 4096);
          const TilePixels source{pixels.data() + gap, image.row_size() + gap, channels, shape};
          tile.resize(kernels.of_samples<Sample>().encode_tile(source, effort, tile.data()));
          return tile;
        };
        const Bytes expected = encode_with(kPortableKernels);
        for (const Kernels *kernels : runnable_backends()) {
          const testing::Context backend("%s", kernels->name);
          CHECK(encode_with(*kernels) == expected);
        }
      }
}

}  // namespace

TEST(channels_of_8_bits) { check_channels<uint8_t>(); }
TEST(channels_of_16_bits) { check_channels<uint16_t>(); }
TEST(greediest_body_of_8_bits) { check_greediest_body<uint8_t>(); }
TEST(greediest_body_of_16_bits) { check_greediest_body<uint16_t>(); }
TEST(label_maps_of_8_bits) { check_label_maps<uint8_t>(); }
TEST(label_maps_of_16_bits) { check_label_maps<uint16_t>(); }
TEST(ranks_of_8_bits) { check_ranks<uint8_t>(); }
TEST(ranks_of_16_bits) { check_ranks<uint16_t>(); }
TEST(store_tile_of_8_bits) { check_store_tile<uint8_t>(); }
TEST(store_tile_of_16_bits) { check_store_tile<uint16_t>(); }
TEST(encoders_write_the_same_8_bits) { check_encode_tile<uint8_t>(); }
TEST(encoders_write_the_same_16_bits) { check_encode_tile<uint16_t>(); }

TEST(copy_rows) {
  Random random(5);
  for (uint32_t row_size = 1; row_size <= 512; row_size += row_size < 200 ? 1 : 13) {
    const uint32_t rows = random.between(1, 9), in_stride = row_size + random.below(40);
    const Bytes in = random.bytes(size_t(rows - 1) * in_stride + row_size);
    Bytes block;
    for (uint32_t y = 0; y < rows; y++)
      block.insert(block.end(), in.begin() + y * in_stride, in.begin() + y * in_stride + row_size);
    for (const Kernels *kernels : runnable_backends()) {
      const testing::Context context("%s, %u rows of %u bytes", kernels->name, rows, row_size);
      for (const Placement &placement : placements(random, row_size))
        check_writing(placement, block, row_size, [&](uint8_t *out) {
          kernels->copy_rows({in.data(), in_stride, row_size, rows}, {out, placement.stride});
        });
    }
  }
}

// Rows in pieces from left to right, each from a buffer that begins and ends a cache line beyond it.
TEST(copy_rows_uncached) {
  Random random(6);
  for (uint32_t i = 0; i < 3000; i++) {
    const uint32_t rows = random.between(1, i % 8 ? 5 : L3_TILE);
    std::vector<uint32_t> piece_sizes(random.between(1, 4));
    uint32_t row_size = 0;
    for (uint32_t &size : piece_sizes)
      row_size += size = random.below(3) ? random.between(1, 600) : random.between(1, 8) * kCacheLine;
    const Bytes block = random.bytes(row_size * rows);
    std::vector<Bytes> pieces;
    for (uint32_t left = 0, n = 0; n < piece_sizes.size(); left += piece_sizes[n++]) {
      Bytes piece(kCacheLine, 0xEE);
      for (uint32_t y = 0; y < rows; y++)
        piece.insert(piece.end(), block.begin() + y * row_size + left,
                     block.begin() + y * row_size + left + piece_sizes[n]);
      piece.insert(piece.end(), kCacheLine, 0xEE);
      pieces.push_back(Bytes(piece.begin(), piece.end()));
    }
    for (const Kernels *kernels : runnable_backends()) {
      if (!kernels->copy_rows_uncached) continue;
      const testing::Context context("%s, %u rows of %zu pieces, %u bytes, the first %u", kernels->name, rows,
                                     pieces.size(), row_size, piece_sizes[0]);
      for (const Placement &placement : placements(random, row_size))
        check_writing(placement, block, row_size, [&](uint8_t *out) {
          PartialLines partial_lines;
          for (size_t n = 0; n < pieces.size(); out += piece_sizes[n++]) {
            const bool to_right = n + 1 < pieces.size() && piece_sizes[n] >= kCacheLine && i % 5;
            kernels->copy_rows_uncached({pieces[n].data() + kCacheLine, piece_sizes[n], piece_sizes[n], rows},
                                        {out, placement.stride},
                                        to_right ? UnfinishedLine::kWaits : UnfinishedLine::kWritten, partial_lines);
          }
        });
    }
  }
}
