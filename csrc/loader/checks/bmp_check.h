// What can be told of a BMP file by its header and its size.
#pragma once

#include <string>

#include "checks/read_at.h"

namespace dali_l3::loader {

/** Checks the header of a file with the signature of BMP, and, unless its pixels are compressed, that they all are
 * there. Returns what is wrong, or an empty string. */
std::string check_bmp_header(uint64_t file_size, const ReadAt &read);

}  // namespace dali_l3::loader
