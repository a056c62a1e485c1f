// An allocator that counts, for a program of which one file includes this.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

inline std::atomic<int64_t> heap_bytes{0};        // of blocks in use, as large as malloc makes them, with its header
inline std::atomic<int64_t> heap_allocations{0};  // so far

inline int64_t heap_size(void *block) { return static_cast<int64_t>(malloc_usable_size(block) + sizeof(size_t)); }

// Not inlined, or the compiler takes malloc and delete for a mismatch.
[[gnu::noinline]] void *operator new(size_t size) {
  void *block = std::malloc(size);
  if (!block) throw std::bad_alloc();
  heap_bytes += heap_size(block);
  heap_allocations++;
  return block;
}

// For std::stable_sort, which does without memory if there is none.
[[gnu::noinline]] void *operator new(size_t size, const std::nothrow_t &) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

[[gnu::noinline]] void operator delete(void *block) noexcept {
  if (block) heap_bytes -= heap_size(block);
  std::free(block);
}

[[gnu::noinline]] void operator delete(void *block, size_t) noexcept { operator delete(block); }
