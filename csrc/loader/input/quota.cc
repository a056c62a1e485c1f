#include "input/quota.h"

#include <algorithm>
#include <mutex>

namespace dali_l3::loader {

class Quota::State {
 public:
  explicit State(size_t limit) : limit_(limit) {}

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

  size_t used() const {
    std::lock_guard lock(mutex_);
    return used_;
  }

  size_t peak() const {
    std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  const size_t limit_;
  mutable std::mutex mutex_;  // guards all that follows
  size_t used_ = 0, peak_ = 0;
};

Quota::Quota(Arena &arena, size_t limit) : arena_(arena), state_(std::make_shared<State>(limit)) {}

std::shared_ptr<uint8_t> Quota::allocate(size_t size) {
  if (size > kUnlimited) return nullptr;
  const size_t bytes = block_size(size);
  if (!state_->take(bytes)) return nullptr;
  const std::shared_ptr<void> share(state_.get(), [state = state_, bytes](void *) { state->give_back(bytes); });
  const std::shared_ptr<uint8_t> block = arena_.allocate(size);
  return {block.get(), [block, share](uint8_t *) {}};
}

size_t Quota::used() const { return state_->used(); }
size_t Quota::peak() const { return state_->peak(); }

}  // namespace dali_l3::loader
