// An encoded image in memory or in a file, opened for a region of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "arrays.h"
#include "loader/input/open_file.h"

namespace dali_l3::python {

// What the header of a file says. Throws Failure, loader::FileError.
l3_info peek_file(const loader::OpenFile &file, const std::string &path);

// A path as the system has it. Needs the GIL.
std::string fs_encoded(const py::handle &path);

class EncodedImage {
 public:
  // `image`: bytes-like, or a str, the path of a file. Needs the GIL, as its end does.
  EncodedImage(const py::handle &image, size_t number, const std::optional<Roi> &roi);

  // Reads what the region needs, and checks it but for the tiles. Throws Failure, loader::FileError.
  void open();

  // Decodes some of the region's tiles. Throws Failure.
  void decode(const l3_output &output, uint32_t options, uint32_t first, uint32_t count) const;

  bool is_file() const { return !bytes_; }
  const l3_info &info() const { return file_.info; }
  const l3_rect &region() const { return region_; }

  // Of the region.
  uint32_t tile_count() const { return l3_region_tile_count(&file_, &region_); }

  // "path: problem" or "image 3: problem".
  std::string named(const std::string &problem) const { return name_ + ": " + problem; }

 private:
  void open_bytes(const void *data, size_t size);
  void open_file();

  std::string name_;
  std::optional<BytesView> bytes_;  // else name_ is the path of a file
  std::optional<Roi> roi_;
  std::unique_ptr<uint8_t[]> memory_;  // as long as the file, but only what is needed has been read
  l3_file file_{};
  l3_rect region_{};
};

}  // namespace dali_l3::python
