// Launching the kernel for stored tiles, a block for each.
#include "launch.h"
#include "stored_tile.h"
#include "warp_lanes.h"

namespace l3 {
namespace {

constexpr uint32_t kThreads = 128, kTeams = kThreads / WarpLanes::kCount;  // in a block

__global__ void __launch_bounds__(kThreads) copy_stored(const uint8_t *buffer, BatchLayout layout, uint32_t first) {
  const BatchTile &tile = ordered_tile(buffer, layout, first + blockIdx.x);
  copy_stored_rows<WarpLanes>(TilePart(buffer, image_of(buffer, layout, tile), tile), threadIdx.x / WarpLanes::kCount,
                              kTeams);
}

}  // namespace

cudaError_t launch_stored(const uint8_t *buffer, const BatchLayout &layout, uint32_t first, uint32_t count,
                          cudaStream_t stream) {
  copy_stored<<<count, kThreads, 0, stream>>>(buffer, layout, first);
  return cudaGetLastError();
}

}  // namespace l3
