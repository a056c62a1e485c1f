// A file that is open for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

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

/** A regular file, open for reading. Its functions throw FileError. */
class OpenFile {
 public:
  /** Never waits for anything but the disk, whatever stands at the path. `direct`: past the page cache, unless the file
   * system refuses. */
  explicit OpenFile(const std::string &path, bool direct = false);
  ~OpenFile();
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;

  /** Whether reads go past the page cache: not if the file system has refused that. */
  bool direct() const { return direct_; }

  /** Bytes, at least 1: an empty file is refused, as is one that is not regular. */
  uint64_t size() const;

  /** Reads the first `size` bytes to memory of whole_pages(size) bytes, aligned to kPage. Returns false if there are
   * fewer. */
  bool read(uint8_t *data, size_t size);

  /** Reads bytes from an offset on, if not direct. Returns how many: fewer than asked for only at the end of the file.
   */
  size_t read_at(uint64_t offset, std::span<uint8_t> bytes) const;

  void drop_from_page_cache();

 private:
  void open(int flags);

  const std::string path_;
  bool direct_;
  int descriptor_ = -1;
};

}  // namespace dali_l3::loader
