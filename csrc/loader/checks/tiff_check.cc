#include "checks/tiff_check.h"

#include <optional>

namespace dali_l3::loader {
namespace {

enum Tag : uint16_t {
  kWidth = 256,
  kHeight = 257,
  kStripOffsets = 273,
  kStripSizes = 279,
  kTileOffsets = 324,
  kTileSizes = 325
};

constexpr uint64_t kMaxEntries = 4096;  // of a directory: as libtiff has it

constexpr const char *kNoDirectory = "the file has no whole TIFF directory where its header says";
constexpr const char *kEndsBeforePixels = "the file ends before the last of its TIFF strips or tiles";

// The first directory of a TIFF file.
class Directory {
 public:
  Directory(uint64_t file_size, const ReadAt &read) : file_size_(file_size), read_(read) {
    uint8_t header[16] = {};
    read(0, header);
    is_big_endian_ = header[0] == 'M';
    is_big_tiff_ = integer({header + 2, 2}) == 43;
    const uint64_t begin = is_big_tiff_ ? integer({header + 8, 8}) : integer({header + 4, 4});
    const std::optional<uint64_t> count = integer_at(begin, is_big_tiff_ ? 8 : 2);
    if (!count) return;
    entries_ = begin + (is_big_tiff_ ? 8 : 2);
    is_whole_ = *count >= 1 && *count <= kMaxEntries && *count <= (file_size_ - entries_) / entry_size();
    count_ = is_whole_ ? *count : 0;
  }

  bool is_whole() const { return is_whole_; }

  // An array of integers that an entry holds or points to.
  struct Array {
    uint64_t begin = 0, count = 0;
    uint32_t integer_size = 0;  // bytes; 0: of no type of integers
  };
  std::optional<Array> find(Tag tag) const {
    for (uint64_t i = 0; i < count_; i++) {
      uint8_t entry[20] = {};
      const uint64_t at = entries_ + i * entry_size();
      read_(at, {entry, entry_size()});
      if (integer({entry, 2}) != tag) continue;
      const uint32_t field = is_big_tiff_ ? 8 : 4;  // bytes of the count, and of the value or its position
      Array array{at + 4 + field, integer({entry + 4, field}), size_of_type(integer({entry + 2, 2}))};
      if (array.count > field / std::max(array.integer_size, 1u)) array.begin = integer({entry + 4 + field, field});
      return array;
    }
    return {};
  }

  std::optional<uint64_t> element(const Array &array, uint64_t index) const {
    if (array.begin > file_size_ || index > file_size_) return {};  // so that nothing wraps
    return integer_at(array.begin + index * array.integer_size, array.integer_size);
  }

 private:
  static uint32_t size_of_type(uint64_t type) {
    constexpr uint64_t kShort = 3, kLong = 4, kLong8 = 16;
    return type == kShort ? 2 : type == kLong ? 4 : type == kLong8 ? 8 : 0;
  }

  uint64_t integer(std::span<const uint8_t> bytes) const {
    return is_big_endian_ ? big_endian(bytes) : little_endian(bytes);
  }

  // Nothing where the file ends before.
  std::optional<uint64_t> integer_at(uint64_t offset, uint32_t size) const {
    uint8_t bytes[8];
    if (offset > file_size_ || read_(offset, {bytes, size}) < size) return {};
    return integer({bytes, size});
  }

  uint32_t entry_size() const { return is_big_tiff_ ? 20 : 12; }

  const uint64_t file_size_;
  const ReadAt &read_;
  bool is_big_endian_ = false, is_big_tiff_ = false, is_whole_ = false;
  uint64_t entries_ = 0, count_ = 0;
};

// Whether the pieces at `offsets`, of `sizes` bytes, lie inside the file.
bool lie_inside(const Directory &directory, const Directory::Array &offsets, const Directory::Array &sizes,
                uint64_t file_size) {
  for (uint64_t i = 0; i < std::min(offsets.count, sizes.count); i++) {
    const auto offset = directory.element(offsets, i), size = directory.element(sizes, i);
    if (!offset || !size || *offset > file_size || *size > file_size - *offset) return false;
  }
  return true;
}

}  // namespace

std::string check_tiff_header(uint64_t file_size, const ReadAt &read) {
  return Directory(file_size, read).is_whole() ? "" : kNoDirectory;
}

std::string check_tiff(std::span<const uint8_t> file) {
  const ReadAt read = read_at(file);
  const Directory directory(file.size(), read);
  if (!directory.is_whole()) return kNoDirectory;
  for (const auto &[offsets_tag, sizes_tag] :
       {std::pair{kStripOffsets, kStripSizes}, std::pair{kTileOffsets, kTileSizes}}) {
    const auto offsets = directory.find(offsets_tag), sizes = directory.find(sizes_tag);
    if (!offsets || !sizes || !offsets->integer_size || !sizes->integer_size) continue;
    if (!lie_inside(directory, *offsets, *sizes, file.size())) return kEndsBeforePixels;
  }
  return "";
}

std::optional<ImageSize> tiff_size(std::span<const uint8_t> file) {
  const ReadAt read = read_at(file);
  const Directory directory(file.size(), read);
  const auto value = [&](Tag tag) -> std::optional<uint64_t> {
    const auto array = directory.find(tag);
    return array && array->integer_size ? directory.element(*array, 0) : std::nullopt;
  };
  const auto height = value(kHeight), width = value(kWidth);
  if (!height || !width) return {};
  return ImageSize{*height, *width};
}

}  // namespace dali_l3::loader
