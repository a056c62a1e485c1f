// A file that is open for reading.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "input/random_access_file.h"

namespace dali_l3::loader {

/** What is wrong with a file; what() is "path: problem". */
struct FileError : std::runtime_error {
  FileError(const std::string &path, const std::string &problem, int number)
      : std::runtime_error(path + ": " + problem), path(path), problem(problem), number(number) {}
  std::string path, problem;
  int number;  ///< the errno of the system call that failed; 0: the file is to blame
};

/** Throws FileError. */
[[noreturn]] void fail_file(const std::string &path, const std::string &problem, int number = 0);

/** Opens a text file to be read line by line. Not what is no regular file: to open a FIFO is to wait for its writer.
 * @throws FileError */
std::unique_ptr<std::ifstream> open_text(const std::string &path);

/** A part of a file, and memory for it. */
struct FilePart {
  uint64_t offset;
  std::span<uint8_t> bytes;
};

/** Bytes that it takes less time to read than to make another system call. */
inline constexpr size_t kMaxGap = 4096;

/** A regular file of a local or mounted file system, open for reading. */
class OpenFile final : public RandomAccessFile {
 public:
  /** Never waits for anything but the disk, whatever stands at the path. `direct`: past the page cache, unless the file
   * system refuses. */
  explicit OpenFile(const std::string &path, bool direct = false);
  ~OpenFile() override;
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;

  /** Whether reads go past the page cache: not if the file system has refused that. */
  bool direct() const { return direct_; }

  uint64_t size() const override;
  bool read(uint64_t offset, size_t size, uint8_t *data) override;
  size_t read_at(uint64_t offset, std::span<uint8_t> bytes) const override;

  /** Reads parts of the file: those that begin at most kMaxGap bytes behind the one before, with one system call for
   * many.
   *
   * @return whether all of them are there and could be read; if not, reading one of them after the other says why
   */
  bool read_parts(std::span<const FilePart> parts) const;

  /** Of a range; of all of the file if `size` is 0. */
  void drop_from_page_cache(uint64_t offset = 0, size_t size = 0);

 private:
  void open(int flags);
  bool read_aligned(uint64_t offset, size_t size, size_t alignment, uint8_t *data);
  bool read_by_copying(uint64_t offset, size_t size, uint8_t *data);

  const std::string path_;
  std::atomic<bool> direct_;
  std::atomic<bool> sectors_refused_ = false;  // direct reads that begin at a sector and not at a page
  int descriptor_ = -1;
};

}  // namespace dali_l3::loader
