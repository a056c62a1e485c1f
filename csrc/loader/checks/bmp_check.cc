#include "checks/bmp_check.h"

#include <cstdlib>

namespace dali_l3::loader {
namespace {

constexpr uint32_t kCoreHeader = 12, kShortHeader = 16;  // bytes; later headers are longer and begin as the second
constexpr uint32_t kPlain = 0, kMasks = 3, kMasksWithAlpha = 6;  // ways of compression

struct BmpHeader {
  uint32_t pixels;  // where they begin
  int64_t width, height;
  uint32_t bits;  // of a pixel
  uint32_t compression;
};

// Returns what is wrong with the header, or an empty string.
std::string read_header(const ReadAt &read, BmpHeader &header) {
  uint8_t bytes[34] = {};
  const size_t size = read(0, bytes);
  const auto field = [&](size_t at, size_t length) { return uint32_t(little_endian({bytes + at, length})); };
  if (size < 14 + kCoreHeader) return "the file ends within the BMP header";
  if (const uint32_t header_size = field(14, 4); header_size == kCoreHeader) {
    header = {field(10, 4), field(18, 2), field(20, 2), field(24, 2), kPlain};
  } else if (size < (header_size == kShortHeader ? 30 : sizeof bytes)) {
    return "the file ends within the BMP header";
  } else {
    header = {field(10, 4), int32_t(field(18, 4)), std::abs(int64_t(int32_t(field(22, 4)))), field(28, 2),
              header_size == kShortHeader ? kPlain : field(30, 4)};
  }
  return header.width < 1 || header.height < 1 ? "the BMP header does not give the image's size" : "";
}

}  // namespace

std::string check_bmp_header(uint64_t file_size, const ReadAt &read) {
  BmpHeader header;
  if (std::string problem = read_header(read, header); !problem.empty()) return problem;
  if (header.compression != kPlain && header.compression != kMasks && header.compression != kMasksWithAlpha) return "";
  if (header.bits < 1 || header.bits > 32)
    return "the BMP header has pixels of " + std::to_string(header.bits) + " bits";

  const uint64_t row_bits = uint64_t(header.width) * header.bits, row = (row_bits + 31) / 32 * 4,
                 last_row = (row_bits + 7) / 8;
  const uint64_t before_last = file_size - std::min(file_size, header.pixels + last_row);
  if (file_size < header.pixels + last_row || before_last / row < uint64_t(header.height) - 1)
    return "the file ends before its last row of pixels";
  return "";
}

std::optional<ImageSize> bmp_size(const ReadAt &read) {
  BmpHeader header;
  if (!read_header(read, header).empty()) return {};
  return ImageSize{uint64_t(header.height), uint64_t(header.width)};
}

}  // namespace dali_l3::loader
