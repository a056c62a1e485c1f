// What can be told of a JPEG file without decoding it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "checks/image_size.h"
#include "checks/read_at.h"

namespace dali_l3::loader {

/** Where a JPEG file's pixels begin and what their frame says of them, or what is wrong before. */
struct JpegScan {
  uint64_t begin = 0;
  std::optional<ImageSize> size = {};  ///< none if the height comes after the pixels
  std::string problem;                 ///< empty: nothing
};

/** Walks over the segments of a file with the signature of JPEG up to its first scan. */
JpegScan find_jpeg_scan(const ReadAt &read);

/** Checks that, and that the mark of the file's end comes after it. Returns what is wrong, or an empty string. */
std::string check_jpeg(std::span<const uint8_t> file);

}  // namespace dali_l3::loader
