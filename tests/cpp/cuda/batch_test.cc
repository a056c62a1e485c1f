// How the host lays out and gathers a batch for the GPU, against a second computation from the files, tile by tile; and
// that it refuses broken tiles as l3_decode does.
#include "cuda/batch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <thread>

#include "cpu/kernels.h"
#include "fast_tiles.h"
#include "format/bytes.h"
#include "format/fast_payload.h"
#include "format/geometry.h"
#include "images.h"
#include "output/convert.h"
#include "testing.h"

using namespace l3;

namespace {

alignas(16) uint8_t device_memory[16];  // stands for it: plans only look at addresses

Bytes read_file(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  return Bytes(bytes.begin(), bytes.end());
}

l3_cuda_image whole(const Bytes &file, l3_color color = L3_COLOR_NATIVE, l3_sample sample = L3_SAMPLE_NATIVE) {
  l3_cuda_image image{};
  l3_error error{};
  if (l3_open(file.data(), file.size(), &image.file, &error)) testing::fail(__FILE__, __LINE__, error.message);
  const l3_info &info = image.file.info;
  image.region = {0, 0, info.width, info.height};
  const size_t row_size = size_t(info.width) * l3_output_channels(&info, color) * l3_output_sample_size(&info, sample);
  image.output = {device_memory, (row_size + 15) / 16 * 16, color, sample, 0};
  return image;
}

l3_rect random_region(Random &random, const l3_info &info) {
  const uint32_t x = random.below(info.width), y = random.below(info.height);
  return {x, y, random.between(1, info.width - x), random.between(1, info.height - y)};
}

// A plan with its buffer, which has exactly the size and the alignment that were asked for.
struct Batch {
  BatchPlan plan;
  std::vector<uint64_t> memory;
  uint8_t *buffer() { return reinterpret_cast<uint8_t *>(memory.data()); }

  void prepare(const std::vector<l3_cuda_image> &images) {
    size_t failed = 0;
    l3_error error{};
    CHECK_EQUAL(plan.plan(images.data(), images.size(), &failed, &error), L3_OK);
    CHECK_EQUAL(failed, images.size());
    memory = std::vector<uint64_t>((plan.layout().end + 7) / 8, 0xEEEEEEEEEEEEEEEE);
  }
  void gather(const std::vector<l3_cuda_image> &images) {
    prepare(images);
    for (size_t i = 0; i < images.size(); i++) {
      l3_error error{};
      const l3_status status = plan.gather(i, true, buffer(), &error);
      CHECK_EQUAL(error.message, std::string());
      CHECK_EQUAL(status, L3_OK);
    }
    plan.finish(buffer());
  }
  template <typename T>
  T at(uint32_t start, size_t number) {
    CHECK(start + (number + 1) * sizeof(T) <= plan.layout().end);
    return load<T>(buffer() + start + number * sizeof(T));
  }
};

// What a tile is made of and where it stands, worked out from the file alone.
struct ExpectedTile {
  uint32_t image, x, y;
  Bytes bytes;
  TileKind kind;
};

bool has_label_map(const l3_info &info, const Bytes &tile) {
  for (uint32_t c = 0; c < info.channels; c++)
    if ((tile[1 + c * (3 + info.bits / 8)] & 7) == 7) return true;
  return false;
}

TileKind expected_kind(const l3_cuda_image &image, const Bytes &tile) {
  const l3_info &info = image.file.info;
  const bool converts = needs_conversion(info.channels, info.bits, image.output.color, image.output.sample);
  if (!converts && (info.prototype || info.profile == L3_PROFILE_RAW)) return TileKind::kStored;
  if (info.prototype || info.profile != L3_PROFILE_FAST)
    return info.bits == 16 ? TileKind::kGeneral16 : TileKind::kGeneral8;
  constexpr TileKind plain[] = {TileKind::kFast8x1, TileKind::kFast8x2, TileKind::kFast8x3, TileKind::kFast8x4};
  constexpr TileKind full[] = {TileKind::kFull8x1, TileKind::kFull8x2, TileKind::kFull8x3, TileKind::kFull8x4};
  constexpr TileKind deep[] = {TileKind::kFast16x1, TileKind::kFast16x2, TileKind::kFast16x3, TileKind::kFast16x4};
  return (info.bits == 16 ? deep : converts || has_label_map(info, tile) ? full : plain)[info.channels - 1];
}

Bytes expected_bytes(const l3_file &parsed, uint32_t tile) {
  if (parsed.info.prototype) {
    const l3_rect rect = tile_rect(parsed.info, tile);
    return decode(Bytes(parsed.data, parsed.data + parsed.size), &rect).pixels;
  }
  const uint32_t start = load<uint32_t>(parsed.offsets + 4 * tile), end = load<uint32_t>(parsed.offsets + 4 * tile + 4);
  return Bytes(parsed.payload + start, parsed.payload + end);
}

std::vector<ExpectedTile> expected_tiles(const std::vector<l3_cuda_image> &images) {
  std::vector<ExpectedTile> tiles;
  for (uint32_t i = 0; i < images.size(); i++) {
    const l3_rect &region = images[i].region;
    const l3_info &info = images[i].file.info;
    for (uint32_t tile = 0; tile < info.tiles_x * info.tiles_y; tile++) {
      const l3_rect rect = tile_rect(info, tile);
      if (rect.x >= region.x + region.width || rect.x + rect.width <= region.x) continue;
      if (rect.y >= region.y + region.height || rect.y + rect.height <= region.y) continue;
      Bytes bytes = expected_bytes(images[i].file, tile);
      const TileKind kind = expected_kind(images[i], bytes);
      tiles.push_back({i, rect.x / 64, rect.y / 64, std::move(bytes), kind});
    }
  }
  return tiles;
}

void check_image(const BatchImage &described, const l3_cuda_image &image) {
  const l3_info &info = image.file.info;
  CHECK(described.out == image.output.data);
  CHECK_EQUAL(described.row_stride, image.output.row_stride);
  CHECK_EQUAL(described.width, info.width);
  CHECK_EQUAL(described.height, info.height);
  CHECK_EQUAL(described.region.x, image.region.x);
  CHECK_EQUAL(described.region.y, image.region.y);
  CHECK_EQUAL(described.region.width, image.region.width);
  CHECK_EQUAL(described.region.height, image.region.height);
  CHECK_EQUAL(described.channels, info.channels);
  CHECK_EQUAL(described.bits, info.bits);
  CHECK_EQUAL(described.profile, uint32_t(info.prototype ? L3_PROFILE_RAW : info.profile));
  const bool converts = needs_conversion(info.channels, info.bits, image.output.color, image.output.sample);
  CHECK_EQUAL(described.color, uint32_t(converts ? image.output.color : L3_COLOR_NATIVE));
  CHECK_EQUAL(described.sample, uint32_t(converts ? image.output.sample : L3_SAMPLE_NATIVE));
  CHECK_EQUAL(described.output_pixel_size,
              l3_output_channels(&info, image.output.color) * l3_output_sample_size(&info, image.output.sample));
}

// Compares a gathered batch with what its images' files say. Returns how many tiles of each kind there are.
std::map<TileKind, uint32_t> check_batch(Batch &batch, const std::vector<l3_cuda_image> &images) {
  const BatchLayout layout = batch.plan.layout();
  const std::vector<ExpectedTile> expected = expected_tiles(images);
  CHECK_EQUAL(layout.tile_count, expected.size());
  CHECK_EQUAL(layout.images, 0u);
  CHECK_EQUAL(layout.tiles, images.size() * 64);
  CHECK_EQUAL(layout.order, layout.tiles + expected.size() * 16);
  CHECK_EQUAL(layout.tile_bytes, (layout.order + expected.size() * 4 + 15) / 16 * 16);
  for (size_t i = 0; i < images.size(); i++) {
    const testing::Context context("image %zu", i);
    check_image(batch.at<BatchImage>(layout.images, i), images[i]);
  }

  uint32_t position = layout.tile_bytes;  // streams follow each other without gaps
  for (size_t i = 0; i < expected.size(); i++) {
    const testing::Context context("tile %zu: (%u, %u) of image %u", i, expected[i].x, expected[i].y,
                                   expected[i].image);
    const BatchTile tile = batch.at<BatchTile>(layout.tiles, i);
    CHECK_EQUAL(tile.image, expected[i].image);
    CHECK_EQUAL(tile.x, expected[i].x);
    CHECK_EQUAL(tile.y, expected[i].y);
    CHECK_EQUAL(tile.size, expected[i].bytes.size());
    CHECK_EQUAL(tile.bytes, position);
    CHECK_EQUAL(tile.bytes % 4, 0u);
    CHECK(std::equal(expected[i].bytes.begin(), expected[i].bytes.end(), batch.buffer() + tile.bytes));
    position += tile.size;
  }
  CHECK_EQUAL(layout.end, position + kMaxOverread);

  // Ascending within each kind, so every tile stands there once.
  std::map<TileKind, uint32_t> counts;
  std::vector<uint32_t> order;
  for (uint32_t kind = 0; kind < kTileKinds; kind++) {
    CHECK_EQUAL(layout.kind_begin[kind], order.size());
    for (uint32_t i = 0; i < expected.size(); i++)
      if (uint32_t(expected[i].kind) == kind) order.push_back(i), counts[expected[i].kind]++;
  }
  CHECK_EQUAL(layout.kind_begin[kTileKinds], expected.size());
  for (size_t i = 0; i < order.size(); i++) CHECK_EQUAL(batch.at<uint32_t>(layout.order, i), order[i]);
  return counts;
}

// Files of every profile and depth, some with label maps; and one of the prototype's.
const std::vector<Bytes> &files() {
  static const std::vector<Bytes> files = [] {
    std::vector<Bytes> files;
    Random random(1);
    for (uint32_t i = 0; i < 96; i++) {
      const uint32_t channels = 1 + i % 4, bits = i / 4 % 2 ? 16 : 8;
      const l3_profile profile = i % 3 == 0 ? L3_PROFILE_FAST : l3_profile(i / 3 % 3);
      const Image image = make_image(random, random.between(1, 400), random.between(1, 200), channels, bits,
                                     kKinds[i % std::size(kKinds)]);
      files.push_back(encode(image, encode_options(profile, 2, i % 5 != 0)));
    }
    files.push_back(read_file(L3_TEST_DATA "/golden/prototype.l3"));
    return files;
  }();
  return files;
}

std::vector<l3_cuda_image> random_images(Random &random) {
  std::vector<l3_cuda_image> images;
  for (uint32_t count = random.below(9); count; count--) {
    const bool converts = random.below(3) == 0;
    const l3_color color = converts ? l3_color(random.below(5)) : L3_COLOR_NATIVE;
    const l3_sample sample = converts ? l3_sample(random.below(8)) : L3_SAMPLE_NATIVE;
    images.push_back(whole(files()[random.below(uint32_t(files().size()))], color, sample));
    if (random.below(2)) images.back().region = random_region(random, images.back().file.info);
  }
  return images;
}

// Decodes and gathers a region of a file that may be broken: both accept it, or both refuse it with the same words,
// which it returns.
std::string verdict_of_both(const Bytes &file, const l3_rect *region, bool verify) {
  std::vector<l3_cuda_image> images{whole(file)};
  if (region) images[0].region = *region;
  Batch batch;
  batch.prepare(images);
  l3_error error{};
  const l3_status status = batch.plan.gather(0, verify, batch.buffer(), &error);
  const Decoded decoded = decode(file, &images[0].region, verify ? L3_VERIFY : 0);
  CHECK_EQUAL(std::string(error.message), decoded.message);
  CHECK_EQUAL(status, decoded.status);
  return decoded.message;
}

// The file with some bytes of its payload changed.
Bytes with_damaged_payload(Random &random, const Bytes &file) {
  l3_file parsed;
  CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
  Bytes damaged = file;
  const uint32_t start = uint32_t(parsed.payload - file.data());
  for (uint32_t changes = random.between(1, 4); changes; changes--) {
    uint8_t &byte = damaged[start + random.below(random.below(2) ? parsed.info.payload_size
                                                                 : std::min(64u, parsed.info.payload_size))];
    byte = random.below(2) ? uint8_t(random()) : uint8_t(byte ^ 1u << random.below(8));
  }
  return damaged;
}

}  // namespace

TEST(random_batches) {
  Random random(2);
  Batch batch;  // one plan for all, as a decoder has
  std::map<TileKind, uint32_t> tiles;
  for (uint32_t round = 0; round < 400; round++) {
    const testing::Context context("batch %u", round);
    const std::vector<l3_cuda_image> images = random_images(random);
    batch.gather(images);
    for (const auto &[kind, count] : check_batch(batch, images)) tiles[kind] += count;
  }
  for (uint32_t kind = 0; kind < kTileKinds; kind++) CHECK(tiles[TileKind(kind)] > 50);
}

TEST(kinds_and_their_channels) {
  CHECK_EQUAL(channels_of(TileKind::kStored, TileKind::kFast8x1), 0u);
  CHECK_EQUAL(channels_of(TileKind::kFast8x1, TileKind::kFast8x1), 1u);
  CHECK_EQUAL(channels_of(TileKind::kFast8x4, TileKind::kFast8x1), 4u);
  CHECK_EQUAL(channels_of(TileKind::kFull8x1, TileKind::kFast8x1), 0u);
  CHECK_EQUAL(channels_of(TileKind::kGeneral16, TileKind::kFast16x1), 0u);
  CHECK(of_channels(TileKind::kFull8x1, 3) == TileKind::kFull8x3);
}

TEST(images_from_several_threads) {
  Random random(3);
  std::vector<l3_cuda_image> images;
  for (const Bytes &file : files()) images.push_back(whole(file));
  Batch batch;
  for (uint32_t round = 0; round < 20; round++) {
    batch.prepare(images);
    constexpr size_t kThreads = 4;
    std::vector<l3_status> statuses(images.size(), L3_ERROR_ARGUMENT);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; t++)
      threads.emplace_back([&, t] {
        for (size_t i = t; i < images.size(); i += kThreads)
          statuses[i] = batch.plan.gather(i, true, batch.buffer(), nullptr);
      });
    for (std::thread &thread : threads) thread.join();
    for (const l3_status status : statuses) CHECK_EQUAL(status, L3_OK);
    batch.plan.finish(batch.buffer());
    check_batch(batch, images);
  }
}

TEST(checksums_are_verified_on_request) {
  Random random(4);
  for (const Bytes &file : files()) {
    l3_cuda_image image = whole(file);
    if (!image.file.checksums) continue;
    const uint32_t tile = random.below(tile_count(image.file.info));
    Bytes flipped = file;
    const uint32_t start = load<uint32_t>(image.file.offsets + 4 * tile),
                   end = load<uint32_t>(image.file.offsets + 4 * tile + 4);
    const uint32_t bit = 8 * uint32_t(image.file.payload - file.data() + start) + random.below(8 * (end - start));
    flipped[bit / 8] = uint8_t(flipped[bit / 8] ^ 1u << bit % 8);
    const std::vector<l3_cuda_image> images{whole(flipped)};
    Batch batch;
    batch.prepare(images);
    l3_error error{};
    CHECK_EQUAL(batch.plan.gather(0, true, batch.buffer(), &error), L3_ERROR_CHECKSUM);
    const uint32_t columns = image.file.info.tiles_x;
    CHECK_EQUAL(std::string(error.message), "tile " + std::to_string(tile) + " (row " + std::to_string(tile / columns) +
                                                ", column " + std::to_string(tile % columns) +
                                                "): the checksum does not match");
  }
}

TEST(damaged_tiles_are_refused_as_l3_decode_does) {
  Random random(5);
  std::map<std::string, uint32_t> problems;
  for (uint32_t f = 0; f < files().size(); f++)
    for (uint32_t i = 0; i < 80; i++) {
      const testing::Context context("file %u, mutant %u", f, i);
      const Bytes damaged = with_damaged_payload(random, files()[f]);
      const l3_rect region = random_region(random, whole(damaged).file.info);
      const std::string verdict = verdict_of_both(damaged, i % 4 ? nullptr : &region, i % 8 == 1);
      problems[verdict.substr(verdict.find(": ") + 1)]++;  // without the tile
    }
  for (const char *problem : {"", " a body that is not consumed exactly", " a row wider than the samples",
                              " label values that do not ascend", " a label map that marks a pixel outside the tile",
                              " a label beyond the table", " the checksum does not match"})
    CHECK(problems[problem] > 5);
}

TEST(stored_broken_files_are_refused_as_l3_decode_does) {
  uint32_t openable = 0;
  for (const auto &entry : std::filesystem::directory_iterator(L3_TEST_DATA "/broken")) {
    const testing::Context context("%s", entry.path().filename().c_str());
    const Bytes file = read_file(entry.path());
    l3_file parsed;
    if (l3_open(file.data(), file.size(), &parsed, nullptr)) continue;
    verdict_of_both(file, nullptr, false);
    verdict_of_both(file, nullptr, true);
    openable++;
  }
  CHECK(openable > 20);
}

TEST(broken_tiles_outside_the_region_do_not_matter) {
  Random random(6);
  Bytes file = encode(make_image(random, 192, 128, 3, 8, Kind::kSlope), encode_options(L3_PROFILE_FAST));
  const l3_file parsed = whole(file).file;
  for (const uint32_t tile : {1u, 3u, 5u})
    file[size_t(parsed.payload - file.data()) + load<uint32_t>(parsed.offsets + 4 * tile)] = 99;
  for (uint32_t tile = 0; tile < 6; tile++) {
    std::vector<l3_cuda_image> images{whole(file)};
    images[0].region = tile_rect(parsed.info, tile);
    Batch batch;
    batch.prepare(images);
    CHECK_EQUAL(batch.plan.gather(0, true, batch.buffer(), nullptr), tile % 2 ? L3_ERROR_CHECKSUM : L3_OK);
    CHECK_EQUAL(batch.plan.gather(0, false, batch.buffer(), nullptr), tile % 2 ? L3_ERROR_CORRUPT : L3_OK);
  }
}

TEST(arguments) {
  Random random(7);
  const Bytes file = encode(make_image(random, 100, 50, 3, 8, Kind::kSlope), encode_options(L3_PROFILE_FAST));
  const auto plan_second = [&](auto change, std::string *message = nullptr) {
    std::vector<l3_cuda_image> images{whole(file), whole(file), whole(file)};
    change(images[1]);
    BatchPlan plan;
    size_t failed = 99;
    l3_error error{};
    const l3_status status = plan.plan(images.data(), images.size(), &failed, &error);
    CHECK_EQUAL(failed, status ? 1u : 3u);
    if (message) *message = error.message;
    return status;
  };
  using Image = l3_cuda_image;
  CHECK_EQUAL(plan_second([](Image &) {}), L3_OK);
  const l3_rect outside[] = {{0, 0, 0, 5}, {0, 0, 101, 1}, {100, 0, 1, 1}, {0xFFFFFFFF, 0, 2, 1}};
  for (const l3_rect &region : outside)
    CHECK_EQUAL(plan_second([&](Image &image) { image.region = region; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(plan_second([](Image &image) { image.output.data = nullptr; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(plan_second([](Image &image) { image.output.row_stride = 299; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(plan_second([](Image &image) { image.output.row_stride = size_t{1} << 30; }), L3_OK);
  CHECK_EQUAL(plan_second([](Image &image) { image.output.row_stride = (size_t{1} << 30) + 1; }), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(plan_second([](Image &image) { image.output.color = l3_color(7); }), L3_ERROR_ARGUMENT);
  // Native samples of 8 bits may stand anywhere, others not.
  CHECK_EQUAL(plan_second([](Image &image) { image.output.data = device_memory + 1, image.output.row_stride = 301; }),
              L3_OK);
  for (const uint32_t by : {0u, 2u})
    for (const uint32_t stride_by : {0u, 2u}) {
      std::string message;
      const l3_status status = plan_second(
          [&](Image &image) {
            image.output = {device_memory + by, 1200 + stride_by, L3_COLOR_NATIVE, L3_SAMPLE_F32, 0};
          },
          &message);
      CHECK_EQUAL(status, by || stride_by ? L3_ERROR_ARGUMENT : L3_OK);
      CHECK_EQUAL(message.find("not aligned to its samples of 4 bytes") != std::string::npos, status != L3_OK);
    }
}

TEST(an_empty_batch) {
  Batch batch;
  batch.gather({});
  CHECK(check_batch(batch, {}).empty());
}

// Plans read nothing but offsets, so that these images need no bytes.
TEST(batches_of_four_gibibytes_are_refused) {
  l3_info info{};
  info.width = 1 << 17;
  info.height = 64;
  info.channels = 4;
  info.bits = 16;
  info.profile = L3_PROFILE_RAW;
  info.tiles_x = info.width / 64;
  info.tiles_y = 1;
  const uint32_t most = 0xFFFFFFFF - kMaxOverread - 4 * 64 - 4 * info.tiles_x * 20;
  Bytes offsets(4 * (info.tiles_x + 1));
  const auto plan = [&](uint64_t total, size_t *failed) {
    store(offsets.data() + 4 * info.tiles_x, uint32_t(total / 4));
    std::vector<l3_cuda_image> images(4);
    for (l3_cuda_image &image : images) {
      image.file.info = info;
      image.file.offsets = offsets.data();
      image.region = {0, 0, info.width, info.height};
      image.output = {device_memory, size_t(info.width) * 8, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0};
    }
    BatchPlan plan;
    const l3_status status = plan.plan(images.data(), images.size(), failed, nullptr);
    if (!status) CHECK_EQUAL(plan.layout().end, most / 16 * 16 + (0xFFFFFFFF - most));
    return status;
  };
  size_t failed;
  CHECK_EQUAL(plan(most / 16 * 16, &failed), L3_OK);
  CHECK_EQUAL(failed, 4u);
  CHECK_EQUAL(plan(most / 16 * 16 + 16, &failed), L3_ERROR_LIMIT);
  CHECK_EQUAL(failed, 3u);
}

// The two forms of the sum, and the portable decoder, which finds out by decoding.
TEST(payload_sizes) {
  Random random(8);
  const auto plane_8 = std::make_unique<uint8_t[]>(kPlaneSize);
  const auto plane_16 = std::make_unique<uint16_t[]>(kPlaneSize);
  for (uint32_t round = 0; round < 4000; round++) {
    ChannelChoice choice{};
    choice.bits = random.below(2) ? 16 : 8;
    choice.predictor = random.below(kPredictors);
    choice.index_bits = random.below(max_index_bits(choice.bits) + 1);
    choice.has_bitmap = random.below(2);
    choice.shape = {random.below(2) ? 64 : random.between(1, 64), random.between(1, 64)};
    const testing::Context context("%u bits, %u index bits, bitmap %d, %u x %u", choice.bits, choice.index_bits,
                                   choice.has_bitmap, choice.shape.width, choice.shape.height);
    Bytes bytes = random_tile(random, choice);
    if (random.below(2)) bytes = with_random_body(random, choice, bytes);
    FastTile tile;
    CHECK(!parse_fast_tile(bytes.data(), uint32_t(bytes.size()), 1, choice.bits, choice.shape, &tile));
    const FastChannel &channel = tile.channels[0];
    bytes.resize(bytes.size() + kMaxOverread);
    const Bytes readable(bytes.begin(), bytes.end() - ptrdiff_t(kMaxOverread - 8));
    const uint32_t end =
        choice.bits == 8
            ? kPortableKernels.of_8_bits.decode_channel(bytes.data(), channel, choice.shape, plane_8.get())
            : kPortableKernels.of_16_bits.decode_channel(bytes.data(), channel, choice.shape, plane_16.get());
    CHECK_EQUAL(fast_payload_size(readable.data(), channel, choice.bits, choice.shape), end - channel.payload);
    CHECK_EQUAL(fast_payload_size_portable(readable.data(), channel, choice.bits, choice.shape), end - channel.payload);
  }
}
