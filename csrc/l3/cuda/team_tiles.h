// Kernels whose teams of 16 lanes decode a tile each, several in a block.
#pragma once

#include "launch.h"
#include "tile_part.h"
#include "warp_lanes.h"

namespace l3 {

// Decodes the block's share of the `count` tiles that `order` names from `first` on.
template <typename Tile, uint32_t threads>
L3_DEVICE void decode_tiles(const uint8_t *buffer, const BatchLayout &layout, uint32_t first, uint32_t count) {
  constexpr uint32_t kTeams = threads / WarpLanes::kCount;
  __shared__ typename Tile::Tables tables;
  __shared__ typename Tile::Shared shared[kTeams];
  if (threadIdx.x < Tile::Tables::kThreads) tables.fill(threadIdx.x);
  __syncthreads();
  const uint32_t team = threadIdx.x / WarpLanes::kCount, position = blockIdx.x * kTeams + team;
  const bool active = position < count;
  const BatchTile &tile = ordered_tile(buffer, layout, first + (active ? position : count - 1));
  Tile().decode(buffer, image_of(buffer, layout, tile), tile, active, tables, shared[team]);
}

// Launches a kernel that decodes so with blocks of `threads` threads.
template <typename Kernel>
cudaError_t launch_tiles(Kernel kernel, uint32_t threads, const uint8_t *buffer, const BatchLayout &layout,
                         uint32_t first, uint32_t count, cudaStream_t stream) {
  const uint32_t teams = threads / WarpLanes::kCount;
  kernel<<<(count + teams - 1) / teams, threads, 0, stream>>>(buffer, layout, first, count);
  return cudaGetLastError();
}

}  // namespace l3
