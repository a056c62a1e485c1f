#include "fast_tiles.h"

#include <algorithm>

#include "format/container.h"
#include "testing.h"

namespace l3 {
namespace {

uint32_t head_size(const ChannelChoice &choice) { return 1 + channel_head_size(choice.bits); }

uint32_t fixed_size(const ChannelChoice &choice) {
  return palette_size(choice.index_bits, choice.bits) + (choice.has_bitmap ? (choice.shape.units() + 7) / 8 : 0);
}

Bytes random_palette(Random &random, const ChannelChoice &choice) {
  Bytes palette = random.bytes(palette_size(choice.index_bits, choice.bits));
  for (uint8_t &byte : palette)
    if (choice.bits == 16) byte &= 31;
  if (choice.bits == 8 && choice.index_bits == 0) palette[0] &= 15;
  return palette;
}

uint32_t code_at(const Bytes &palette, const ChannelChoice &choice, uint32_t index) {
  if (palette.empty()) return index;
  return choice.bits == 16 ? palette[index] : palette[index / 2] >> 4 * (index % 2) & 15;
}

// A tile with this body, padded.
Bytes tile_of(Random &random, const ChannelChoice &choice, const Bytes &body) {
  Bytes tile(head_size(choice));
  if (choice.bits == 16) tile[0] = uint8_t(random.below(16) << 4);
  tile[1] = uint8_t(choice.predictor | choice.index_bits << 3 | uint32_t(choice.has_bitmap) << 6);
  for (uint32_t i = 0; i < choice.bits / 8; i++) tile[2 + i] = uint8_t(random());
  store(tile.data() + tile.size() - 2, uint16_t(body.size()));
  tile.insert(tile.end(), body.begin(), body.end());
  tile.resize((tile.size() + 3) / 4 * 4);
  return tile;
}

}  // namespace

Bytes random_tile(Random &random, const ChannelChoice &choice) {
  const TileShape shape = choice.shape;
  const Bytes palette = random_palette(random, choice);
  Bytes bitmap, words;
  if (choice.has_bitmap) bitmap.resize((shape.units() + 7) / 8);
  uint32_t payload_size = 0;
  for (uint32_t unit = 0; unit < shape.units(); unit++) {
    if (choice.has_bitmap && random.below(2)) continue;
    if (choice.has_bitmap) bitmap[unit / 8] = uint8_t(bitmap[unit / 8] | 1u << unit % 8);
    const uint32_t first_group = unit % shape.units_per_row_pair() * kUnitGroups;
    uint64_t word = 0;
    for (uint32_t group = 0; group < kUnitGroups; group++) {
      const uint32_t index =
          random.below(1u << choice.index_bits);  // also of groups outside the tile, which decoders ignore
      word |= uint64_t(index) << group * choice.index_bits;
      if (first_group + group < shape.groups()) payload_size += code_width(code_at(palette, choice, index));
    }
    for (uint32_t byte = 0; byte < choice.index_bits; byte++) words.push_back(uint8_t(word >> 8 * byte));
  }
  Bytes body = palette;
  for (const Bytes &part : {bitmap, words, random.bytes(payload_size)})
    body.insert(body.end(), part.begin(), part.end());
  return tile_of(random, choice, body);
}

Bytes with_random_body(Random &random, const ChannelChoice &choice, const Bytes &tile) {
  const uint32_t fixed = fixed_size(choice), least = fixed + choice.shape.units() * choice.index_bits;
  const auto start = tile.begin() + head_size(choice);
  Bytes body(start, start + fixed);
  const Bytes rest = random.bytes(random.between(least, least + choice.shape.pixels() * choice.bits / 8) - fixed);
  body.insert(body.end(), rest.begin(), rest.end());
  return tile_of(random, choice, body);
}

Bytes file_of_tile(const ChannelChoice &choice, const Bytes &tile) {
  l3_info info{};
  info.width = choice.shape.width, info.height = choice.shape.height;
  info.channels = 1, info.bits = choice.bits;
  info.profile = L3_PROFILE_FAST;
  info.payload_size = uint32_t(tile.size());
  if (check_shape(&info, nullptr)) testing::fail(__FILE__, __LINE__, "no image has this shape");
  const Layout layout = layout_of(info);
  Bytes file(layout.end);
  store(file.data() + layout.offsets + 4, info.payload_size);
  std::copy(tile.begin(), tile.end(), file.begin() + ptrdiff_t(layout.payload));
  write_header(info, file.data());
  return file;
}

}  // namespace l3
