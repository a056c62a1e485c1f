#include "temporary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "input/open_file.h"

namespace dali_l3::loader {

TemporaryFile::TemporaryFile(const std::string &target) {
  static std::atomic<unsigned> count = 0;
  path_ = target + "." + std::to_string(getpid()) + "-" + std::to_string(count++) + ".tmp";
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail();
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!path_.empty()) unlink(path_.c_str());
}

void TemporaryFile::write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count >= 0)
      bytes = bytes.subspan(static_cast<size_t>(count));
    else if (errno != EINTR)
      fail();
  }
}

void TemporaryFile::rename_to(const std::string &target) {
  if (fsync(descriptor_) != 0 || rename(path_.c_str(), target.c_str()) != 0) fail();
  path_.clear();
}

void TemporaryFile::fail() const { fail_file(path_, std::generic_category().message(errno), errno); }

}  // namespace dali_l3::loader
