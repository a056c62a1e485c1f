// The height and width that the header of an image file gives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace dali_l3::loader {

struct ImageSize {
  uint64_t height, width;  // pixels, as stored: before a rotation by EXIF

  bool operator==(const ImageSize &) const = default;
};

/**
 * Of an L3, PNG, JPEG, BMP, TIFF, WebP or PNM file, or of an NPY file with an array of (height, width, …). Nothing for
 * other formats, and where the header does not tell.
 */
std::optional<ImageSize> image_size(std::span<const uint8_t> file);

}  // namespace dali_l3::loader
