#include "format/check_tile.h"

#include "format/fast_payload.h"
#include "format/label_map.h"
#include "format/paper.h"

namespace l3 {
namespace {

const char *check_fast_tile(const l3_info &info, TileShape shape, const TileBytes &tile, bool *has_label_map) {
  FastTile fast;
  if (const char *problem = parse_fast_tile(tile.data, tile.size, info.channels, info.bits, shape, &fast))
    return problem;
  for (uint32_t c = 0; c < info.channels; c++) {
    const FastChannel &channel = fast.channels[c];
    if (channel.predictor == kLabelMap) {
      *has_label_map = true;
      LabelMap map;
      const auto parse = info.bits == 8 ? parse_label_map<uint8_t> : parse_label_map<uint16_t>;
      if (const char *problem = parse(tile.data, channel, shape, &map)) return problem;
    } else if (fast_payload_size(tile.data, channel, info.bits, shape) != channel.end - channel.payload) {
      return kBodyNotConsumed;
    }
  }
  return nullptr;
}

}  // namespace

const char *check_tile(const l3_info &info, TileShape shape, const TileBytes &tile, bool *has_label_map) {
  *has_label_map = false;
  if (info.profile == L3_PROFILE_RAW) return check_raw_tile(info, shape, tile.size);
  if (info.profile == L3_PROFILE_FAST) return check_fast_tile(info, shape, tile, has_label_map);
  PaperTile paper;
  return parse_paper_tile(tile.data, tile.size, info.channels, info.bits, shape, &paper);
}

}  // namespace l3
