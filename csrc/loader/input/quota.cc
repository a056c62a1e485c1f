#include "input/quota.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace dali_l3::loader {

class Quota::State final : public Memory {
 public:
  State(std::shared_ptr<Memory> arena, size_t limit) : arena_(std::move(arena)), limit_(limit) {}

  bool take(size_t bytes) {
    std::lock_guard lock(mutex_);
    if (bytes > limit_ - used_) return false;
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return true;
  }

  void give_back(size_t bytes) {
    std::lock_guard lock(mutex_);
    used_ -= bytes;
  }

  void take_back(uint8_t *block, size_t size) override {
    arena_->take_back(block, size);
    give_back(block_size(size));
  }

  size_t used() const {
    std::lock_guard lock(mutex_);
    return used_;
  }

  size_t peak() const {
    std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  const std::shared_ptr<Memory> arena_;
  const size_t limit_;
  mutable std::mutex mutex_;  // guards all that follows
  size_t used_ = 0, peak_ = 0;
};

Quota::Quota(Arena &arena, size_t limit) : arena_(arena), state_(std::make_shared<State>(arena.memory(), limit)) {}

Block Quota::allocate(size_t size) {
  if (size > kUnlimited || !state_->take(block_size(size))) return nullptr;
  try {
    return {arena_.allocate(size).release(), FreeBlock{state_, size}};
  } catch (...) {
    state_->give_back(block_size(size));
    throw;
  }
}

size_t Quota::used() const { return state_->used(); }
size_t Quota::peak() const { return state_->peak(); }

}  // namespace dali_l3::loader
