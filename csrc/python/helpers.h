// Threads that wait between calls, because to wake one takes a fraction of the time to start one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace dali_l3::python {

class Helper;

// Some threads for one task. Those of earlier calls are taken before new ones are started; no more than there are CPUs
// wait for the next call, and none lasts through a fork.
class Helpers {
 public:
  // Lets `count` threads do `task`, all the same; fewer, if no more are to be had.
  Helpers(size_t count, const std::function<void()> &task);
  // Waits for those that have begun; the others need not begin any more.
  ~Helpers();
  Helpers(const Helpers &) = delete;
  Helpers &operator=(const Helpers &) = delete;

 private:
  std::vector<std::unique_ptr<Helper>> helpers_;
};

}  // namespace dali_l3::python
