// Threads that share the iterations of a loop: what an application's thread pool is to l3_cuda_decode.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "l3/l3_cuda.h"

namespace benchmark {

class Workers {
 public:
  // The calling thread works too: starts `threads` - 1 others.
  explicit Workers(unsigned threads);
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  // An l3_parallel_for, whose context is a Workers.
  static void run(void *context, size_t count, void (*body)(void *argument, size_t index), void *argument);

 private:
  struct Loop {
    size_t count;
    void (*body)(void *, size_t);
    void *argument;
  };
  void work();
  void take_turns();

  std::mutex mutex_;
  std::condition_variable started_, finished_;
  Loop loop_{};
  std::atomic<size_t> next_ = 0;
  unsigned round_ = 0, busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace benchmark
