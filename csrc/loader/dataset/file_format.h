// Image formats, told by signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dali_l3::loader {

/**
 * L3 files of different profiles differ as those of different formats do, and count as such: `l3` are those of profile
 * `fast`, and the prototype's.
 *
 * Checkpoints and the files of catalogues know formats by their numbers, which therefore stay.
 */
enum class FileFormat : uint8_t { unknown, l3, png, jpeg, bmp, tiff, webp, pnm, jpeg2000, gif, l3_raw, l3_paper };

inline constexpr size_t kFormats = 12;

/** Whether it is L3, of any profile. */
inline bool is_l3(FileFormat format) {
  return format == FileFormat::l3 || format == FileFormat::l3_raw || format == FileFormat::l3_paper;
}

/** As people write it: "L3", "L3 raw", "PNG", "JPEG 2000", …, "unknown". */
const char *format_name(FileFormat format);

/** So many leading bytes of a file are all that the functions below look at. */
inline constexpr size_t kSniffedBytes = 48;

/** The format of a file that begins with these bytes. */
FileFormat sniff(std::span<const uint8_t> head);

/**
 * What a file that begins with these bytes is called, also one of a format that no reader delivers, such as "NPY" or
 * "JPEG XL"; nullptr if it begins as no image does. The converter goes by these names. All L3 files are "L3".
 */
const char *sniffed_name(std::span<const uint8_t> head);

/** Whether a file of this path should begin as an image does, by the ending of its name. */
bool is_named_as_image(std::string_view path);

}  // namespace dali_l3::loader
