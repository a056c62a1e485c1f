// Launching the general kernel, a block for each tile.
#include "general_tile.h"
#include "launch.h"
#include "team_lanes.h"

namespace l3 {
namespace {

template <typename Sample>
__global__ void __launch_bounds__(general::kThreads)
    decode_general(const uint8_t *buffer, BatchLayout layout, uint32_t first) {
  __shared__ Sample planes[L3_MAX_CHANNELS * kPlaneSize];
  const BatchTile &entry = ordered_tile(buffer, layout, first + blockIdx.x);
  const TilePart tile(buffer, image_of(buffer, layout, entry), entry);
  general::decode_channel<TeamLanes>(tile, threadIdx.x / TeamLanes::kCount, planes);
  __syncthreads();
  general::write_part(tile, planes, threadIdx.x);
}

}  // namespace

cudaError_t check_device() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, decode_general<uint8_t>);
}

cudaError_t launch_general(uint32_t bits, const uint8_t *buffer, const BatchLayout &layout, uint32_t first,
                           uint32_t count, cudaStream_t stream) {
  const auto kernel = bits == 8 ? decode_general<uint8_t> : decode_general<uint16_t>;
  kernel<<<count, general::kThreads, 0, stream>>>(buffer, layout, first);
  return cudaGetLastError();
}

}  // namespace l3
