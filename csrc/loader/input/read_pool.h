// Threads that read files in the background.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace dali_l3::loader {

/** Runs jobs on a fixed number of threads, in the order of their submission. */
class ReadPool {
 public:
  /** More than any disk can make use of. */
  static constexpr int kMaxThreads = 1024;

  /** @throws std::invalid_argument if `threads` is not from 1 to kMaxThreads, std::system_error if the system refuses
   * to start that many */
  explicit ReadPool(int threads);

  /** Waits for the jobs that are running. Those that have not started never will: their futures throw
   * std::future_error. */
  ~ReadPool();
  ReadPool(const ReadPool &) = delete;
  ReadPool &operator=(const ReadPool &) = delete;

  /** Queues a job. Its future gives what it returns, or throws what it throws. May be called from any thread, also from
   * a job. */
  template <typename Job>
  auto submit(Job job) {
    std::packaged_task<std::invoke_result_t<Job &>()> task(std::move(job));
    auto result = task.get_future();
    enqueue(Task(std::move(task)));
    return result;
  }

 private:
  using Task = std::packaged_task<void()>;  // of any result: it wraps the task that keeps the result

  void enqueue(Task task);
  void work(const std::stop_token &stop);

  std::mutex mutex_;
  std::condition_variable_any submitted_;
  std::deque<Task> tasks_;             // guarded by mutex_
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace dali_l3::loader
