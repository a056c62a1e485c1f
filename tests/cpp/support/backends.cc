#include "backends.h"

#include <cstdio>

namespace l3 {

const std::vector<const Kernels *> &runnable_backends() {
  static const std::vector<const Kernels *> backends = [] {
    std::vector<const Kernels *> runnable;
    for (const char *name : {"portable", "avx2", "avx512"}) {
      bool known;
      if (const Kernels *kernels = find_kernels(name, &known))
        runnable.push_back(kernels);
      else
        std::printf("back end %s is not tested: %s\n", name,
                    known ? "this CPU cannot run it" : "it is not built for this processor");
    }
    return runnable;
  }();
  return backends;
}

}  // namespace l3
