// Whether a file's header is whole.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "file_format.h"

namespace dali_l3::loader {

/** Gives the bytes of a file from an offset on; fewer than asked for only at the file's end. */
using ReadAt = std::function<size_t(uint64_t offset, std::span<uint8_t> bytes)>;

/**
 * Checks that an L3, PNG or JPEG file holds all that a decoder needs before the pixels, and an L3 file as many bytes as its header
 * announces. Other formats pass.
 *
 * @throws std::runtime_error, naming the file
 */
void check_header(const std::string &path, FileFormat format, uint64_t file_size, const ReadAt &read);

}  // namespace dali_l3::loader
