// Launching the kernels of a batch.
#pragma once

#include <cuda_runtime_api.h>

#include "batch.h"

namespace l3 {

// cudaErrorNoKernelImageForDevice where this build has no code for the current device, cudaSuccess where all is well.
cudaError_t check_device();

// Enqueues the decoding of a batch: a launch for each kind of tile in it. `buffer` is the batch in device memory.
cudaError_t launch_batch(const uint8_t *buffer, const BatchLayout &layout, cudaStream_t stream);

// The same for tiles order[first] to order[first + count - 1], which are of the function's kind; count is not 0.
cudaError_t launch_stored(const uint8_t *buffer, const BatchLayout &layout, uint32_t first, uint32_t count,
                          cudaStream_t stream);
cudaError_t launch_fast8(uint32_t channels, const uint8_t *buffer, const BatchLayout &layout, uint32_t first,
                         uint32_t count, cudaStream_t stream);
cudaError_t launch_full8(uint32_t channels, const uint8_t *buffer, const BatchLayout &layout, uint32_t first,
                         uint32_t count, cudaStream_t stream);
cudaError_t launch_fast16(uint32_t channels, const uint8_t *buffer, const BatchLayout &layout, uint32_t first,
                          uint32_t count, cudaStream_t stream);
cudaError_t launch_general(uint32_t bits, const uint8_t *buffer, const BatchLayout &layout, uint32_t first,
                           uint32_t count, cudaStream_t stream);

}  // namespace l3
