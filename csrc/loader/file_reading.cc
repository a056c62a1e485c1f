// Reading whole files with pread.

#include "file_reading.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "arena.h"

namespace dali_l3::loader {
namespace {

[[noreturn]] void fail(const std::string &path, const std::string &problem) { throw std::runtime_error(path + ": " + problem); }

// Not std::system_error, to whose message DALI adds the same words again for each time that it passes the error on.
[[noreturn]] void fail_with_errno(const std::string &path) { fail(path, std::generic_category().message(errno)); }

// A regular file, open for reading.
class OpenFile {
 public:
  OpenFile(const std::string &path, bool direct) : path_(path), direct_(direct) {
    open(direct ? O_DIRECT : 0);
    if (descriptor_ < 0 && errno == EINVAL && direct) {
      direct_ = false;
      open(0);
    }
    if (descriptor_ < 0) fail_with_errno(path_);
  }
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;

  // Whether reads go past the page cache: not if the file system has refused that.
  bool direct() const { return direct_; }

  uint64_t size() const {
    struct stat status;
    if (fstat(descriptor_, &status) != 0) fail_with_errno(path_);
    if (S_ISDIR(status.st_mode)) fail(path_, "is a directory, not a file");
    if (!S_ISREG(status.st_mode)) fail(path_, "is not a regular file");
    return uint64_t(status.st_size);
  }

  // Reads the first `size` bytes to memory of extents(size) bytes. Returns false if there are fewer.
  bool read(uint8_t *data, size_t size) {
    for (size_t done = 0; done < size;) {
      const size_t start = done / kExtent * kExtent;  // where a direct read may begin
      const ssize_t count = pread(descriptor_, data + start, extents(size) - start, off_t(start));
      if (count >= 0) {
        if (start + size_t(count) <= done) return false;
        done = start + size_t(count);
      } else if (errno == EINVAL && direct_) {
        direct_ = false;
        if (fcntl(descriptor_, F_SETFL, 0) != 0) fail_with_errno(path_);
      } else if (errno != EINTR) {
        fail_with_errno(path_);
      }
    }
    return true;
  }

  void drop_from_page_cache() { posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }

 private:
  void open(int flags) {
    do {
      // Not to wait for a writer where the path is a FIFO.
      descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
    } while (descriptor_ < 0 && errno == EINTR);
  }

  const std::string &path_;
  bool direct_;
  int descriptor_ = -1;
};

}  // namespace

FileReader::FileReader(ReadMode mode, std::function<void(const std::string &)> warn) : mode_(mode), warn_(std::move(warn)) {}

FileBytes FileReader::read(const std::string &path, const Allocate &allocate) {
  OpenFile file(path, mode_ == ReadMode::direct);
  const uint64_t size = file.size();
  if (size == 0) fail(path, "is empty");
  if (size > kMaxFileSize) fail(path, "has " + std::to_string(size) + " bytes, more than the " + std::to_string(kMaxFileSize) + " allowed");

  std::shared_ptr<uint8_t> block = allocate(extents(size));
  if (!file.read(block.get(), size) || file.size() != size) fail(path, "changed its size while it was read");
  if (mode_ == ReadMode::direct && !file.direct()) {
    file.drop_from_page_cache();
    if (!warned_.test_and_set()) {
      warn_(path + ": the file system refuses direct reads; its files are read through the page cache, which is slower");
    }
  }
  return {std::move(block), size};
}

}  // namespace dali_l3::loader
