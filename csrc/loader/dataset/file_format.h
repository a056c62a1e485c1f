// Image formats, told by signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dali_l3::loader {

enum class FileFormat : uint8_t { unknown, l3, png, jpeg, bmp, tiff, webp, pnm, jpeg2000, gif };  // as in catalogues

inline constexpr size_t kFormats = 10;

/** As people write it: "L3", "PNG", "JPEG 2000", …, "unknown". */
const char *format_name(FileFormat format);

/** So many leading bytes of a file are all that the functions below look at. */
inline constexpr size_t kSniffedBytes = 32;

/** The format of a file that begins with these bytes. Files of the L3 prototype count as L3. */
FileFormat sniff(std::span<const uint8_t> head);

/**
 * What a file that begins with these bytes is called, also one of a format that no reader delivers, such as "NPY" or
 * "JPEG XL"; nullptr if it begins as no image does. The converter goes by these names.
 */
const char *sniffed_name(std::span<const uint8_t> head);

/** Whether a file of this path should begin as an image does, by the ending of its name. */
bool is_named_as_image(std::string_view path);

}  // namespace dali_l3::loader
