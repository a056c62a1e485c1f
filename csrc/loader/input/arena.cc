// Holes in reserved address space, and which of them are resident.

#include "input/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <utility>

namespace dali_l3::loader {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kRange = size_t{1} << 30;
constexpr size_t kMaxBlock = size_t{1} << 62;  // sums with it do not overflow
constexpr int kMadviseCold = 20;               // MADV_COLD of Linux 5.4, which older C libraries do not name

uint8_t *align_down(uint8_t *pointer, size_t alignment) {
  return pointer - reinterpret_cast<uintptr_t>(pointer) % alignment;
}
uint8_t *align_up(uint8_t *pointer, size_t alignment) { return align_down(pointer + alignment - 1, alignment); }

// Address space, advised for reads of files.
class Range {
 public:
  explicit Range(size_t min_size)
      : size_((std::max(min_size, kRange) + kHugePage - 1) / kHugePage * kHugePage),
        // Aligning it leaves a gap on at least one side, so that no hole ever reaches from one range into another.
        mapping_(mmap(nullptr, size_ + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0)) {
    if (mapping_ == MAP_FAILED) {
      throw std::system_error(errno, std::generic_category(),
                              "Cannot reserve " + std::to_string(size_) + " bytes for files");
    }
    madvise(begin(), size_, MADV_DONTFORK);
    madvise(begin(), size_, MADV_HUGEPAGE);
  }
  ~Range() { munmap(mapping_, size_ + kHugePage); }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

  uint8_t *begin() const { return align_up(static_cast<uint8_t *>(mapping_), kHugePage); }
  size_t size() const { return size_; }
  bool contains(const uint8_t *pointer) const { return pointer >= begin() && pointer < begin() + size_; }

  void avoid_huge_pages() {
    if (!huge_pages_) return;
    huge_pages_ = false;
    madvise(begin(), size_, MADV_NOHUGEPAGE);
  }

 private:
  size_t size_;
  void *mapping_;
  bool huge_pages_ = true;
};

struct Hole {
  uint8_t *begin;
  size_t size;
};

// Holes, of which no two adjoin.
class FreeList {
 public:
  size_t bytes() const { return bytes_; }

  // Forgets the hole, and with it those that adjoin, if there is no memory to note it in: destructors free blocks.
  void add(uint8_t *begin, size_t size) noexcept {
    if (size == 0) return;
    auto next = by_address_.lower_bound(begin);
    if (next != by_address_.end() && begin + size == next->first) {
      size += next->second;
      next = erase(next);
    }
    if (next != by_address_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == begin) {
        begin = previous->first;
        size += previous->second;
        erase(previous);
      }
    }
    try {
      by_size_.emplace(size, begin);
      by_address_.emplace(begin, size);
      bytes_ += size;
    } catch (const std::bad_alloc &) {
      by_size_.erase({size, begin});
    }
  }

  // The front of the smallest hole that is large enough, or null.
  uint8_t *take(size_t size) {
    const auto found = by_size_.lower_bound({size, nullptr});
    if (found == by_size_.end()) return nullptr;
    const Hole hole = take(found);
    add(hole.begin + size, hole.size - size);
    return hole.begin;
  }

  // There must be one.
  Hole take_smallest() { return take(by_size_.begin()); }

 private:
  using ByAddress = std::map<uint8_t *, size_t>;
  using BySize = std::set<std::pair<size_t, uint8_t *>>;

  Hole take(BySize::iterator found) {
    const Hole hole{found->second, found->first};
    erase(by_address_.find(hole.begin));
    return hole;
  }

  ByAddress::iterator erase(ByAddress::iterator hole) {
    bytes_ -= hole->second;
    by_size_.erase({hole->second, hole->first});
    return by_address_.erase(hole);
  }

  ByAddress by_address_;
  BySize by_size_;
  size_t bytes_ = 0;
};

}  // namespace

class Arena::State final : public Memory {
 public:
  explicit State(size_t max_idle) : max_idle_(max_idle) {}

  uint8_t *take(size_t asked) {
    const size_t size = block_size(asked);
    std::lock_guard lock(mutex_);
    uint8_t *block = idle_.take(size);
    if (!block) block = bare_.take(size);
    if (!block) {
      const Range &range = ranges_.emplace_back(size);
      reserved_ += range.size();
      bare_.add(range.begin(), range.size());
      block = bare_.take(size);
      if (!block) throw std::bad_alloc();
    }
    used_ += size;
    return block;
  }

  void take_back(uint8_t *block, size_t asked) override {
    const size_t size = block_size(asked);
    std::lock_guard lock(mutex_);
    used_ -= size;
    idle_.add(block, size);
    while (idle_.bytes() > max_idle_) give_back(idle_.take_smallest());
  }

  size_t used() const {
    std::lock_guard lock(mutex_);
    return used_;
  }
  size_t idle() const {
    std::lock_guard lock(mutex_);
    return idle_.bytes();
  }
  size_t reserved() const {
    std::lock_guard lock(mutex_);
    return reserved_;
  }

 private:
  void give_back(Hole hole) {
    uint8_t *begin = align_up(hole.begin, kHugePage), *end = align_down(hole.begin + hole.size, kHugePage);
    if (begin < end) {
      // Whole huge pages first.
      idle_.add(hole.begin, begin - hole.begin);
      idle_.add(end, hole.begin + hole.size - end);
    } else {
      begin = hole.begin;
      end = hole.begin + hole.size;
      // The system would make what is left of the huge page whole again, some time later.
      std::find_if(ranges_.begin(), ranges_.end(), [&](const Range &range) {
        return range.contains(begin);
      })->avoid_huge_pages();
      // It would also keep all of a huge page until it is short of memory; this breaks it up.
      madvise(begin, end - begin, kMadviseCold);
    }
    madvise(begin, end - begin, MADV_DONTNEED);
    bare_.add(begin, end - begin);
  }

  const size_t max_idle_;
  mutable std::mutex mutex_;  // guards all that follows
  std::deque<Range> ranges_;
  FreeList idle_;  // resident
  FreeList bare_;  // never written, or given back
  size_t used_ = 0, reserved_ = 0;
};

Arena::Arena(size_t max_idle) : state_(std::make_shared<State>(max_idle)) {}

Block Arena::allocate(size_t size) {
  if (size > kMaxBlock)
    throw std::system_error(std::make_error_code(std::errc::not_enough_memory), "Cannot reserve memory for files");
  return {state_->take(size), FreeBlock{state_, size}};
}

std::shared_ptr<Memory> Arena::memory() const { return state_; }

size_t Arena::used() const { return state_->used(); }
size_t Arena::idle() const { return state_->idle(); }
size_t Arena::reserved() const { return state_->reserved(); }

}  // namespace dali_l3::loader
