// Stands in for the CUDA runtime, as far as this project uses it, over machine.h. The functions are the runtime's own,
// so that programs are built as ever, and linked with this library instead. What follows is for tests.
//
// Nothing happens earlier than it must, or at once, or at random times: work waits in the queues of its streams until
// somebody waits for it. cudaFree and cudaFreeHost do not wait for the device, although CUDA's may: work that is still
// to come finds the memory gone. A kernel's Fault is the error of this and all later calls, as after a crash on a
// device; cudaGetErrorString says what it was.
#pragma once

#include <cstdint>
#include <string>

#include "machine.h"

namespace ptx::runtime {

enum class Streams { kLate, kAtOnce, kRandom };

// A device as new, without memory, streams and events. Those of before must be gone.
struct Setup {
  std::string target = "sm_90";
  Streams streams = Streams::kLate;
  Options options = {};
};
void reset(const Setup &setup);

// Calls that may fail, since reset(): all but those that release something or ask for the last error. And those of one
// function.
uint64_t calls();
uint64_t calls(const std::string &name);

// Makes the call with this number, counted from 1 as calls() does, fail without any effect.
void fail_call(uint64_t number);

// The name of the call that was made to fail, or nothing.
std::string failed_call();

// What has been made and not released.
struct Live {
  size_t device = 0, pinned = 0, streams = 0, events = 0;
  bool operator==(const Live &) const = default;
};
Live live();

// What was launched, since reset(), and what all launches of a kernel that is counted executed.
struct Launch {
  const Kernel *kernel;
  uint32_t blocks, threads;
  std::vector<uint8_t> parameters;
};
std::vector<Launch> launches();
Counts counts(const Kernel &kernel);

}  // namespace ptx::runtime
