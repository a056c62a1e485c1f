#include "input/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace dali_l3::loader {

size_t OpenFiles::default_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 0;
  return std::clamp<size_t>(limit.rlim_cur / 4, 16, 4096);
}

OpenFiles::OpenFiles(bool direct, size_t limit) : direct_(direct), limit_(std::max<size_t>(limit, 1)) {}

std::shared_ptr<OpenFile> OpenFiles::open(const std::string &path) {
  {
    std::lock_guard lock(mutex_);
    if (const auto found = by_path_.find(path); found != by_path_.end()) {
      by_use_.splice(by_use_.begin(), by_use_, found->second);
      return found->second->second;
    }
  }
  auto file = std::make_shared<OpenFile>(path, direct_);  // others need not wait for the disk

  std::shared_ptr<OpenFile> closed;  // when the lock is no longer held
  std::lock_guard lock(mutex_);
  if (const auto found = by_path_.find(path); found != by_path_.end()) return found->second->second;
  by_use_.emplace_front(path, file);
  by_path_.emplace(by_use_.front().first, by_use_.begin());
  if (by_use_.size() > limit_) {
    closed = std::move(by_use_.back().second);
    by_path_.erase(by_use_.back().first);
    by_use_.pop_back();
  }
  return file;
}

}  // namespace dali_l3::loader
