// The loop outlives its call until the last of the executor's threads has noticed that nothing is left to do.

#include "executor_loop.h"

#include <algorithm>
#include <atomic>
#include <memory>

namespace dali_l3 {
namespace {

class Loop {
 public:
  Loop(size_t count, void (*body)(void *, size_t), void *argument) : count_(count), body_(body), argument_(argument) {}

  void Work() {
    for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) {
      body_(argument_, i);
      if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) finished_.notify_one();
    }
  }

  void Wait() {
    for (size_t finished; (finished = finished_.load(std::memory_order_acquire)) < count_;) finished_.wait(finished);
  }

 private:
  const size_t count_;
  void (*const body_)(void *, size_t);
  void *const argument_;
  std::atomic<size_t> next_ = 0, finished_ = 0;
};

void Help(int /*thread_id*/, int /*sample_idx*/, void *context) {
  const std::unique_ptr<std::shared_ptr<Loop>> loop(static_cast<std::shared_ptr<Loop> *>(context));
  (*loop)->Work();
}

}  // namespace

void ParallelFor(void *context, size_t count, void (*body)(void *argument, size_t index), void *argument) {
  const auto &[executor, device_id] = *static_cast<const Executor *>(context);
  const auto loop = std::make_shared<Loop>(count, body, argument);
  const size_t threads = static_cast<size_t>(std::max(executor->getNumThreads(executor->instance), 0));
  const size_t helpers = std::min(threads, count - 1);
  for (size_t i = 0; i < helpers; i++) {
    auto reference = std::make_unique<std::shared_ptr<Loop>>(loop);
    if (executor->schedule(executor->instance, device_id, static_cast<int>(i), reference.get(), Help) !=
        NVIMGCODEC_STATUS_SUCCESS)
      break;
    reference.release();  // Help's now
  }
  if (helpers > 0) executor->run(executor->instance, device_id);
  loop->Work();
  loop->Wait();
}

}  // namespace dali_l3
