// Launching the kernel for `fast` tiles of 16-bit images.
#include "fast16_tile.h"
#include "team_tiles.h"

namespace l3 {
namespace {

constexpr uint32_t kThreads = 64;  // in a block

template <uint32_t channels>
__global__ void __launch_bounds__(kThreads, 6)
    decode_fast16(const uint8_t *buffer, BatchLayout layout, uint32_t first, uint32_t count) {
  decode_tiles<Fast16Tile<WarpLanes, channels>, kThreads>(buffer, layout, first, count);
}

}  // namespace

cudaError_t launch_fast16(uint32_t channels, const uint8_t *buffer, const BatchLayout &layout, uint32_t first,
                          uint32_t count, cudaStream_t stream) {
  const auto kernel = channels == 1   ? decode_fast16<1>
                      : channels == 2 ? decode_fast16<2>
                      : channels == 3 ? decode_fast16<3>
                                      : decode_fast16<4>;
  return launch_tiles(kernel, kThreads, buffer, layout, first, count, stream);
}

}  // namespace l3
