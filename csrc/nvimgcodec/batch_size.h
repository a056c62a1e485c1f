// How much memory the pixels of a batch take.
#pragma once

#include <atomic>
#include <cstddef>

namespace dali_l3 {

// The framework does not say how large a batch is. But before it has any image of a batch decoded, it asks for each
// whether that is possible. Callers may be any number of threads. Where batches overlap, the sizes are wrong; so only
// the speed of decoding may depend on them.
class BatchSize {
 public:
  // The framework asks about an image whose pixels take `bytes`.
  void Ask(size_t bytes) noexcept {
    if (decoding_.exchange(false, std::memory_order_relaxed)) bytes_.store(0, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  // An image is about to be decoded; returns the bytes of its batch.
  size_t Decode() noexcept {
    if (!decoding_.load(std::memory_order_relaxed)) decoding_.store(true, std::memory_order_relaxed);
    return bytes_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<size_t> bytes_ = 0;
  std::atomic<bool> decoding_ = false;  // since the last question
};

}  // namespace dali_l3
