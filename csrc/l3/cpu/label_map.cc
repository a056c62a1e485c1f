#include "format/label_map.h"

#include "cpu/generic_label_map.h"

namespace l3 {

template <typename Sample>
const char *parse_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, LabelMap *map) {
  uint8_t ranks[kMaxRanks];
  return generic::read_label_map<Sample>(bytes, channel, shape, map, ranks);
}

template const char *parse_label_map<uint8_t>(const uint8_t *, const FastChannel &, TileShape, LabelMap *);
template const char *parse_label_map<uint16_t>(const uint8_t *, const FastChannel &, TileShape, LabelMap *);

}  // namespace l3
