// Whatever can be wanted of a tile, from the kernels for all tiles of their depth in lock step on the CPU, against the
// CPU decoder.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "checked_lanes.h"
#include "cuda/general_tile.h"
#include "images.h"
#include "lockstep_fast_tile.h"
#include "testing.h"

using namespace l3;

namespace {

// Lanes that fail the test where one reads or writes beyond its bounds, sanitizer or not.
struct BoundedLanes : CheckedLanes {
  static inline const uint8_t *tile;  // its bytes
  static inline size_t readable;      // bytes of the tile and its slack

  static Number load_16(const uint8_t *bytes, const Number &position) {
    check_bounds(bytes, position, 2);
    return HostLanes::load_16(bytes, position);
  }
  template <uint32_t count>
  static void load_words(const uint8_t *bytes, const Number &position, Number (&words)[count]) {
    check_bounds(bytes, position, 4 * count);
    CheckedLanes::load_words(bytes, position, words);
  }
  template <uint32_t count>
  static void load_words_of_bit(const uint8_t *bytes, const Number &bit, Number (&words)[count]) {
    load_words(bytes, bit >> 5 << 2, words);
  }
  template <typename Sample>
  static void store(Sample *plane, const Number &position, const Number &value, const Number &condition = 1) {
    for (uint32_t i = 0; i < kCount; i++) CHECK(!condition.lane[i] || position.lane[i] < kPlaneSize);
    HostLanes::store(plane, position, value, condition);
  }

 private:
  static void check_bounds(const uint8_t *bytes, const Number &position, size_t size) {
    if (bytes != tile) return;
    for (const uint32_t at : position.lane) CHECK(at + size <= readable);
  }
};
static_assert(WordLanes<BoundedLanes>);

struct Request {
  l3_rect region;
  l3_color color = L3_COLOR_NATIVE;
  l3_sample sample = L3_SAMPLE_NATIVE;
};

// Rows with gaps between them, so that a write beside a row is seen.
struct Rows {
  size_t stride;
  Bytes memory;

  Rows(const l3_info &info, const Request &request) {
    const uint32_t sample_size = l3_output_sample_size(&info, request.sample);
    stride = size_t(request.region.width) * l3_output_channels(&info, request.color) * sample_size + 3 * sample_size;
    memory.assign(stride * request.region.height, 0xA5);
  }
};

Rows expected_rows(const l3_file &parsed, const Request &request, l3_status *status) {
  Rows rows(parsed.info, request);
  l3_output output{};
  output.data = rows.memory.data();
  output.row_stride = rows.stride;
  output.color = request.color;
  output.sample = request.sample;
  *status = l3_decode(&parsed, &request.region, &output, 0, nullptr);
  return rows;
}

BatchImage describe(const l3_info &info, const Request &request, Rows &rows) {
  BatchImage image{};
  image.out = rows.memory.data();
  image.row_stride = rows.stride;
  image.width = info.width;
  image.height = info.height;
  image.region = request.region;
  image.channels = info.channels;
  image.bits = info.bits;
  image.profile = info.profile;
  image.color = request.color;
  image.sample = request.sample;
  image.output_pixel_size = l3_output_channels(&info, request.color) * l3_output_sample_size(&info, request.sample);
  return image;
}

// A block of the general kernel: its threads and teams one after the other. Shared memory holds what an earlier block
// may have left there.
template <typename Sample>
void run_block(const TilePart &tile, Random &random) {
  std::vector<Sample> planes(tile.image.channels * kPlaneSize);
  for (Sample &sample : planes) sample = Sample(random());
  for (uint32_t team = 0; team < general::kTeams; team++)
    general::decode_channel<BoundedLanes>(tile, team, planes.data());
  for (uint32_t thread = 0; thread < general::kThreads; thread++) general::write_part(tile, planes.data(), thread);
}

// Decodes the tile that stands in `buffer`, unless the host would see from its heads alone that it is broken.
void decode_tile(const Bytes &buffer, const BatchImage &image, const BatchTile &tile, Random &random) {
  BoundedLanes::tile = buffer.data();
  BoundedLanes::readable = buffer.size();
  const TilePart part(buffer.data(), image, tile);
  if (image.profile == L3_PROFILE_FAST) {
    FastTile parsed;
    if (parse_fast_tile(buffer.data(), tile.size, image.channels, image.bits, part.shape, &parsed)) return;
    const TileKind one = image.bits == 8 ? TileKind::kFull8x1 : TileKind::kFast16x1;
    decode_fast_tile<BoundedLanes>(of_channels(one, image.channels), buffer.data(), image, tile);
  } else if (image.bits == 8) {
    run_block<uint8_t>(part, random);
  } else {
    run_block<uint16_t>(part, random);
  }
}

Rows lockstep_rows(const l3_file &parsed, const Request &request, Random &random) {
  const l3_info &info = parsed.info;
  Rows rows(info, request);
  const BatchImage image = describe(info, request, rows);
  const l3_rect &region = request.region;
  for (uint32_t y = region.y / L3_TILE; y <= (region.y + region.height - 1) / L3_TILE; y++)
    for (uint32_t x = region.x / L3_TILE; x <= (region.x + region.width - 1) / L3_TILE; x++) {
      const uint8_t *offsets = parsed.offsets + 4 * size_t(y * info.tiles_x + x);
      const uint32_t start = load<uint32_t>(offsets), size = load<uint32_t>(offsets + 4) - start;
      // Just as many bytes after the tile as may be read; none after stored pixels.
      Bytes buffer = random.bytes(size + (info.profile == L3_PROFILE_RAW ? 0 : kMaxOverread));
      std::copy_n(parsed.payload + start, size, buffer.begin());
      decode_tile(buffer, image, BatchTile{0, size, 0, uint16_t(x), uint16_t(y)}, random);
    }
  return rows;
}

// The file must decode to the same bytes in both ways. If the CPU refuses it, lanes must at least stay within their
// bounds.
bool check_same(const Bytes &file, const Request &request, Random &random) {
  l3_file parsed;
  CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
  l3_status status;
  const Rows expected = expected_rows(parsed, request, &status);
  const Rows actual = lockstep_rows(parsed, request, random);
  if (status == L3_OK) CHECK(actual.memory == expected.memory);
  return status == L3_OK;
}

l3_rect random_region(Random &random, uint32_t width, uint32_t height) {
  const uint32_t x = random.below(width), y = random.below(height);
  return {x, y, random.between(1, width - x), random.between(1, height - y)};
}

constexpr l3_profile kProfiles[] = {L3_PROFILE_RAW, L3_PROFILE_PAPER, L3_PROFILE_FAST};

// The bytes of a file's only tile.
struct TileBytes {
  uint8_t *data;
  uint32_t size;

  explicit TileBytes(Bytes &file) {
    l3_file parsed;
    CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
    CHECK_EQUAL(parsed.info.tiles_x * parsed.info.tiles_y, 1u);
    data = file.data() + (parsed.payload - file.data());
    size = parsed.info.payload_size;
  }
};

}  // namespace

TEST(golden_files) {
  Random random(1);
  uint32_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(L3_TEST_DATA "/golden")) {
    const testing::Context context("%s", entry.path().filename().c_str());
    std::ifstream in(entry.path(), std::ios::binary);
    const Bytes file{std::istreambuf_iterator<char>(in), {}};
    l3_file parsed;
    CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
    if (parsed.info.prototype) continue;  // decoded by the host
    CHECK(check_same(file, {{0, 0, parsed.info.width, parsed.info.height}}, random));
    CHECK(check_same(file, {random_region(random, parsed.info.width, parsed.info.height)}, random));
    files++;
  }
  CHECK(files >= 50);
}

TEST(tile_shapes) {
  Random random(2);
  for (const l3_profile profile : kProfiles)
    for (const uint32_t bits : {8, 16})
      for (uint32_t size = 1; size <= L3_TILE; size++) {
        const uint32_t width = size, height = (size * 37 + random()) % L3_TILE + 1;
        for (const Kind kind : {Kind::kNoise, Kind::kSlope, Kind::kLabels}) {
          const testing::Context context("profile %d, %u bits, %u x %u, kind %d", profile, bits, width, height,
                                         int(kind));
          const Image image = make_image(random, width, height, 1 + size % L3_MAX_CHANNELS, bits, kind);
          CHECK(check_same(encode(image, encode_options(profile)), {{0, 0, width, height}}, random));
        }
      }
}

TEST(conversions_of_regions) {
  Random random(3);
  for (const l3_profile profile : kProfiles)
    for (const uint32_t bits : {8, 16})
      for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++) {
        const uint32_t width = random.between(60, 140), height = random.between(60, 140);
        const Kind kind = channels % 2 ? Kind::kSlope : Kind::kLabels;
        const Bytes file = encode(make_image(random, width, height, channels, bits, kind), encode_options(profile));
        for (const l3_color color : {L3_COLOR_NATIVE, L3_COLOR_RGB, L3_COLOR_BGR, L3_COLOR_GRAY, L3_COLOR_YCBCR})
          for (uint32_t sample = L3_SAMPLE_NATIVE; sample <= L3_SAMPLE_F16; sample++) {
            const l3_rect region = random_region(random, width, height);
            const testing::Context context(
                "profile %d, %u bits, %u channels, color %d, sample %u, %u x %u at (%u, %u) of %u x %u", profile, bits,
                channels, color, sample, region.width, region.height, region.x, region.y, width, height);
            CHECK(check_same(file, {region, color, l3_sample(sample)}, random));
          }
      }
}

// Every value of a sample, and at 8 bits every pair of red and green, in every type.
TEST(conversions_of_all_values) {
  Random random(4);
  for (const uint32_t bits : {8, 16}) {
    Image image{256, 256, 3, bits};
    image.pixels = Bytes(image.row_size() * 256);
    for (uint32_t i = 0; i < 256 * 256; i++) {
      if (bits == 8) {
        image.pixels[3 * i] = uint8_t(i);
        image.pixels[3 * i + 1] = uint8_t(i >> 8);
        image.pixels[3 * i + 2] = uint8_t(random());
      } else {
        store(image.pixels.data() + 6 * i, uint16_t(i));
        store(image.pixels.data() + 6 * i + 2, uint16_t(random()));
        store(image.pixels.data() + 6 * i + 4, uint16_t(random()));
      }
    }
    const Bytes file = encode(image, encode_options(L3_PROFILE_RAW));
    for (const l3_color color : {L3_COLOR_RGB, L3_COLOR_GRAY, L3_COLOR_YCBCR})
      for (uint32_t sample = L3_SAMPLE_U8; sample <= L3_SAMPLE_F16; sample++) {
        const testing::Context context("%u bits, color %d, sample %u", bits, color, sample);
        CHECK(check_same(file, {{0, 0, 256, 256}, color, l3_sample(sample)}, random));
      }
  }
}

TEST(scaled_tiles) {
  Random random(7);
  for (const Kind kind : {Kind::kSlope, Kind::kLabels})
    for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++)
      for (uint32_t scale = 1; scale < 16; scale++) {
        const uint32_t width = random.between(2, L3_TILE), height = random.between(2, L3_TILE);
        Bytes file = encode(make_image(random, width, height, channels, 16, kind), encode_options(L3_PROFILE_FAST));
        uint8_t *transform = TileBytes(file).data;
        *transform = uint8_t(*transform | scale << 4);
        for (const l3_color color : {L3_COLOR_NATIVE, L3_COLOR_GRAY, L3_COLOR_YCBCR})
          for (const l3_sample sample : {L3_SAMPLE_NATIVE, L3_SAMPLE_U8, L3_SAMPLE_F32}) {
            const testing::Context context("kind %d, %u channels, scale %u, color %d, sample %d", int(kind), channels,
                                           scale, color, sample);
            CHECK(check_same(file, {random_region(random, width, height), color, sample}, random));
          }
      }
}

// Damaged streams: those that still decode must decode to the same, and no other may lead a lane astray.
TEST(damaged_streams) {
  Random random(5);
  uint32_t refused = 0, accepted = 0;
  for (const l3_profile profile : {L3_PROFILE_PAPER, L3_PROFILE_FAST})
    for (const uint32_t bits : {8, 16})
      for (const Kind kind : {Kind::kNoise, Kind::kSlope, Kind::kLabels})
        for (uint32_t i = 0; i < 120; i++) {
          const testing::Context context("profile %d, %u bits, kind %d, round %u", profile, bits, int(kind), i);
          const uint32_t width = random.between(i % 3 ? L3_TILE : 1, L3_TILE),
                         height = random.between(i % 4 ? L3_TILE : 1, L3_TILE);
          const uint32_t channels = 1 + i % L3_MAX_CHANNELS;
          Bytes file =
              encode(make_image(random, width, height, channels, bits, kind), encode_options(profile, 1, false));
          const TileBytes tile(file);
          const uint32_t heads = profile == L3_PROFILE_PAPER ? 2 * channels : 1 + channels * channel_head_size(bits);
          const uint32_t first = heads + random.below(std::min(tile.size - heads, i % 2 ? 40u : ~0u)),
                         rest = tile.size - first;
          switch (i % 5) {
            case 0: std::fill_n(tile.data + first, rest, uint8_t(0xFF)); break;
            case 1: std::generate_n(tile.data + first, rest, [&] { return uint8_t(random()); }); break;
            case 2: tile.data[random.below(heads)] ^= uint8_t(1u << random.below(8)); break;
            default: tile.data[first] ^= uint8_t(1u << random.below(8));
          }
          (check_same(file, {{0, 0, width, height}}, random) ? accepted : refused)++;
        }
  CHECK(refused > 100);
  CHECK(accepted > 100);
}

// The farthest that a forged body can make lanes read: everything is marked, and every field as wide as can be, from
// the last byte on.
TEST(greediest_streams) {
  Random random(6);
  for (const uint32_t bits : {8, 16}) {
    const testing::Context context("%u bits", bits);
    for (const uint8_t mode : {uint8_t(kLabelMap), uint8_t(kPlane | max_index_bits(bits) << 3)}) {
      Bytes bytes(1 + channel_head_size(bits));
      bytes[1] = mode;
      const uint32_t body = mode == kLabelMap ? 0 : kMaxUnits * max_index_bits(bits);
      store(bytes.data() + bytes.size() - 2, uint16_t(body));
      bytes.resize(bytes.size() + body, 0xFF);
      const size_t size = bytes.size();
      bytes.resize(size + kMaxOverread, 0xFF);
      const Bytes buffer(bytes.begin(), bytes.end());
      l3_info info{};
      info.width = info.height = L3_TILE;
      info.channels = 1;
      info.bits = bits;
      info.profile = L3_PROFILE_FAST;
      const Request request{{0, 0, L3_TILE, L3_TILE}};
      Rows rows(info, request);
      const BatchImage image = describe(info, request, rows);
      FastTile parsed;
      CHECK(!parse_fast_tile(buffer.data(), uint32_t(size), 1, bits, {L3_TILE, L3_TILE}, &parsed));
      decode_tile(buffer, image, BatchTile{0, uint32_t(size), 0, 0, 0}, random);
    }
  }
}
