// The early end of long computations, such as by Ctrl-C.
#pragma once

#include <atomic>

namespace dali_l3::loader {

/** While it exists, throw_if_cancelled() throws, on its thread, once the flag is set. */
class CancellationScope {
 public:
  /** @param cancelled must outlive it */
  explicit CancellationScope(const std::atomic<bool> &cancelled);
  ~CancellationScope();
  CancellationScope(const CancellationScope &) = delete;
  CancellationScope &operator=(const CancellationScope &) = delete;

 private:
  const std::atomic<bool> *const outer_;
};

/** For loops that may run long: epochs that are planned one after another. */
void throw_if_cancelled();

}  // namespace dali_l3::loader
