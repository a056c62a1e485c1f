// Launching the kernel for `fast` tiles of 8-bit images without label maps and conversion.
#include "fast8_tile.h"
#include "team_tiles.h"

namespace l3 {
namespace {

constexpr uint32_t kThreads = 128;  // in a block

template <uint32_t channels>
__global__ void __launch_bounds__(kThreads)
    decode_fast8(const uint8_t *buffer, BatchLayout layout, uint32_t first, uint32_t count) {
  decode_tiles<Fast8Tile<WarpLanes, channels, false>, kThreads>(buffer, layout, first, count);
}

// Left to itself the compiler takes too few registers for four channels, and spills.
template <>
__global__ void __launch_bounds__(kThreads, 4) decode_fast8<4>(const uint8_t *buffer, BatchLayout layout,
                                                               uint32_t first, uint32_t count) {
  decode_tiles<Fast8Tile<WarpLanes, 4, false>, kThreads>(buffer, layout, first, count);
}

}  // namespace

cudaError_t launch_fast8(uint32_t channels, const uint8_t *buffer, const BatchLayout &layout, uint32_t first,
                         uint32_t count, cudaStream_t stream) {
  const auto kernel = channels == 1   ? decode_fast8<1>
                      : channels == 2 ? decode_fast8<2>
                      : channels == 3 ? decode_fast8<3>
                                      : decode_fast8<4>;
  return launch_tiles(kernel, kThreads, buffer, layout, first, count, stream);
}

}  // namespace l3
