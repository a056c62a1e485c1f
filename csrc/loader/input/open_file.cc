#include "input/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "input/arena.h"

namespace dali_l3::loader {
namespace {

// Not std::system_error, to whose message DALI adds the same words again for each time that it passes the error on.
[[noreturn]] void fail_with_errno(const std::string &path) {
  fail_file(path, std::generic_category().message(errno), errno);
}

bool refuses_direct(int error) { return error == EINVAL || error == EOPNOTSUPP; }

}  // namespace

void fail_file(const std::string &path, const std::string &problem, int number) {
  throw FileError(path, problem, number);
}

OpenFile::OpenFile(const std::string &path, bool direct) : path_(path), direct_(direct) {
  open(direct ? O_DIRECT : 0);
  if (descriptor_ < 0 && direct && refuses_direct(errno)) {
    direct_ = false;
    open(0);
  }
  if (descriptor_ < 0) fail_with_errno(path_);
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void OpenFile::open(int flags) {
  do {
    // Not to wait for a writer where the path is a FIFO.
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
  } while (descriptor_ < 0 && errno == EINTR);
}

uint64_t OpenFile::size() const {
  struct stat status;
  if (fstat(descriptor_, &status) != 0) fail_with_errno(path_);
  if (S_ISDIR(status.st_mode)) fail_file(path_, "is a directory, not a file", EISDIR);
  if (!S_ISREG(status.st_mode)) fail_file(path_, "is not a regular file", EINVAL);
  if (status.st_size == 0) fail_file(path_, "is empty");
  return static_cast<uint64_t>(status.st_size);
}

bool OpenFile::read(uint8_t *data, size_t size) {
  for (size_t done = 0; done < size;) {
    const size_t start = done / kPage * kPage;  // where a direct read may begin
    const ssize_t count = pread(descriptor_, data + start, whole_pages(size) - start, off_t(start));
    if (count >= 0) {
      if (start + size_t(count) <= done) return false;
      done = start + size_t(count);
    } else if (direct_ && refuses_direct(errno)) {
      direct_ = false;
      if (fcntl(descriptor_, F_SETFL, 0) != 0) fail_with_errno(path_);
    } else if (errno != EINTR) {
      fail_with_errno(path_);
    }
  }
  return true;
}

size_t OpenFile::read_at(uint64_t offset, std::span<uint8_t> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = pread(descriptor_, bytes.data() + done, bytes.size() - done, off_t(offset + done));
    if (count == 0) break;
    if (count > 0)
      done += size_t(count);
    else if (errno != EINTR)
      fail_with_errno(path_);
  }
  return done;
}

void OpenFile::drop_from_page_cache() { posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }

}  // namespace dali_l3::loader
