// An allocator that fails when it is told to, for a program of which one file includes this.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

/** While it exists, allocations of this thread fail: the one that comes after `others`, or all from that one on. */
class FailingHeap {
 public:
  enum class Fails { once, from_then_on };

  FailingHeap(int64_t others, Fails fails) {
    left_ = others;
    fails_ = fails;
    active_ = true;
    has_failed_ = false;
  }
  ~FailingHeap() { active_ = false; }
  FailingHeap(const FailingHeap &) = delete;
  FailingHeap &operator=(const FailingHeap &) = delete;

  bool has_failed() const { return has_failed_; }
  int64_t left() const { return left_; }  // allocations, until one fails

  static bool fails_now() {
    if (!active_ || left_-- > 0) return false;
    has_failed_ = true;
    if (fails_ == Fails::once) active_ = false;
    left_ = 0;
    return true;
  }

 private:
  static inline thread_local bool active_ = false, has_failed_ = false;
  static inline thread_local int64_t left_ = 0;
  static inline thread_local Fails fails_ = Fails::once;
};

// Not inlined, or the compiler takes malloc and delete for a mismatch.
[[gnu::noinline]] void *operator new(size_t size) {
  void *block = FailingHeap::fails_now() ? nullptr : std::malloc(size);
  if (!block) throw std::bad_alloc();
  return block;
}

// For std::stable_sort, which does without memory if there is none.
[[gnu::noinline]] void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return FailingHeap::fails_now() ? nullptr : std::malloc(size);
}

[[gnu::noinline]] void operator delete(void *block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void *block, size_t) noexcept { operator delete(block); }
