// The choice of a CPU back end.
#include <atomic>
#include <cstdlib>

#include "cpu/kernels.h"
#include "format/error.h"

namespace l3 {

#if defined(__x86_64__)
// Each clause for a flag that csrc/l3/CMakeLists.txt compiles the back end with.
bool cpu_runs_avx2_kernels() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}
bool cpu_runs_avx512_kernels() {
  return cpu_runs_avx2_kernels() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512vbmi2");
}
#endif

namespace {

// From the best to the one that runs everywhere.
const Kernels *const kAllKernels[] = {
#if defined(__x86_64__)
    &kAvx512Kernels,
    &kAvx2Kernels,
#endif
    &kPortableKernels,
};

const Kernels *best_kernels() {
  for (const Kernels *kernels : kAllKernels)
    if (kernels->supported()) return kernels;
  return &kPortableKernels;
}

std::atomic<const Kernels *> g_chosen{nullptr};

}  // namespace

const Kernels *find_kernels(const char *name, bool *known) {
  *known = false;
  for (const Kernels *kernels : kAllKernels) {
    if (std::strcmp(kernels->name, name)) continue;
    *known = true;
    return kernels->supported() ? kernels : nullptr;
  }
  return nullptr;
}

const Kernels *active_kernels(l3_error *error) {
  if (const Kernels *chosen = g_chosen.load(std::memory_order_relaxed)) return chosen;
  const Kernels *kernels;
  if (const char *name = std::getenv("DALI_L3_BACKEND"); name && *name) {
    bool known;
    kernels = find_kernels(name, &known);
    if (!kernels) {
      fail(error, L3_ERROR_UNSUPPORTED, "DALI_L3_BACKEND=%s: %s", name,
           known ? "this CPU cannot run that back end" : "no such back end; there are avx512, avx2 and portable");
      return nullptr;
    }
  } else {
    kernels = best_kernels();
  }
  g_chosen.store(kernels, std::memory_order_relaxed);
  return kernels;
}

}  // namespace l3

extern "C" const char *l3_backend(void) {
  const l3::Kernels *kernels = l3::active_kernels(nullptr);
  return kernels ? kernels->name : "none";
}

extern "C" l3_status l3_set_backend(const char *name) {
  bool known;
  const l3::Kernels *kernels = l3::find_kernels(name, &known);
  if (!kernels) return known ? L3_ERROR_UNSUPPORTED : L3_ERROR_ARGUMENT;
  l3::g_chosen.store(kernels, std::memory_order_relaxed);
  return L3_OK;
}
