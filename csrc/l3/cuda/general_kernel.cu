// Launching the general kernel, a block for each tile.
#include "general_kernel.h"
#include "general_tile.h"
#include "team_lanes.h"

namespace l3 {
namespace {

template <typename Sample>
L3_DEVICE void decode(const general::Tile &tile, const FastTile &fast, uint8_t *memory) {
  Sample *const planes = reinterpret_cast<Sample *>(memory);
  general::decode_channel<TeamLanes>(tile, fast, threadIdx.x / TeamLanes::kCount, planes);
  __syncthreads();
  general::write_part(tile, fast, planes, threadIdx.x);
}

__global__ void __launch_bounds__(general::kThreads) decode_general(const uint8_t *buffer, BatchLayout layout, uint32_t first) {
  __shared__ alignas(16) uint8_t planes[general::kMaxPlanesSize];
  __shared__ FastTile fast;
  __shared__ bool valid;
  const uint32_t number = reinterpret_cast<const uint32_t *>(buffer + layout.order)[first + blockIdx.x];
  const BatchTile &entry = reinterpret_cast<const BatchTile *>(buffer + layout.tiles)[number];
  const general::Tile tile(buffer, reinterpret_cast<const BatchImage *>(buffer + layout.images)[entry.image], entry);
  if (threadIdx.x == 0) valid = general::parse(tile, &fast);
  __syncthreads();
  if (!valid) return;
  if (tile.image.bits == 8)
    decode<uint8_t>(tile, fast, planes);
  else
    decode<uint16_t>(tile, fast, planes);
}

}  // namespace

cudaError_t launch_general(const uint8_t *buffer, const BatchLayout &layout, uint32_t first, uint32_t count, cudaStream_t stream) {
  decode_general<<<count, general::kThreads, 0, stream>>>(buffer, layout, first);
  return cudaGetLastError();
}

}  // namespace l3
