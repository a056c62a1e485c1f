// Items of work that threads share.
#pragma once

#include <cstddef>
#include <functional>

namespace dali_l3::python {

// Calls work(0) … work(count - 1) in `threads` threads, of which the caller's is one, without the GIL, which the caller
// holds. After a failure nothing more is begun. Throws what the failing call of the lowest number threw, or what a
// signal's handler raised.
void run_in_threads(size_t count, int threads, const std::function<void(size_t)> &work);

}  // namespace dali_l3::python
