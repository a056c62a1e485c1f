// The kernel for all tiles but those that fast8_kernel.h takes.
#pragma once

#include <cuda_runtime_api.h>

#include "batch.h"

namespace l3 {

// Enqueues the decoding of tiles order[first] to order[first + count - 1], of any images; count is not 0. `buffer` is the batch in device
// memory.
cudaError_t launch_general(const uint8_t *buffer, const BatchLayout &layout, uint32_t first, uint32_t count, cudaStream_t stream);

}  // namespace l3
