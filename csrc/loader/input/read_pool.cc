// A queue of jobs and the threads that run them.

#include "input/read_pool.h"

#include <stdexcept>
#include <string>

namespace dali_l3::loader {

ReadPool::ReadPool(int threads) {
  if (threads < 1 || threads > kMaxThreads)
    throw std::invalid_argument("The number of reading threads is " + std::to_string(threads) +
                                ", but must be from 1 to " + std::to_string(kMaxThreads));
  threads_.reserve(size_t(threads));
  for (int i = 0; i < threads; i++) {
    threads_.emplace_back([this](const std::stop_token &stop) { work(stop); });
  }
}

ReadPool::~ReadPool() {
  // All of them, before the first is waited for: the others would go on with what is queued.
  for (std::jthread &thread : threads_) thread.request_stop();
}

void ReadPool::enqueue(Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  submitted_.notify_one();
}

void ReadPool::work(const std::stop_token &stop) {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, stop, [&] { return !tasks_.empty(); });
      if (stop.stop_requested()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace dali_l3::loader
