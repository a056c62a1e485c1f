// What can be told of a BMP file by its header and its size.
#pragma once

#include <optional>
#include <string>

#include "checks/image_size.h"
#include "checks/read_at.h"

namespace dali_l3::loader {

/** Checks the header of a file with the signature of BMP, and, unless its pixels are compressed, that they all are
 * there. Returns what is wrong, or an empty string. */
std::string check_bmp_header(uint64_t file_size, const ReadAt &read);

/** The size that the header gives; nothing where it gives none. */
std::optional<ImageSize> bmp_size(const ReadAt &read);

}  // namespace dali_l3::loader
