// A file of which any range can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dali_l3::loader {

/** An open file, wherever it is stored. Threads may share it. Its functions throw FileError. */
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;

  /** Bytes, at least 1: an empty file is refused. */
  virtual uint64_t size() const = 0;

  /**
   * Reads a range to memory of whole_pages(size) bytes, aligned to kPage; past the page cache if the file was opened so
   * and its file system permits. Returns false if the file ends before the range does.
   */
  virtual bool read(uint64_t offset, size_t size, uint8_t *data) = 0;

  /** Reads bytes from an offset on, if the file was not opened past the page cache. Returns how many: fewer than asked
   * for only at the end of the file. */
  virtual size_t read_at(uint64_t offset, std::span<uint8_t> bytes) const = 0;
};

}  // namespace dali_l3::loader
