// The early end of long computations, such as by Ctrl-C.
#pragma once

#include <atomic>
#include <stdexcept>

namespace dali_l3::loader {

/** While it exists, throw_if_cancelled() throws, on its thread, once the flag is set. */
class CancellationScope {
 public:
  /** @param cancelled must outlive it */
  explicit CancellationScope(const std::atomic<bool> &cancelled) : outer_(flag_) { flag_ = &cancelled; }
  ~CancellationScope() { flag_ = outer_; }
  CancellationScope(const CancellationScope &) = delete;
  CancellationScope &operator=(const CancellationScope &) = delete;

 private:
  friend void throw_if_cancelled();

  static inline thread_local const std::atomic<bool> *flag_ = nullptr;
  const std::atomic<bool> *const outer_;
};

/** For loops that may run long: epochs that are planned one after another. */
inline void throw_if_cancelled() {
  if (CancellationScope::flag_ && *CancellationScope::flag_)
    throw std::runtime_error("The planning of epochs was interrupted");
}

}  // namespace dali_l3::loader
