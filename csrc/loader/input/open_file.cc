#include "input/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>

#include "input/arena.h"

namespace dali_l3::loader {
namespace {

// Not std::system_error, to whose message DALI adds the same words again for each time that it passes the error on.
[[noreturn]] void fail_with_errno(const std::string &path) {
  fail_file(path, std::generic_category().message(errno), errno);
}

// Where direct reads may begin at most disks; at the others, at a page.
constexpr size_t kSector = 512;

// Of memory that ranges which begin elsewhere are read to first.
constexpr size_t kBounce = size_t{1} << 20;

constexpr size_t round_up(size_t size, size_t alignment) { return (size + alignment - 1) / alignment * alignment; }

struct Free {
  void operator()(uint8_t *memory) const { std::free(memory); }
};

void require_regular(const std::string &path, const struct stat &status) {
  if (S_ISDIR(status.st_mode)) fail_file(path, "is a directory, not a file", EISDIR);
  if (!S_ISREG(status.st_mode)) fail_file(path, "is not a regular file", EINVAL);
}

bool refuses_direct(int error) { return error == EINVAL || error == EOPNOTSUPP; }

}  // namespace

void fail_file(const std::string &path, const std::string &problem, int number) {
  throw FileError(path, problem, number);
}

std::unique_ptr<std::ifstream> open_text(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) fail_with_errno(path);
  require_regular(path, status);
  auto file = std::make_unique<std::ifstream>(path);
  if (!*file) fail_with_errno(path);
  return file;
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
  require_regular(path_, status);
  if (status.st_size == 0) fail_file(path_, "is empty");
  return static_cast<uint64_t>(status.st_size);
}

bool OpenFile::read(uint64_t offset, size_t size, uint8_t *data) {
  if (!direct_) return read_aligned(offset, size, 1, data);
  if (offset % kPage == 0) return read_aligned(offset, size, kPage, data);
  if (offset % kSector == 0 && !sectors_refused_) return read_aligned(offset, size, kSector, data);
  return read_by_copying(offset, size, data);
}

// Direct reads begin at multiples of `alignment`, as the offset does, and are of multiples of it.
bool OpenFile::read_aligned(uint64_t offset, size_t size, size_t alignment, uint8_t *data) {
  for (size_t done = 0; done < size;) {
    const size_t start = done / alignment * alignment;
    const bool direct = direct_;  // another thread may find out meanwhile that it is refused
    const ssize_t count =
        pread(descriptor_, data + start, round_up(size, alignment) - start, static_cast<off_t>(offset + start));
    if (count >= 0) {
      if (start + size_t(count) <= done) return false;
      done = start + size_t(count);
    } else if (direct && refuses_direct(errno)) {
      if (alignment < kPage) {
        sectors_refused_ = true;
        return read_by_copying(offset, size, data);
      }
      if (fcntl(descriptor_, F_SETFL, 0) != 0) fail_with_errno(path_);
      direct_ = false;  // only now may others read from anywhere
    } else if (errno != EINTR) {
      fail_with_errno(path_);
    }
  }
  return true;
}

// Reads whole pages to other memory, piece by piece, and copies the range from there.
bool OpenFile::read_by_copying(uint64_t offset, size_t size, uint8_t *data) {
  const std::unique_ptr<uint8_t, Free> bounce(static_cast<uint8_t *>(std::aligned_alloc(kPage, kBounce)));
  if (!bounce) throw std::bad_alloc();
  for (size_t done = 0; done < size;) {
    const size_t skip = (offset + done) % kPage;
    const size_t piece = std::min(size - done, kBounce - skip);
    if (!read_aligned(offset + done - skip, skip + piece, kPage, bounce.get())) return false;
    std::memcpy(data + done, bounce.get() + skip, piece);
    done += piece;
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

bool OpenFile::read_parts(std::span<const FilePart> parts) const {
  std::array<uint8_t, kMaxGap> gap;
  std::array<iovec, IOV_MAX> pieces;
  while (!parts.empty()) {
    const uint64_t begin = parts.front().offset;
    uint64_t end = begin;
    size_t count = 0;
    for (; !parts.empty() && count + 2 <= pieces.size(); parts = parts.subspan(1)) {
      const auto [offset, bytes] = parts.front();
      if (offset < end || offset - end > kMaxGap) break;
      if (offset > end) pieces[count++] = {gap.data(), offset - end};
      pieces[count++] = {bytes.data(), bytes.size()};
      end = offset + bytes.size();
    }
    const ssize_t done = preadv(descriptor_, pieces.data(), static_cast<int>(count), static_cast<off_t>(begin));
    if (done < 0 || static_cast<uint64_t>(done) != end - begin) return false;
  }
  return true;
}

void OpenFile::drop_from_page_cache(uint64_t offset, size_t size) {
  posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_DONTNEED);
}

}  // namespace dali_l3::loader
