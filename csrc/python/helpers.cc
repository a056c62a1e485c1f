#include "helpers.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace dali_l3::python {
namespace {

using Clock = std::chrono::steady_clock;

// How long to look out for the end of a task before sleeping: what one item of work takes, since others end theirs at
// about the same time. To be woken from sleep takes as long.
constexpr auto kLookout = std::chrono::microseconds(200);

// A thread that gets no signals: they are for the threads that Python knows.
std::thread start_without_signals(auto work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(work);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace

// One thread. Its task must last until `finish` returns.
class Helper {
 public:
  Helper() : thread_(start_without_signals([this] { work(); })) {}

  ~Helper() {
    change_to(kOver);
    thread_.join();
  }

  void begin(const std::function<void()> &task) {
    task_ = &task;
    change_to(kAsked);
  }

  void finish() {
    int asked = kAsked;
    if (state_.compare_exchange_strong(asked, kWaiting)) return;
    for (const auto until = Clock::now() + kLookout; state_ == kWorking && Clock::now() < until;)
      std::this_thread::yield();
    state_.wait(kWorking);
  }

 private:
  enum { kWaiting, kAsked, kWorking, kOver };

  void change_to(int state) {
    state_ = state;
    state_.notify_one();
  }

  void work() {
    for (;;) {
      state_.wait(kWaiting);
      if (state_ == kOver) return;
      int asked = kAsked;
      if (!state_.compare_exchange_strong(asked, kWorking)) continue;
      (*task_)();
      change_to(kWaiting);
    }
  }

  const std::function<void()> *task_ = nullptr;
  std::atomic<int> state_ = kWaiting;
  std::thread thread_;  // the last member: it uses the others
};

namespace {

// The helpers that wait for the next call.
class Waiting {
 public:
  Waiting() { helpers_.reserve(most_); }

  // Adds up to `count` of them to `helpers`.
  void take(size_t count, std::vector<std::unique_ptr<Helper>> &helpers) {
    std::lock_guard lock(mutex_);
    for (; count > 0 && !helpers_.empty(); --count) {
      helpers.push_back(std::move(helpers_.back()));
      helpers_.pop_back();
    }
  }

  void give_back(std::vector<std::unique_ptr<Helper>> &helpers) {
    std::lock_guard lock(mutex_);
    for (; helpers_.size() < most_ && !helpers.empty(); helpers.pop_back())
      helpers_.push_back(std::move(helpers.back()));
  }

  // A fork copies one thread only: the helpers end before it, and the lock is held, so that the child finds it whole.
  void before_fork() {
    mutex_.lock();
    helpers_.clear();
  }

  void after_fork() { mutex_.unlock(); }

 private:
  const size_t most_ = std::max(1u, std::thread::hardware_concurrency());
  std::mutex mutex_;
  std::vector<std::unique_ptr<Helper>> helpers_;
};

Waiting &waiting() {
  // Never destroyed: other threads may still decode while the process ends.
  static Waiting *const waiting = new Waiting;
  static const int hooked =
      pthread_atfork([] { waiting->before_fork(); }, [] { waiting->after_fork(); }, [] { waiting->after_fork(); });
  static_cast<void>(hooked);
  return *waiting;
}

}  // namespace

Helpers::Helpers(size_t count, const std::function<void()> &task) {
  helpers_.reserve(count);
  if (count > 0) waiting().take(count, helpers_);
  try {
    while (helpers_.size() < count) helpers_.push_back(std::make_unique<Helper>());
  } catch (const std::system_error &) {
    // No more threads are to be had: those that there are do the work.
  }
  for (const auto &helper : helpers_) helper->begin(task);
}

Helpers::~Helpers() {
  for (const auto &helper : helpers_) helper->finish();
  if (!helpers_.empty()) waiting().give_back(helpers_);
}

}  // namespace dali_l3::python
