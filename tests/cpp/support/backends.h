// The CPU back ends that can be tested on this machine.
#pragma once

#include <vector>

#include "cpu/kernels.h"

namespace l3 {

// The back ends that this CPU runs, `portable` first; says which are left out.
const std::vector<const Kernels *> &runnable_backends();

// Makes the codec use a back end while in scope.
class UseBackend {
 public:
  explicit UseBackend(const Kernels &kernels) { l3_set_backend(kernels.name); }
  ~UseBackend() { l3_set_backend(before_); }
  UseBackend(const UseBackend &) = delete;
  UseBackend &operator=(const UseBackend &) = delete;

 private:
  const char *const before_ = l3_backend();
};

}  // namespace l3
