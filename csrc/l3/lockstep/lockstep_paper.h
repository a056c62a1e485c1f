// Decoding a channel of a `paper` tile with a team of 16 lanes, four neighbouring samples of a row each.
// docs/format.md, "Profile 1", in statements.
//
// Nothing is checked here: parse_paper_tile accepts only what decodes. A tile that it would refuse gives other
// samples, and no read beyond kMaxOverread: bodies start within the tile, and widths are held to the sample's.
#pragma once

#include "format/paper.h"
#include "lockstep/lockstep_bits.h"

namespace l3::lockstep {

// Where channel `c` (in the image's order) starts.
template <typename Sample>
L3_DEVICE PaperChannel locate_paper_channel(const uint8_t *bytes, uint32_t size, uint32_t channels, uint32_t c,
                                            TileShape shape) {
  uint32_t headers = 2 * channels;
  for (uint32_t before = 0; before < c; before++) headers += load<uint16_t>(bytes + 2 * before);
  headers = headers < size ? headers : size;
  return {headers, headers + shape.height * paper_row_header_size(8 * sizeof(Sample))};
}

template <Lanes Team, typename Sample>
L3_DEVICE void decode_paper_channel(const uint8_t *bytes, PaperChannel channel, TileShape shape, Sample *plane) {
  using Number = typename Team::Number;
  static_assert(Team::kCount * 4 == L3_TILE);
  constexpr uint32_t kBits = 8 * sizeof(Sample), kMask = (1u << kBits) - 1;
  const uint32_t octets = (shape.width + 7) / 8;
  const Number lane = Team::index();
  Number row[4] = {0, 0, 0, 0};  // the one above, later the one at hand
  for (uint32_t y = 0; y < shape.height; y++) {
    const uint8_t *header = bytes + channel.headers + y * paper_row_header_size(kBits);
    const uint32_t width = header[0] < kBits ? header[0] : kBits, base = load<Sample>(header + 1);
    const Number octet = (lane >> 1) * width + channel.payload;
    const Number before = Team::select(lane == 0, 0, Team::from_left(row[3])), after = Team::from_right(row[0]);
    Number samples[4];
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
      samples[k] = read_octet_value<Team, Sample>(bytes, octet, width, (lane & 1) * 4 + k) + base;
      if (y == 0) continue;
      const Number left = k > 0 ? row[k - 1] : before, right = k < 3 ? row[k + 1] : after;
      const auto predict = [](uint32_t a, uint32_t b, uint32_t c) {
        return uint32_t(paper_prediction(int32_t(a), int32_t(b), int32_t(c)));
      };
      samples[k] =
          samples[k] + Team::apply(predict, left, row[k], Team::select(lane * 4 + k == shape.width - 1, 0, right));
    }
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
      row[k] = samples[k] & kMask;
      Team::store(plane, lane * 4 + (y * L3_TILE + k), row[k]);
    }
    channel.payload += octets * width;
  }
}

}  // namespace l3::lockstep
