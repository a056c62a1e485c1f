// Launching the kernel for `fast` tiles of 8-bit images.
#include "fast8_tile.h"
#include "launch.h"
#include "warp_lanes.h"

namespace l3 {
namespace {

constexpr uint32_t kThreads = 128, kTeams = kThreads / WarpLanes::kCount;  // in a block

// Decodes the `count` tiles that `order` names from `first` on, a team each.
template <uint32_t channels>
L3_DEVICE void decode_tiles(const uint8_t *buffer, const BatchLayout &layout, uint32_t first, uint32_t count) {
  __shared__ CodeTable8 table;
  __shared__ Fast8Shared<channels> shared[kTeams];
  if (threadIdx.x < 16) fill_code_table_entry(threadIdx.x, table.words[threadIdx.x]);
  __syncthreads();
  const uint32_t team = threadIdx.x / WarpLanes::kCount, position = blockIdx.x * kTeams + team;
  const bool active = position < count;
  const BatchTile &tile = ordered_tile(buffer, layout, first + (active ? position : count - 1));
  Fast8Tile<WarpLanes, channels>().decode(buffer, image_of(buffer, layout, tile), tile, active, table, shared[team]);
}

template <uint32_t channels>
__global__ void __launch_bounds__(kThreads)
    decode_fast8(const uint8_t *buffer, BatchLayout layout, uint32_t first, uint32_t count) {
  decode_tiles<channels>(buffer, layout, first, count);
}

// Left to itself the compiler takes too few registers for four channels, and spills.
template <>
__global__ void __launch_bounds__(kThreads, 4) decode_fast8<4>(const uint8_t *buffer, BatchLayout layout,
                                                               uint32_t first, uint32_t count) {
  decode_tiles<4>(buffer, layout, first, count);
}

template <uint32_t channels>
cudaError_t launch(const uint8_t *buffer, const BatchLayout &layout, uint32_t first, uint32_t count,
                   cudaStream_t stream) {
  decode_fast8<channels><<<(count + kTeams - 1) / kTeams, kThreads, 0, stream>>>(buffer, layout, first, count);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_fast8(uint32_t channels, const uint8_t *buffer, const BatchLayout &layout, uint32_t first,
                         uint32_t count, cudaStream_t stream) {
  switch (channels) {
    case 1: return launch<1>(buffer, layout, first, count, stream);
    case 2: return launch<2>(buffer, layout, first, count, stream);
    case 3: return launch<3>(buffer, layout, first, count, stream);
    default: return launch<4>(buffer, layout, first, count, stream);
  }
}

}  // namespace l3
