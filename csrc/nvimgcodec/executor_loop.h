// A loop that threads of the framework's executor share.
#pragma once

#include <nvimgcodec.h>

#include <cstddef>

namespace dali_l3 {

struct Executor {
  const nvimgcodecExecutorDesc_t *descriptor;
  int device_id;
};

// An l3_parallel_for whose context is an Executor. The calling thread works too and waits for nothing but the loop: the
// executor's threads may be occupied with other images, or even wait for this very batch. `body` must not throw.
void ParallelFor(void *context, size_t count, void (*body)(void *argument, size_t index), void *argument);

}  // namespace dali_l3
