// The published base-delta scheme: profile `paper`, and the prediction that prototype files share with it.
#pragma once

#include "format/bytes.h"
#include "format/geometry.h"
#include "format/planes.h"

namespace l3 {

// The paper's predictor of a pixel from those above it: to the left (0 at the tile's left edge), straight and to the
// right (0 at its right edge).
L3_HOST_DEVICE int32_t paper_prediction(int32_t left, int32_t above, int32_t right) {
  const int32_t plane = left + right - above;
  const auto distance = [plane](int32_t value) { return plane < value ? value - plane : plane - value; };
  const bool above_or_right = distance(above) <= distance(right);
  if (left == 0) return above_or_right ? above : right;
  if (right == 0) return distance(left) <= distance(above) ? left : above;
  if (distance(left) <= distance(above) && distance(left) <= distance(right)) return left;
  return distance(left) <= distance(right) ? above : right;
}

// The predictions of row `y` of a plane of a tile from the row above it; zeros for row 0.
template <typename Sample>
void predict_paper_row(const Sample *plane, uint32_t y, uint32_t width, Sample *prediction) {
  for (uint32_t x = 0; x < width; x++) {
    const Sample *above = plane + (y - 1) * L3_TILE + x;
    prediction[x] = y == 0 ? 0 : Sample(paper_prediction(x ? above[-1] : 0, above[0], x + 1 < width ? above[1] : 0));
  }
}

// Where a channel's parts stand; positions are from the start of the tile's bytes.
struct PaperChannel {
  uint32_t headers;  // of the rows
  uint32_t payload;  // of the first row
};

struct PaperTile {
  PaperChannel channels[L3_MAX_CHANNELS];  // in the image's order
};

constexpr uint32_t paper_row_header_size(uint32_t bits) { return 1 + bits / 8; }

// Reads and validates a tile's bytes: what it accepts decodes. Returns null, or what is wrong.
const char *parse_paper_tile(const uint8_t *bytes, uint32_t size, uint32_t channels, uint32_t bits, TileShape shape,
                             PaperTile *tile);

// Parses and decodes a tile's bytes into planes. Reads up to eight bytes past their end. Returns null, or what
// is wrong.
template <typename Sample>
const char *decode_paper_tile(const uint8_t *bytes, uint32_t size, uint32_t channels, TileShape shape,
                              Planes<Sample> *planes);

// Writes the bytes of a tile to `out`, and up to 16 bytes past it; returns its size.
template <typename Sample>
uint32_t encode_paper_tile(const TilePixels &pixels, uint8_t *out);

extern template const char *decode_paper_tile(const uint8_t *, uint32_t, uint32_t, TileShape, Planes<uint8_t> *);
extern template const char *decode_paper_tile(const uint8_t *, uint32_t, uint32_t, TileShape, Planes<uint16_t> *);
extern template uint32_t encode_paper_tile<uint8_t>(const TilePixels &, uint8_t *);
extern template uint32_t encode_paper_tile<uint16_t>(const TilePixels &, uint8_t *);

}  // namespace l3
