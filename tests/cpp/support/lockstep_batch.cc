#include "lockstep_batch.h"

#include <memory>
#include <vector>

#include "checked_lanes.h"
#include "cuda/fast8_tile.h"
#include "cuda/general_tile.h"
#include "cuda/stored_tile.h"
#include "format/bytes.h"

namespace l3 {
namespace {

template <uint32_t channels>
void decode_fast8(const uint8_t *buffer, const BatchImage &image, const BatchTile &tile) {
  CodeTable8 table;
  for (uint32_t code = 0; code < 16; code++) fill_code_table_entry(code, table.words[code]);
  const auto shared = std::make_unique<Fast8Shared<channels>>();
  Fast8Tile<CheckedLanes, channels>().decode(buffer, image, tile, true, table, *shared);
}

template <typename Sample>
void decode_general(const TilePart &tile) {
  FastTile fast;
  CHECK(general::parse(tile, &fast));  // the host lets nothing else through
  std::vector<Sample> planes(L3_MAX_CHANNELS * kPlaneSize);
  for (uint32_t team = 0; team < general::kTeams; team++)
    general::decode_channel<CheckedLanes>(tile, fast, team, planes.data());
  for (uint32_t thread = 0; thread < general::kThreads; thread++)
    general::write_part(tile, fast, planes.data(), thread);
}

void copy_stored(const TilePart &tile) {
  constexpr uint32_t kTeams = 8;
  for (uint32_t team = 0; team < kTeams; team++) copy_stored_rows<CheckedLanes>(tile, team, kTeams);
}

}  // namespace

std::map<TileKind, uint32_t> decode_in_lockstep(const uint8_t *buffer, const BatchLayout &layout) {
  std::map<TileKind, uint32_t> counts;
  for (uint32_t kind = 0; kind < kTileKinds; kind++)
    for (uint32_t place = layout.kind_begin[kind]; place < layout.kind_begin[kind + 1]; place++) {
      const BatchTile &tile = ordered_tile(buffer, layout, place);
      const BatchImage &image = image_of(buffer, layout, tile);
      const TilePart part(buffer, image, tile);
      switch (TileKind(kind)) {
        case TileKind::kStored: copy_stored(part); break;
        case TileKind::kFast8x1: decode_fast8<1>(buffer, image, tile); break;
        case TileKind::kFast8x2: decode_fast8<2>(buffer, image, tile); break;
        case TileKind::kFast8x3: decode_fast8<3>(buffer, image, tile); break;
        case TileKind::kFast8x4: decode_fast8<4>(buffer, image, tile); break;
        case TileKind::kGeneral8: decode_general<uint8_t>(part); break;
        case TileKind::kGeneral16: decode_general<uint16_t>(part); break;
      }
      counts[TileKind(kind)]++;
    }
  return counts;
}

}  // namespace l3
