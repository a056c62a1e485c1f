// The codec through its public interface, on every back end: what goes in comes out, whole, by regions, by pieces and
// into any buffer.
#include <algorithm>
#include <thread>

#include "backends.h"
#include "checksums.h"
#include "format/bytes.h"
#include "format/fast_tile.h"
#include "images.h"
#include "testing.h"

using namespace l3;

namespace {

constexpr l3_profile kProfiles[] = {L3_PROFILE_RAW, L3_PROFILE_PAPER, L3_PROFILE_FAST};

void check_round_trip(const Image &image, const l3_encode_options &options) {
  const Bytes file = encode(image, options);
  const Decoded decoded = decode(file, nullptr, L3_VERIFY);
  CHECK_EQUAL(decoded.message, "");
  CHECK(decoded.pixels == image.pixels);
}

// Calls check(file, image) for images of several tiles in every profile and at both depths, on every back end.
template <typename Check>
void for_each_file(uint32_t width, uint32_t height, Check check) {
  Random random(width + height);
  for (const Kernels *kernels : runnable_backends()) {
    const UseBackend use(*kernels);
    for (const l3_profile profile : kProfiles)
      for (const uint32_t bits : {8, 16})
        for (const uint32_t channels : {1, 3, 4}) {
          const testing::Context context("%s, profile %d, %u bits, %u channels", kernels->name, int(profile), bits,
                                         channels);
          const Image image = make_image(random, width, height, channels, bits, Kind::kSlope);
          check(encode(image, encode_options(profile)), image);
        }
  }
}

l3_file open(const Bytes &file) {
  l3_file parsed;
  l3_error error{};
  if (l3_open(file.data(), file.size(), &parsed, &error)) testing::fail(__FILE__, __LINE__, error.message);
  return parsed;
}

// A file of one tile, with this payload.
Bytes file_of_tile(const Image &image, Bytes tile) {
  Bytes file = encode(image, encode_options(L3_PROFILE_RAW));
  const size_t payload = size_t(open(file).payload - file.data());
  file[22] = uint8_t(L3_PROFILE_FAST);
  tile.resize((tile.size() + 3) / 4 * 4);
  store(&file[32], uint32_t(tile.size()));
  store(&file[L3_HEADER_SIZE + 4], uint32_t(tile.size()));
  file.resize(payload);
  file.insert(file.end(), tile.begin(), tile.end());
  file.resize(file.size() + 16);
  repair_checksums(file.data(), file.size());
  return file;
}

// A body that says that all samples are equal: in one of the ways of doing so, some of which the encoder never takes.
struct FlatBody {
  uint32_t mode;
  Bytes bytes;
};
FlatBody flat_body(Random &random, uint32_t bits, uint32_t first, TileShape shape) {
  const uint32_t predictor = random.below(kPredictors), bitmap_size = shape.unit_bitmap_size();
  switch (random.below(3)) {
    case 0: return {mode_of(predictor, 0, false), {0}};  // a palette of the code 0
    case 1: {                                            // no units, whatever the palette holds
      const uint32_t index_bits = random.below(max_index_bits(bits) + 1);
      Bytes body(palette_size(index_bits, bits));
      for (uint8_t &byte : body) byte = uint8_t(random.below(16));
      body.resize(body.size() + bitmap_size);
      return {mode_of(predictor, index_bits, true), body};
    }
    default: {  // a label map without marks
      Bytes body{0};
      for (uint32_t byte = 0; byte < bits / 8; byte++) body.push_back(uint8_t(first >> 8 * byte));
      body.resize(body.size() + bitmap_size);
      return {kLabelMap, body};
    }
  }
}

// The samples of a pixel, in the image's order, given the first samples of its planes.
std::vector<uint32_t> flat_pixel(const std::vector<uint32_t> &firsts, uint32_t bits, uint32_t color, uint32_t scale) {
  const uint32_t mask = (1u << bits) - 1, middle = 1u << (bits - 1);
  std::vector<uint32_t> pixel = firsts;
  if (pixel.size() > 2) std::swap(pixel[0], pixel[1]);
  if (color) {
    pixel[0] = (pixel[0] + pixel[1] - middle) & mask;
    pixel[2] = (pixel[2] + (color == 1 ? pixel[1] : (pixel[0] + pixel[1]) / 2) - middle) & mask;
  }
  for (uint32_t &sample : pixel) sample = (scale == 15 ? 257 * sample : sample << scale) & mask;
  return pixel;
}

}  // namespace

TEST(flat_tiles) {
  Random random(12);
  for (const Kernels *kernels : runnable_backends()) {
    const UseBackend use(*kernels);
    for (uint32_t round = 0; round < 700; round++) {
      const uint32_t bits = random.below(2) ? 8 : 16, channels = random.between(1, L3_MAX_CHANNELS), size = bits / 8;
      const auto length = [&] { return std::min(random.between(1, 96), uint32_t(L3_TILE)); };
      const TileShape shape{length(), length()};
      const testing::Context context("%s, round %u, %u bits, %u channels, %u x %u", kernels->name, round, bits,
                                     channels, shape.width, shape.height);
      const uint32_t color = channels < 3 ? 0 : random.below(kTransforms), scale = bits == 8 ? 0 : random.below(16);
      std::vector<uint32_t> firsts;
      Bytes tile(fast_heads_size(channels, bits));
      tile[0] = uint8_t(first_byte_of(color, scale));
      for (uint32_t c = 0; c < channels; c++) {
        firsts.push_back(random() & ((1u << bits) - 1));
        const FlatBody body = flat_body(random, bits, firsts[c], shape);
        write_channel_head({body.mode, firsts[c], uint32_t(body.bytes.size())}, c, bits, tile.data());
        tile.insert(tile.end(), body.bytes.begin(), body.bytes.end());
      }
      const Image image = make_image(random, shape.width, shape.height, channels, bits, Kind::kNoise);
      const Bytes file = file_of_tile(image, tile);

      // Rows that start at cache lines, and others.
      const uint32_t row_size = shape.width * channels * size, stride = 64 * 9 + (random.below(2) ? 0 : 13);
      Bytes buffer(stride * shape.height + 64, 0xA5), expected = buffer;
      const size_t begin = 64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64;
      const std::vector<uint32_t> pixel = flat_pixel(firsts, bits, color, scale);
      for (uint32_t y = 0; y < shape.height; y++)
        for (uint32_t x = 0; x < row_size / size; x++)
          for (uint32_t byte = 0; byte < size; byte++)
            expected[begin + y * stride + x * size + byte] = uint8_t(pixel[x % channels] >> 8 * byte);
      const l3_file parsed = open(file);
      l3_output output{};
      output.data = buffer.data() + begin;
      output.row_stride = stride;
      output.bypass_cache = random.below(2);
      l3_error error{};
      l3_decode(&parsed, nullptr, &output, L3_VERIFY, &error);
      CHECK_EQUAL(std::string(error.message), "");
      CHECK(buffer == expected);

      // A byte too many in the last body.
      Bytes longer = tile;
      ChannelHead head = read_channel_head(longer.data(), channels - 1, bits);
      head.body_size++;
      write_channel_head(head, channels - 1, bits, longer.data());
      longer.push_back(0);
      const Decoded refused = decode(file_of_tile(image, longer));
      CHECK_EQUAL(int(refused.status), int(L3_ERROR_CORRUPT));
    }
  }
}

TEST(round_trips) {
  Random random(1);
  for (const Kernels *kernels : runnable_backends()) {
    const UseBackend use(*kernels);
    for (const l3_profile profile : kProfiles)
      for (const uint32_t bits : {8, 16})
        for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++)
          for (const Kind kind : kKinds)
            for (uint32_t i = 0; i < 6; i++) {
              const uint32_t width = random.between(1, 130), height = random.between(1, 130), effort = 1 + i % 3;
              const testing::Context context("%s, profile %d, effort %u, %u bits, %u channels, kind %d, %u x %u",
                                             kernels->name, int(profile), effort, bits, channels, int(kind), width,
                                             height);
              check_round_trip(make_image(random, width, height, channels, bits, kind),
                               encode_options(profile, effort, i % 2));
            }
  }
}

TEST(every_width_and_height_of_a_tile) {
  Random random(2);
  for (const l3_profile profile : kProfiles)
    for (uint32_t size = 1; size <= 66; size++) {
      const testing::Context context("profile %d, size %u", int(profile), size);
      check_round_trip(make_image(random, size, 3, 3, 8, Kind::kNoise), encode_options(profile));
      check_round_trip(make_image(random, 3, size, 2, 16, Kind::kNoise), encode_options(profile));
      check_round_trip(make_image(random, size, size, 1, 8, Kind::kLabels), encode_options(profile));
    }
}

TEST(label_maps_of_any_number_of_values) {
  Random random(3);
  for (const uint32_t labels : {1, 2, 3, 4, 5, 9, 33, 255, 256, 257})
    for (const uint32_t bits : {8, 16}) {
      const testing::Context context("%u values, %u bits", labels, bits);
      Image image{61, 63, 1, bits, Bytes(61 * 63 * bits / 8)};
      uint32_t label = 0;
      for (size_t at = 0; at < image.pixels.size(); at += bits / 8) {
        if (random.below(20) == 0) label = random.below(labels);
        image.pixels[at] = uint8_t(label * 7);
        if (bits == 16) image.pixels[at + 1] = uint8_t(label / 2);
      }
      for (uint32_t effort = 1; effort <= 3; effort++) check_round_trip(image, encode_options(L3_PROFILE_FAST, effort));
    }
}

TEST(scales_that_the_encoder_finds) {
  const auto scale_of = [](const std::vector<uint16_t> &samples, uint32_t channels = 1) {
    Image image{uint32_t(samples.size()) / channels, 1, channels, 16, Bytes(2 * samples.size())};
    std::memcpy(image.pixels.data(), samples.data(), image.pixels.size());
    for (uint32_t effort = 1; effort <= 3; effort++) check_round_trip(image, encode_options(L3_PROFILE_FAST, effort));
    return open(encode(image, encode_options(L3_PROFILE_FAST))).payload[0] >> 4;
  };
  CHECK_EQUAL(scale_of({0, 0, 0}), 0);
  CHECK_EQUAL(scale_of({1, 0x8000, 0}), 0);
  CHECK_EQUAL(scale_of({2, 0xFFFE, 0}), 1);
  CHECK_EQUAL(scale_of({0x0010, 0xFFF0, 0x0100}), 4);
  CHECK_EQUAL(scale_of({0x4000, 0xC000, 0}), 14);
  CHECK_EQUAL(scale_of({0x8000, 0}), 14);
  CHECK_EQUAL(scale_of({0x0101, 0xFFFF, 0}), 15);
  CHECK_EQUAL(scale_of({0x0404, 0xF0F0}), 15);  // smaller than shifted
  CHECK_EQUAL(scale_of({0x0404, 0xF0F0, 0x00F0}), 2);
  CHECK_EQUAL(scale_of({0x0010, 0x0020, 0x0030, 0x0040, 0x0050, 0x0060}, 3), 4);
  CHECK_EQUAL(scale_of({0x0010, 0x0020, 0x0030, 0x0040, 0x0050, 0x0061}, 3), 0);
  CHECK_EQUAL(scale_of({0x2020, 0x3030, 0x4040, 0xFFFF}, 4), 15);
}

// Whatever the scale, samples that exceed the range once multiplied included.
TEST(scaled_tiles) {
  Random random(11);
  for (const Kernels *kernels : runnable_backends()) {
    const UseBackend use(*kernels);
    for (const Kind kind : {Kind::kNoise, Kind::kSlope, Kind::kLabels})
      for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++)
        for (uint32_t scale = 0; scale < 16; scale++) {
          const testing::Context context("%s, kind %d, %u channels, scale %u", kernels->name, int(kind), channels,
                                         scale);
          const Image image =
              make_image(random, random.between(2, L3_TILE), random.between(2, L3_TILE), channels, 16, kind);
          Bytes file = encode(image, encode_options(L3_PROFILE_FAST)), expected = image.pixels;
          uint8_t &transform = file[size_t(open(file).payload - file.data())];
          CHECK(transform < 16);
          transform = uint8_t(transform | scale << 4);
          for (size_t at = 0; at < expected.size(); at += 2) {
            const uint32_t sample = load<uint16_t>(&expected[at]);
            store(&expected[at], uint16_t(scale == 15 ? 257 * sample : sample << scale));
          }
          const Decoded decoded = decode(file);
          CHECK_EQUAL(decoded.message, "");
          CHECK(decoded.pixels == expected);
        }
  }
}

TEST(rows_of_the_input_may_be_apart) {
  Random random(4);
  const Image image = make_image(random, 70, 67, 3, 8, Kind::kSlope);
  const size_t row_size = image.row_size(), stride = row_size + 11;
  Bytes apart((image.height - 1) * stride + row_size, 0xEE);
  for (uint32_t y = 0; y < image.height; y++)
    std::copy_n(image.pixels.begin() + ptrdiff_t(y * row_size), row_size, apart.begin() + ptrdiff_t(y * stride));
  for (const l3_profile profile : kProfiles) {
    const l3_encode_options options = encode_options(profile);
    l3_image view = view_of(image);
    view.data = apart.data();
    view.row_stride = stride;
    Bytes file(l3_encode_bound(&view, &options));
    size_t written = 0;
    CHECK_EQUAL(l3_encode(&view, &options, file.data(), file.size(), &written, nullptr), L3_OK);
    file.resize(written);
    CHECK(file == encode(image, options));
  }
}

TEST(regions) {
  const uint32_t edges_x[] = {0, 1, 63, 64, 128, 149}, edges_y[] = {0, 62, 63, 64, 69};
  for_each_file(150, 70, [&](const Bytes &file, const Image &image) {
    for (const uint32_t left : edges_x)
      for (const uint32_t right : edges_x)
        for (const uint32_t top : edges_y)
          for (const uint32_t bottom : edges_y) {
            if (right < left || bottom < top) continue;
            const l3_rect roi = {left, top, right - left + 1, bottom - top + 1};
            const testing::Context context("region %u x %u at (%u, %u)", roi.width, roi.height, roi.x, roi.y);
            const Decoded decoded = decode(file, &roi, L3_VERIFY);
            CHECK_EQUAL(decoded.message, "");
            CHECK(decoded.pixels == crop(image, roi));
          }
  });
}

TEST(regions_touch_only_their_tiles) {
  Random random(5);
  const Image image = make_image(random, 128, 64, 1, 8, Kind::kSlope);
  for (const l3_profile profile : kProfiles) {
    Bytes file = encode(image, encode_options(profile));
    file[file.size() - 17] ^= 0xFF;  // before the trailer: in the second tile's bytes
    const l3_rect left = {0, 0, 64, 64}, both = {63, 0, 2, 1};
    CHECK(decode(file, &left, L3_VERIFY).pixels == crop(image, left));
    CHECK_EQUAL(decode(file, &both, L3_VERIFY).status, L3_ERROR_CHECKSUM);
  }
}

TEST(any_output_buffer) {
  Random random(6);
  for_each_file(200, 70, [&](const Bytes &file, const Image &image) {
    const l3_file parsed = open(file);
    for (uint32_t i = 0; i < 40; i++) {
      const uint32_t x = i % 4 < 2 ? 0 : random.below(200), y = i % 4 < 2 ? 0 : random.below(70);
      const l3_rect rect =
          i % 4 == 0 ? l3_rect{0, 0, 200, 70} : l3_rect{x, y, random.between(1, 200 - x), random.between(1, 70 - y)};
      const size_t row_size = rect.width * image.pixel_size(),
                   stride = i % 3 ? row_size + random.below(130) : (row_size + 63) / 64 * 64;
      const uint32_t start = i % 3 ? random.below(65) : i % 2 * 64, bypass_cache = random.below(4) != 0;
      const testing::Context context("region %u x %u at (%u, %u), bypass %u, start %u, stride %zu", rect.width,
                                     rect.height, rect.x, rect.y, bypass_cache, start, stride);
      Bytes buffer(64 + start + stride * (rect.height - 1) + row_size + 64, 0xA5), expected = buffer;
      const size_t begin = start + (-uintptr_t(buffer.data()) & 63);  // after the beginning of a cache line
      const Bytes pixels = crop(image, rect);
      for (uint32_t row = 0; row < rect.height; row++)
        std::copy_n(pixels.begin() + ptrdiff_t(row * row_size), row_size,
                    expected.begin() + ptrdiff_t(begin + row * stride));
      l3_output output{};
      output.data = buffer.data() + begin;
      output.row_stride = stride;
      output.bypass_cache = bypass_cache;
      CHECK_EQUAL(l3_decode(&parsed, &rect, &output, 0, nullptr), L3_OK);
      CHECK(buffer == expected);
    }
  });
}

TEST(pieces_from_several_threads) {
  for_each_file(200, 140, [](const Bytes &file, const Image &image) {
    const l3_file parsed = open(file);
    const l3_rect rois[] = {{0, 0, 200, 140}, {60, 3, 70, 130}, {64, 64, 1, 1}};
    const uint32_t tile_counts[] = {12, 9, 1};
    for (size_t i = 0; i < 3; i++) {
      const l3_rect &roi = rois[i];
      CHECK_EQUAL(l3_region_tile_count(&parsed, &roi), tile_counts[i]);
      Bytes pixels(roi.width * image.pixel_size() * roi.height);
      l3_output output{};
      output.data = pixels.data();
      output.row_stride = roi.width * image.pixel_size();
      output.bypass_cache = 1;
      constexpr uint32_t kThreads = 4;
      l3_status statuses[kThreads];
      std::vector<std::thread> threads;
      for (uint32_t t = 0; t < kThreads; t++)
        threads.emplace_back([&, t] {
          const uint32_t first = tile_counts[i] * t / kThreads, end = tile_counts[i] * (t + 1) / kThreads;
          statuses[t] = l3_decode_tiles(&parsed, &roi, &output, L3_VERIFY, first, end - first, nullptr);
        });
      for (std::thread &thread : threads) thread.join();
      for (const l3_status status : statuses) CHECK_EQUAL(status, L3_OK);
      CHECK(pixels == crop(image, roi));
    }
  });
}

TEST(several_regions_at_once) {
  Random random(11);
  for_each_file(200, 140, [&](const Bytes &file, const Image &image) {
    const l3_file parsed = open(file);
    for (const uint32_t count : {0, 1, 2, 7}) {
      const uint32_t width = random.between(1, 200), height = random.between(1, 140);
      std::vector<l3_rect> regions(count);
      for (l3_rect &region : regions)
        region = {random.between(0, 200 - width), random.between(0, 140 - height), width, height};
      if (count == 7) regions[6] = regions[0];

      std::vector<l3_region_tile> tiles(l3_list_region_tiles(&parsed, regions.data(), count, nullptr));
      CHECK_EQUAL(l3_list_region_tiles(&parsed, regions.data(), count, tiles.data()), tiles.size());
      uint32_t expected_tiles = 0;
      for (const l3_rect &region : regions) expected_tiles += l3_region_tile_count(&parsed, &region);
      CHECK_EQUAL(tiles.size(), expected_tiles);
      CHECK(std::is_sorted(tiles.begin(), tiles.end(), [](auto a, auto b) {
        return std::pair(a.tile, a.region) <= std::pair(b.tile, b.region);  // no two are equal
      }));

      const size_t row_size = width * image.pixel_size(), region_stride = row_size * height + random.below(3);
      Bytes pixels(region_stride * count + 1, 0xA5), expected = pixels;
      for (uint32_t i = 0; i < count; i++) {
        const Bytes part = crop(image, regions[i]);
        std::copy(part.begin(), part.end(), expected.begin() + ptrdiff_t(i * region_stride));
      }
      l3_output output{};
      output.data = pixels.data();
      output.row_stride = row_size;
      output.bypass_cache = random.below(2);
      for (size_t first = 0, piece; first < tiles.size(); first += piece) {
        piece = std::min<size_t>(random.between(1, 12), tiles.size() - first);
        CHECK_EQUAL(l3_decode_region_tiles(&parsed, regions.data(), &output, region_stride, L3_VERIFY, &tiles[first],
                                           piece, nullptr),
                    L3_OK);
      }
      CHECK(pixels == expected);
    }
  });
}

TEST(conversions_of_regions) {
  for_each_file(100, 70, [](const Bytes &file, const Image &) {
    const l3_file parsed = open(file);
    for (const l3_color color : {L3_COLOR_NATIVE, L3_COLOR_RGB, L3_COLOR_BGR, L3_COLOR_GRAY, L3_COLOR_YCBCR})
      for (const l3_sample sample : {L3_SAMPLE_NATIVE, L3_SAMPLE_U8, L3_SAMPLE_U16, L3_SAMPLE_F32}) {
        const testing::Context context("color %d, sample %d", int(color), int(sample));
        const size_t pixel_size = l3_output_channels(&parsed.info, color) * l3_output_sample_size(&parsed.info, sample);
        const auto converted = [&](const l3_rect &rect) {
          Bytes pixels(rect.width * rect.height * pixel_size);
          const l3_output output = {pixels.data(), rect.width * pixel_size, color, sample, 0};
          CHECK_EQUAL(l3_decode(&parsed, &rect, &output, 0, nullptr), L3_OK);
          return pixels;
        };
        const Bytes whole = converted({0, 0, 100, 70});
        const l3_rect rect = {37, 5, 60, 62};
        const Bytes part = converted(rect);
        const size_t row_size = rect.width * pixel_size;
        for (uint32_t y = 0; y < rect.height; y++) {
          const auto row = part.begin() + ptrdiff_t(y * row_size);
          CHECK(std::equal(row, row + ptrdiff_t(row_size),
                           whole.begin() + ptrdiff_t(((rect.y + y) * 100 + rect.x) * pixel_size)));
        }
      }
  });
}

TEST(damaged_checksum) {
  Random random(7);
  const Image image = make_image(random, 70, 70, 1, 8, Kind::kNoise);
  for (const bool checksums : {true, false}) {
    Bytes file = encode(image, encode_options(L3_PROFILE_RAW, 2, checksums));
    file[file.size() - 17] ^= 1;
    CHECK_EQUAL(decode(file).status, L3_OK);
    CHECK_EQUAL(decode(file, nullptr, L3_VERIFY).status, checksums ? L3_ERROR_CHECKSUM : L3_OK);
  }
}

namespace {

// Decodes regions of the same size, each tile once, to an output of some kind. Returns the error, or nothing.
l3_error decode_regions(const l3_file &file, const std::vector<l3_rect> &regions, l3_sample sample, uint32_t options) {
  const size_t row_size = regions[0].width * file.info.channels * l3_output_sample_size(&file.info, sample),
               region_stride = row_size * regions[0].height;
  Bytes pixels(region_stride * regions.size());
  const l3_output output = {pixels.data(), row_size, L3_COLOR_NATIVE, sample, 0};
  std::vector<l3_region_tile> tiles(l3_list_region_tiles(&file, regions.data(), regions.size(), nullptr));
  l3_list_region_tiles(&file, regions.data(), regions.size(), tiles.data());
  l3_error error{};
  l3_decode_region_tiles(&file, regions.data(), &output, region_stride, options, tiles.data(), tiles.size(), &error);
  return error;
}

}  // namespace

// A wrong checksum is the error, whatever else is wrong with a tile and however it comes to be decoded.
TEST(a_wrong_checksum_comes_before_all_else) {
  constexpr uint32_t kDamaged = 1;  // of four tiles
  for_each_file(70, 70, [](const Bytes &file, const Image &) {
    const l3_file whole = open(file);
    const size_t end_at = size_t(whole.offsets - whole.data) + 4 * (kDamaged + 1);  // of the entry for the tile's end
    const uint32_t end = load<uint32_t>(&file[end_at]);

    // A tile whose last byte is another one may still decode. A tile without its last four bytes does not.
    Bytes changed = file, cut = file;
    changed[size_t(whole.payload - whole.data) + end - 1] ^= 1;
    store(&cut[end_at], end - 4);
    repair_checksums(cut.data(), cut.size());
    Bytes cut_and_changed = cut;
    cut_and_changed[size_t(whole.payload - whole.data) + end - 5] ^= 1;

    const auto check = [&](const Bytes &bytes, uint32_t options, l3_status expected) {
      const l3_file parsed = open(bytes);
      const std::vector<l3_rect> all = {{0, 0, 70, 70}}, part = {{66, 1, 2, 2}},
                                 sharing = {{66, 1, 2, 2}, {63, 2, 2, 2}};
      for (const std::vector<l3_rect> &regions : {all, part, sharing})
        for (const l3_sample sample : {L3_SAMPLE_NATIVE, L3_SAMPLE_F32}) {
          const testing::Context context("options %u, %zu regions of %u x %u, sample %d", options, regions.size(),
                                         regions[0].width, regions[0].height, int(sample));
          const l3_error error = decode_regions(parsed, regions, sample, options);
          CHECK_EQUAL(int(error.status), int(expected));
          CHECK(std::string(error.message).starts_with("tile 1 (row 0, column 1): "));
        }
      CHECK_EQUAL(int(decode(bytes, nullptr, options).status), int(expected));
    };
    const l3_status unless_stored = whole.info.profile == L3_PROFILE_RAW ? L3_ERROR_CORRUPT : L3_ERROR_CHECKSUM;
    check(changed, L3_VERIFY, L3_ERROR_CHECKSUM);
    for (const uint32_t options : {0u, uint32_t(L3_VERIFY), uint32_t(L3_VERIFY_UNLESS_STORED)})
      check(cut, options, L3_ERROR_CORRUPT);
    check(cut_and_changed, 0, L3_ERROR_CORRUPT);
    check(cut_and_changed, L3_VERIFY, L3_ERROR_CHECKSUM);
    check(cut_and_changed, L3_VERIFY_UNLESS_STORED, unless_stored);
  });
}

TEST(capacity) {
  Random random(8);
  const Image image = make_image(random, 70, 20, 3, 8, Kind::kNoise);
  const l3_image view = view_of(image);
  const l3_encode_options options = encode_options(L3_PROFILE_FAST);
  Bytes room(l3_encode_bound(&view, &options));
  size_t written = 0;
  l3_error error{};
  CHECK_EQUAL(l3_encode(&view, &options, room.data(), room.size() - 1, &written, &error), L3_ERROR_CAPACITY);
  CHECK_EQUAL(l3_encode(&view, &options, room.data(), room.size(), &written, &error), L3_OK);
}

TEST(arguments_of_encode) {
  Random random(9);
  const Image image = make_image(random, 5, 5, 3, 8, Kind::kNoise);
  const auto status_of = [&](auto change) {
    l3_image view = view_of(image);
    l3_encode_options options = encode_options(L3_PROFILE_FAST);
    change(view, options);
    Bytes room(1 << 16);
    size_t written = 0;
    l3_error error{};
    const l3_status status = l3_encode(&view, &options, room.data(), room.size(), &written, &error);
    CHECK_EQUAL(error.status, status);
    CHECK_EQUAL(l3_encode_bound(&view, &options) == 0, status != L3_OK);
    return status;
  };
  using Options = l3_encode_options;
  CHECK_EQUAL(status_of([](l3_image &, Options &) {}), L3_OK);
  CHECK_EQUAL(status_of([](l3_image &view, Options &) { view.data = nullptr; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(status_of([](l3_image &view, Options &) { view.row_stride = 14; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(status_of([](l3_image &view, Options &) { view.width = 0; }), L3_ERROR_LIMIT);
  CHECK_EQUAL(status_of([](l3_image &view, Options &) { view.height = L3_MAX_DIMENSION + 1; }), L3_ERROR_LIMIT);
  CHECK_EQUAL(status_of([](l3_image &view, Options &) { view.width = view.height = 1 << 16; }), L3_ERROR_LIMIT);
  CHECK_EQUAL(status_of([](l3_image &view, Options &) { view.channels = 5; }), L3_ERROR_LIMIT);
  CHECK_EQUAL(status_of([](l3_image &view, Options &) { view.bits = 12; }), L3_ERROR_UNSUPPORTED);
  CHECK_EQUAL(status_of([](l3_image &view, Options &) { view.two_dimensional = 1; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(status_of([](l3_image &, Options &options) { options.profile = L3_PROFILE_DENSE; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(status_of([](l3_image &, Options &options) { options.effort = 0; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(status_of([](l3_image &, Options &options) { options.effort = 4; }), L3_ERROR_ARGUMENT);
  const Bytes big(L3_MAX_METADATA);
  const l3_metadata no_key = {"", 0, "", 0}, long_key = {"k", 256, "", 0}, too_big = {"key", 3, big.data(), big.size()};
  for (const l3_metadata *entry : {&no_key, &long_key})
    CHECK_EQUAL(status_of([&](l3_image &, Options &options) { options.metadata = entry, options.metadata_count = 1; }),
                L3_ERROR_ARGUMENT);
  CHECK_EQUAL(status_of([&](l3_image &, Options &options) { options.metadata = &too_big, options.metadata_count = 1; }),
              L3_ERROR_LIMIT);
}

TEST(arguments_of_decode) {
  Random random(10);
  const Bytes file = encode(make_image(random, 100, 50, 3, 8, Kind::kSlope), encode_options(L3_PROFILE_FAST));
  const l3_file parsed = open(file);
  Bytes pixels(300 * 50);
  const l3_output output = {pixels.data(), 300, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0};
  const l3_rect outside[] = {
      {0, 0, 0, 5},  {0, 0, 5, 0},  {0, 0, 101, 1},        {0, 0, 1, 51},         {100, 0, 1, 1},
      {0, 50, 1, 1}, {99, 0, 2, 1}, {0xFFFFFFFF, 0, 2, 1}, {0, 2, 1, 0xFFFFFFFF}, {0xFFFFFFFF, 0xFFFFFFFF, 100, 50}};
  for (const l3_rect &roi : outside) {
    const testing::Context context("region %u x %u at (%u, %u)", roi.width, roi.height, roi.x, roi.y);
    CHECK_EQUAL(l3_decode(&parsed, &roi, &output, 0, nullptr), L3_ERROR_ARGUMENT);
    CHECK_EQUAL(l3_decode_tiles(&parsed, &roi, &output, 0, 0, 1, nullptr), L3_ERROR_ARGUMENT);
  }
  l3_output close_rows = output, nowhere = output;
  close_rows.row_stride = 299;
  nowhere.data = nullptr;
  for (const l3_output *bad : {&close_rows, &nowhere})
    CHECK_EQUAL(l3_decode(&parsed, nullptr, bad, 0, nullptr), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(l3_region_tile_count(&parsed, nullptr), 2u);
  CHECK_EQUAL(l3_decode_tiles(&parsed, nullptr, &output, 0, 2, 0, nullptr), L3_OK);
  CHECK_EQUAL(l3_decode_tiles(&parsed, nullptr, &output, 0, 2, 1, nullptr), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(l3_decode_tiles(&parsed, nullptr, &output, 0, 3, 0, nullptr), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(l3_decode_tiles(&parsed, nullptr, &output, 0, 1, 0xFFFFFFFF, nullptr), L3_ERROR_ARGUMENT);
}

TEST(arguments_of_decode_region_tiles) {
  Random random(12);
  const Bytes file = encode(make_image(random, 200, 140, 1, 8, Kind::kSlope), encode_options(L3_PROFILE_FAST));
  const l3_file parsed = open(file);
  Bytes pixels(10 * 10);
  const auto status_of = [&](l3_rect region, uint32_t tile, size_t row_stride) {
    const l3_output output = {pixels.data(), row_stride, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0};
    const l3_region_tile tiles[] = {{tile, 0}};
    return l3_decode_region_tiles(&parsed, &region, &output, 100, 0, tiles, 1, nullptr);
  };
  const l3_rect region = {70, 70, 10, 10};  // in tile 5 of 4 x 3
  CHECK_EQUAL(status_of(region, 5, 10), L3_OK);
  for (const uint32_t tile : {0u, 1u, 4u, 6u, 9u, 12u, 0xFFFFFFFFu})
    CHECK_EQUAL(status_of(region, tile, 10), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(status_of(region, 5, 9), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(status_of({191, 70, 10, 10}, 5, 10), L3_ERROR_ARGUMENT);
}

TEST(back_ends_by_name) {
  for (const Kernels *kernels : runnable_backends()) {
    const UseBackend use(*kernels);
    CHECK_EQUAL(std::string(l3_backend()), kernels->name);
  }
  CHECK_EQUAL(l3_set_backend("abacus"), L3_ERROR_ARGUMENT);
}
