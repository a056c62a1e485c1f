#include "threads.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>

#include "helpers.h"

namespace dali_l3::python {
namespace {

namespace py = pybind11;
using Clock = std::chrono::steady_clock;

// Seldom, because another thread may keep the GIL for milliseconds.
constexpr auto kSignalsInterval = std::chrono::milliseconds(100);

class Work {
 public:
  Work(size_t count, const std::function<void(size_t)> &work) : count_(count), work_(work) {}

  // Does what is left, item by item, calling `between` after each.
  template <typename Between>
  void run(const Between &between) {
    for (size_t item; (item = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) {
      try {
        work_(item);
        between();
      } catch (...) {
        fail(item);
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Items are begun in order, so all that come before this one have been, and the first to fail is the same each time.
  void fail(size_t item) {
    next_ = count_;
    std::lock_guard lock(mutex_);
    if (item > failed_) return;
    failed_ = item;
    failure_ = std::current_exception();
  }

  const size_t count_;
  const std::function<void(size_t)> &work_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  size_t failed_ = std::numeric_limits<size_t>::max();
  std::exception_ptr failure_;
};

void check_signals() {
  py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

void run_in_threads(size_t count, int threads, const std::function<void(size_t)> &work) {
  Work shared(count, work);
  {
    py::gil_scoped_release release;
    const std::function<void()> help = [&] { shared.run([] {}); };
    const Helpers helpers(count == 0 ? 0 : std::min<size_t>(threads, count) - 1, help);
    auto checked = Clock::now();
    shared.run([&] {
      if (Clock::now() - checked < kSignalsInterval) return;
      check_signals();
      checked = Clock::now();
    });
  }
  shared.rethrow();
}

}  // namespace dali_l3::python
