#include "format/paper.h"

#include <algorithm>
#include <bit>

#include "format/octet.h"
#include "format/tiles.h"

namespace l3 {

const char *parse_paper_tile(const uint8_t *bytes, uint32_t size, uint32_t channels, uint32_t bits, TileShape shape,
                             PaperTile *tile) {
  const uint32_t row_header = paper_row_header_size(bits), octets = (shape.width + 7) / 8;
  if (size < 2 * channels) return "too short for its heads";
  uint32_t position = 2 * channels;
  for (uint32_t c = 0; c < channels; c++) {
    const uint32_t count = load<uint16_t>(bytes + 2 * c);
    if (count > size - position) return "a body runs past the tile's end";
    if (count < shape.height * row_header) return "a body too short for its row headers";
    uint32_t body_size = shape.height * row_header;
    tile->channels[c] = {position, position + body_size};
    for (uint32_t y = 0; y < shape.height; y++) {
      const uint32_t width = bytes[position + y * row_header];
      if (width > bits) return "a row wider than the samples";
      body_size += octets * width;
    }
    if (body_size != count) return kBodyNotConsumed;
    position += count;
  }
  return size - position > 3 ? "bodies that do not fill the tile" : nullptr;
}

template <typename Sample>
const char *decode_paper_tile(const uint8_t *bytes, uint32_t size, uint32_t channels, TileShape shape,
                              Planes<Sample> *planes) {
  constexpr uint32_t kBits = 8 * sizeof(Sample);
  PaperTile tile;
  if (const char *problem = parse_paper_tile(bytes, size, channels, kBits, shape, &tile)) return problem;
  for (uint32_t c = 0; c < channels; c++) {
    const uint8_t *header = bytes + tile.channels[c].headers, *payload = bytes + tile.channels[c].payload;
    Sample *plane = planes->plane[channel_of_plane(c, channels)];
    for (uint32_t y = 0; y < shape.height; y++, header += paper_row_header_size(kBits)) {
      const uint32_t width = header[0];
      const Sample base = load<Sample>(header + 1);
      Sample *row = plane + y * L3_TILE, prediction[L3_TILE];
      for (uint32_t x = 0; x < shape.width; x += 8, payload += width) unpack_octet(payload, width, row + x);
      predict_paper_row(plane, y, shape.width, prediction);
      for (uint32_t x = 0; x < shape.width; x++) row[x] = Sample(row[x] + base + prediction[x]);
    }
  }
  return nullptr;
}

template <typename Sample>
uint32_t encode_paper_tile(const TilePixels &pixels, uint8_t *out) {
  const auto [data, stride, channels, shape] = pixels;
  constexpr uint32_t kRowHeader = paper_row_header_size(8 * sizeof(Sample));
  using Signed = std::make_signed_t<Sample>;
  uint8_t *body = out + 2 * channels;
  for (uint32_t c = 0; c < channels; c++) {
    Sample plane[kPlaneSize];
    for (uint32_t y = 0; y < shape.height; y++)
      for (uint32_t x = 0; x < shape.width; x++)
        plane[y * L3_TILE + x] = load<Sample>(data + y * stride + (x * channels + c) * sizeof(Sample));
    uint8_t *payload = body + shape.height * kRowHeader;
    for (uint32_t y = 0; y < shape.height; y++) {
      Sample residuals[L3_TILE] = {}, prediction[L3_TILE];
      predict_paper_row(plane, y, shape.width, prediction);
      for (uint32_t x = 0; x < shape.width; x++) residuals[x] = Sample(plane[y * L3_TILE + x] - prediction[x]);
      // Residuals are signed, but row 0 holds the samples themselves.
      int32_t least = INT32_MAX, most = INT32_MIN;
      for (uint32_t x = 0; x < shape.width; x++) {
        const int32_t value = y ? Signed(residuals[x]) : residuals[x];
        least = std::min(least, value);
        most = std::max(most, value);
      }
      const uint32_t width = uint32_t(std::bit_width(uint32_t(most - least)));
      for (uint32_t x = 0; x < shape.width; x++) residuals[x] = Sample(residuals[x] - least);
      body[y * kRowHeader] = uint8_t(width);
      store(body + y * kRowHeader + 1, Sample(least));
      for (uint32_t x = 0; x < shape.width; x += 8) payload = pack_octet(residuals + x, width, payload);
    }
    store(out + 2 * c, uint16_t(payload - body));
    body = payload;
  }
  return uint32_t(body - out);
}

template const char *decode_paper_tile(const uint8_t *, uint32_t, uint32_t, TileShape, Planes<uint8_t> *);
template const char *decode_paper_tile(const uint8_t *, uint32_t, uint32_t, TileShape, Planes<uint16_t> *);
template uint32_t encode_paper_tile<uint8_t>(const TilePixels &, uint8_t *);
template uint32_t encode_paper_tile<uint16_t>(const TilePixels &, uint8_t *);

}  // namespace l3
