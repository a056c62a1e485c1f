// The memory of a device. Its addresses mean nothing to the host, which dies where it follows one; they are never used
// again, and allocations do not touch each other.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

// What a kernel or the host may not do.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Which thread of which launch wrote a byte last, and which read it. Launches are numbered from 1 on.
struct GlobalAccess {
  uint32_t write_launch = 0, writer = 0, read_launch = 0, reader = 0;
};

struct Allocation {
  uint64_t begin;
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> written;        // 1: the byte holds something
  std::vector<GlobalAccess> accesses;  // empty until a kernel runs that is checked for races
};

class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  uint64_t allocate(size_t size);
  bool release(uint64_t begin);  // false: there is no such allocation
  size_t allocations() const { return allocations_.size(); }

  bool is_device(uint64_t address) const { return address - base_ < kSpace; }

  // The allocation that holds all these bytes, or null.
  Allocation *find(uint64_t address, size_t size);

  // Like find(). Throws Fault.
  Allocation &get(uint64_t address, size_t size, const char *what);

 private:
  static constexpr uint64_t kSpace = uint64_t{1} << 40;

  uint64_t base_, next_;
  std::map<uint64_t, Allocation> allocations_;  // by begin
  Allocation *last_ = nullptr;                  // found
};

}  // namespace ptx
