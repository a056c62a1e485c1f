#include "paper.h"

#include <algorithm>
#include <bit>

#include "octet.h"

namespace l3 {

template <typename Sample>
const char *decode_paper_tile(const uint8_t *stream, uint32_t size, uint32_t channels, TileShape shape, Planes<Sample> *planes) {
  constexpr uint32_t kRowHeader = 1 + sizeof(Sample);
  if (size < 2 * channels) return "too short for its heads";
  const uint8_t *body = stream + 2 * channels, *const end = stream + size;
  for (uint32_t c = 0; c < channels; c++) {
    const uint32_t count = load<uint16_t>(stream + 2 * c);
    if (count > size_t(end - body)) return "a body runs past the stream's end";
    if (count < shape.height * kRowHeader) return "a body too short for its row headers";
    const uint8_t *payload = body + shape.height * kRowHeader;
    Sample *plane = planes->plane[channel_of_plane(c, channels)];
    for (uint32_t y = 0; y < shape.height; y++) {
      const uint8_t *header = body + y * kRowHeader;
      const uint32_t width = header[0];
      if (width > 8 * sizeof(Sample)) return "a row wider than the samples";
      const Sample base = load<Sample>(header + 1);
      Sample *row = plane + y * L3_TILE, prediction[L3_TILE];
      for (uint32_t x = 0; x < shape.width; x += 8, payload += width) unpack_octet(payload, width, row + x);
      predict_paper_row(plane, y, shape.width, prediction);
      for (uint32_t x = 0; x < shape.width; x++) row[x] = Sample(row[x] + base + prediction[x]);
    }
    if (payload != body + count) return "a body that is not consumed exactly";
    body += count;
  }
  return end - body > 3 ? "bodies that do not fill the stream" : nullptr;
}

template <typename Sample>
uint32_t encode_paper_tile(const uint8_t *pixels, size_t row_stride, uint32_t channels, TileShape shape, uint8_t *out) {
  constexpr uint32_t kRowHeader = 1 + sizeof(Sample);
  using Signed = std::make_signed_t<Sample>;
  uint8_t *body = out + 2 * channels;
  for (uint32_t c = 0; c < channels; c++) {
    Sample plane[kPlaneSize];
    for (uint32_t y = 0; y < shape.height; y++)
      for (uint32_t x = 0; x < shape.width; x++)
        plane[y * L3_TILE + x] = load<Sample>(pixels + y * row_stride + (x * channels + c) * sizeof(Sample));
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
template uint32_t encode_paper_tile<uint8_t>(const uint8_t *, size_t, uint32_t, TileShape, uint8_t *);
template uint32_t encode_paper_tile<uint16_t>(const uint8_t *, size_t, uint32_t, TileShape, uint8_t *);

}  // namespace l3
