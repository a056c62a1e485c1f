// Work that signals can end.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <future>

namespace dali_l3::python {

/**
 * Runs a function in a thread, and ends it soon when a signal has come whose handler raises. Needs the GIL, which
 * others have meanwhile, the function, too.
 *
 * @param function takes a `const std::atomic<bool> *`: whether to end soon
 */
template <typename Function>
auto interruptibly(const Function &function) {
  namespace py = pybind11;
  std::atomic<bool> cancelled = false;
  auto result = std::async(std::launch::async, [&] { return function(&cancelled); });
  while (true) {
    {
      const py::gil_scoped_release release;
      if (result.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set interruption;
    cancelled = true;
    {
      const py::gil_scoped_release release;  // the function may ask Python before it ends
      result.wait();
    }
    throw py::error_already_set(interruption);
  }
  return result.get();
}

}  // namespace dali_l3::python
