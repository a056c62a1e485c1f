// What can be told of a PNG file without inflating it.
#pragma once

#include <span>
#include <string>

#include "checks/read_at.h"

namespace dali_l3::loader {

/** Checks the first chunk, the header, of a file with the signature of PNG. Returns what is wrong, or an empty string.
 */
std::string check_png_header(const ReadAt &read);

/** Checks all chunks of such a file, up to the last: that they are whole, their checksums right, and none missing that
 * a decoder needs. Returns what is wrong, or an empty string. */
std::string check_png(std::span<const uint8_t> file);

}  // namespace dali_l3::loader
