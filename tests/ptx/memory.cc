#include "memory.h"

#include <sys/mman.h>

#include <new>

namespace ptx {
namespace {

constexpr uint64_t kAlignment = 256, kGap = 4096;  // as cudaMalloc aligns
constexpr uint8_t kJunk = 0xCB;

}  // namespace

Memory::Memory() {
  void *const space = mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) throw std::bad_alloc();
  base_ = reinterpret_cast<uint64_t>(space);
  next_ = base_ + kGap;
}

Memory::~Memory() { munmap(reinterpret_cast<void *>(base_), kSpace); }

uint64_t Memory::allocate(size_t size) {
  if (size > base_ + kSpace - next_ - 2 * kGap) throw std::bad_alloc();
  const uint64_t begin = next_;
  next_ += (size + kAlignment - 1) / kAlignment * kAlignment + kGap;
  allocations_[begin] = {begin, std::vector<uint8_t>(size, kJunk), std::vector<uint8_t>(size), {}};
  return begin;
}

bool Memory::release(uint64_t begin) {
  last_ = nullptr;
  return allocations_.erase(begin) == 1;
}

Allocation *Memory::find(uint64_t address, size_t size) {
  const auto holds = [&](const Allocation &one) {
    return address >= one.begin && address - one.begin <= one.bytes.size() &&
           size <= one.bytes.size() - (address - one.begin);
  };
  if (last_ && holds(*last_)) return last_;
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin() || !holds((--after)->second)) return nullptr;
  return last_ = &after->second;
}

Allocation &Memory::get(uint64_t address, size_t size, const char *what) {
  if (Allocation *const found = find(address, size)) return *found;
  throw Fault(std::string(what) + " " + std::to_string(size) + " bytes that are not all in one device allocation");
}

}  // namespace ptx
