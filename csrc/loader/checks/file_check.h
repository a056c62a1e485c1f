// Whether image files are whole and undamaged, as far as that can be told without decoding them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "checks/read_at.h"
#include "dataset/file_format.h"

namespace dali_l3::loader {

/** How closely image files are looked at. */
enum class Check {
  none,
  headers,  ///< what a decoder needs before the pixels
  content,  ///< that, and the file's own checksums, end marks and sizes of parts
};

/**
 * Checks what a decoder needs before the pixels of an L3, PNG, JPEG, BMP, TIFF or WebP file, with few and small reads,
 * and that the file is as long as that says. Other formats pass.
 *
 * @throws std::runtime_error, naming the file
 */
void check_header(const std::string &path, FileFormat format, uint64_t file_size, const ReadAt &read);

/**
 * Checks that of a whole file, and besides: all checksums and the structure of L3 and PNG files, that the mark of its
 * end is in a JPEG file, and that the strips or tiles of its first image lie inside a TIFF file.
 *
 * @throws std::runtime_error, naming the file
 */
void check_content(const std::string &path, FileFormat format, std::span<const uint8_t> file);

/** Throws std::runtime_error, naming the file, if its name ends as that of an image, and it begins as no image does. */
void refuse_garbage(const std::string &path, std::span<const uint8_t> head);

/** So many leading bytes of a file are all that is_lfs_pointer() looks at. */
inline constexpr size_t kLfsBytes = 64;

/** Whether this is a pointer that Git LFS left in the place of a file. */
bool is_lfs_pointer(std::span<const uint8_t> head);
/** Throws std::runtime_error, which says that the file is one. */
[[noreturn]] void fail_lfs_pointer(const std::string &path);
/** Throws it if the file is one. */
void refuse_lfs_pointer(const std::string &path, std::span<const uint8_t> head);

}  // namespace dali_l3::loader
