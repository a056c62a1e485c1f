#include "launch.h"

namespace l3 {
namespace {

cudaError_t launch(TileKind kind, const uint8_t *buffer, const BatchLayout &layout, uint32_t first, uint32_t count,
                   cudaStream_t stream) {
  switch (kind) {
    case TileKind::kStored: return launch_stored(buffer, layout, first, count, stream);
    case TileKind::kGeneral8: return launch_general(8, buffer, layout, first, count, stream);
    case TileKind::kGeneral16: return launch_general(16, buffer, layout, first, count, stream);
    default: break;
  }
  if (const uint32_t channels = channels_of(kind, TileKind::kFast8x1))
    return launch_fast8(channels, buffer, layout, first, count, stream);
  if (const uint32_t channels = channels_of(kind, TileKind::kFull8x1))
    return launch_full8(channels, buffer, layout, first, count, stream);
  return launch_fast16(channels_of(kind, TileKind::kFast16x1), buffer, layout, first, count, stream);
}

}  // namespace

cudaError_t launch_batch(const uint8_t *buffer, const BatchLayout &layout, cudaStream_t stream) {
  for (uint32_t kind = 0; kind < kTileKinds; kind++) {
    const uint32_t first = layout.kind_begin[kind], count = layout.kind_begin[kind + 1] - first;
    if (count == 0) continue;
    if (const cudaError_t code = launch(TileKind(kind), buffer, layout, first, count, stream)) return code;
  }
  return cudaSuccess;
}

}  // namespace l3
