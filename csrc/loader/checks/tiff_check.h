// What can be told of a TIFF file by its first directory and its size.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "checks/image_size.h"
#include "checks/read_at.h"

namespace dali_l3::loader {

/** Checks that the first directory of a file with the signature of TIFF or BigTIFF lies inside the file. Returns what
 * is wrong, or an empty string. */
std::string check_tiff_header(uint64_t file_size, const ReadAt &read);

/** Checks that, and that the strips or tiles of the first image lie inside the file. Returns what is wrong, or an empty
 * string. */
std::string check_tiff(std::span<const uint8_t> file);

/** The size of the first image; nothing where its directory gives none. */
std::optional<ImageSize> tiff_size(std::span<const uint8_t> file);

}  // namespace dali_l3::loader
