#include "lockstep_batch.h"

#include <memory>
#include <vector>

#include "checked_lanes.h"
#include "cuda/general_tile.h"
#include "cuda/stored_tile.h"
#include "format/bytes.h"
#include "lockstep_fast_tile.h"

namespace l3 {

template void decode_fast_tile<CheckedLanes>(TileKind, const uint8_t *, const BatchImage &, const BatchTile &, bool);

namespace {

template <typename Sample>
void decode_general(const TilePart &tile) {
  std::vector<Sample> planes(L3_MAX_CHANNELS * kPlaneSize);
  for (uint32_t team = 0; team < general::kTeams; team++)
    general::decode_channel<CheckedLanes>(tile, team, planes.data());
  for (uint32_t thread = 0; thread < general::kThreads; thread++) general::write_part(tile, planes.data(), thread);
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
      if (image.profile == L3_PROFILE_FAST)
        decode_fast_tile<CheckedLanes>(TileKind(kind), buffer, image, tile);
      else if (TileKind(kind) == TileKind::kStored)
        copy_stored(part);
      else if (TileKind(kind) == TileKind::kGeneral8)
        decode_general<uint8_t>(part);
      else
        decode_general<uint16_t>(part);
      counts[TileKind(kind)]++;
    }
  return counts;
}

}  // namespace l3
