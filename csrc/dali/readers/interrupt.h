// Ctrl-C during a long call: Python notices only when the call returns.
#pragma once

#include <atomic>
#include <csignal>
#include <mutex>

namespace dali_l3 {

// Notices SIGINT while an object of this class exists, and passes it on to the handler that was there before. Several
// may exist at once, in any threads: the first sets the handler, the last one to go takes it back.
class InterruptGuard {
 public:
  InterruptGuard() {
    std::lock_guard lock(mutex_);
    if (guards_++ > 0) return;
    struct sigaction action = {};
    action.sa_handler = handle;
    sigaction(SIGINT, &action, &previous_);
  }
  ~InterruptGuard() {
    std::lock_guard lock(mutex_);
    if (--guards_ > 0) return;
    sigaction(SIGINT, &previous_, nullptr);
    interrupted_ = false;  // now, not by the next guard: read-ahead goes on where there is none
  }
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  // Of all guards there will ever be: it may be kept.
  static const std::atomic<bool> *interrupted() { return &interrupted_; }

 private:
  static void handle(int signal) {
    interrupted_ = true;
    const bool is_function =
        previous_.sa_handler != SIG_DFL && previous_.sa_handler != SIG_IGN && !(previous_.sa_flags & SA_SIGINFO);
    if (is_function) previous_.sa_handler(signal);
  }

  static inline std::atomic<bool> interrupted_;
  static inline std::mutex mutex_;  // guards the two below
  static inline int guards_ = 0;
  static inline struct sigaction previous_;
};

}  // namespace dali_l3
