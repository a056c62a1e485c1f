// Ctrl-C during a long call: Python notices only when the call returns.
#pragma once

#include <csignal>

#include <atomic>

namespace dali_l3 {

// Notices SIGINT while an object of this class exists, and passes it on to the handler before. One object at a time.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted_ = false;
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      interrupted_ = true;
      if (previous_.sa_handler != SIG_DFL && previous_.sa_handler != SIG_IGN && !(previous_.sa_flags & SA_SIGINFO))
        previous_.sa_handler(signal);
    };
    sigaction(SIGINT, &action, &previous_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &previous_, nullptr); }
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  const std::atomic<bool> *interrupted() const { return &interrupted_; }

 private:
  static inline std::atomic<bool> interrupted_;
  static inline struct sigaction previous_;
};

}  // namespace dali_l3
