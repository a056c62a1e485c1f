// A loop that threads of the framework's executor share.
#ifndef DALI_L3_NVIMGCODEC_EXECUTOR_LOOP_H_
#define DALI_L3_NVIMGCODEC_EXECUTOR_LOOP_H_

#include <nvimgcodec.h>

#include <cstddef>

namespace dali_l3 {

struct Executor {
  const nvimgcodecExecutorDesc_t *descriptor;
  int device_id;
};

// An l3_parallel_for whose context is an Executor. The calling thread works too and waits for nothing but the loop: the executor's threads
// may be occupied with other images, or even wait for this very batch. `body` must not throw.
void ParallelFor(void *context, size_t count, void (*body)(void *argument, size_t index), void *argument);

}  // namespace dali_l3

#endif  // DALI_L3_NVIMGCODEC_EXECUTOR_LOOP_H_
