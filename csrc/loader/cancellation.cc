#include "cancellation.h"

#include <stdexcept>

namespace dali_l3::loader {
namespace {

// Not in the header: the adapters to DALI would have one of their own beside the library's.
thread_local const std::atomic<bool> *cancelled_flag = nullptr;

}  // namespace

CancellationScope::CancellationScope(const std::atomic<bool> &cancelled) : outer_(cancelled_flag) {
  cancelled_flag = &cancelled;
}

CancellationScope::~CancellationScope() { cancelled_flag = outer_; }

void throw_if_cancelled() {
  if (cancelled_flag && *cancelled_flag) throw std::runtime_error("The planning of epochs was interrupted");
}

}  // namespace dali_l3::loader
