// The kernels of a GPU on the CPU, in lock step.
#pragma once

#include <map>

#include "cuda/batch.h"

namespace l3 {

// Does what launch_batch enqueues for a gathered batch, a tile after the other. Returns how many tiles each kernel has
// decoded.
std::map<TileKind, uint32_t> decode_in_lockstep(const uint8_t *buffer, const BatchLayout &layout);

}  // namespace l3
