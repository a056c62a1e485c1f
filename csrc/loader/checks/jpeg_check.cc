#include "checks/jpeg_check.h"

namespace dali_l3::loader {
namespace {

constexpr uint8_t kFill = 0xff, kStandalone = 0x01, kFirstRestart = 0xd0, kStartOfImage = 0xd8, kEndOfImage = 0xd9,
                  kStartOfScan = 0xda;
constexpr uint8_t kFirstFrame = 0xc0, kLastFrame = 0xcf, kHuffmanTable = 0xc4, kExtension = 0xc8, kArithmetic = 0xcc;

bool is_frame(uint8_t marker) {
  return marker >= kFirstFrame && marker <= kLastFrame && marker != kHuffmanTable && marker != kExtension &&
         marker != kArithmetic;
}

}  // namespace

JpegScan find_jpeg_scan(const ReadAt &read) {
  constexpr int kMaxMarkers = 1 << 16;  // so that files of nothing but fill bytes do not hold anybody up
  const auto bad = [](const char *problem) { return JpegScan{.problem = problem}; };
  bool has_frame = false;
  ImageSize size = {};
  uint64_t offset = 2;
  for (int i = 0; i < kMaxMarkers; i++) {
    uint8_t segment[4];  // marker, length
    if (read(offset, segment) < sizeof segment) return bad("the file ends within the JPEG header");
    const uint8_t marker = segment[1];
    if (segment[0] != kFill) return bad("the JPEG header has something else where a marker should be");
    if (marker == kFill) {
      offset++;
    } else if (marker == kStandalone || (marker >= kFirstRestart && marker <= kStartOfImage)) {
      offset += 2;
    } else if (marker == kEndOfImage) {
      return bad("the JPEG file ends before its pixels");
    } else {
      const uint64_t length = big_endian({segment + 2, 2});
      if (length < 2) return bad("the JPEG header has a segment without a length");
      if (is_frame(marker)) {
        has_frame = true;
        uint8_t sizes[4];  // height, width
        if (length >= 7 && read(offset + 5, sizes) == sizeof sizes)
          size = {big_endian({sizes, 2}), big_endian({sizes + 2, 2})};
      }
      offset += 2 + length;
      if (marker == kStartOfScan) {
        uint8_t last;
        if (!has_frame) return bad("the JPEG header does not give the image's size");
        if (read(offset - 1, {&last, 1}) < 1) return bad("the file ends within the JPEG header");
        return {.begin = offset, .size = size.height ? std::optional(size) : std::nullopt, .problem = {}};
      }
    }
  }
  return bad("the JPEG header does not come to an end");
}

std::string check_jpeg(std::span<const uint8_t> file) {
  const JpegScan scan = find_jpeg_scan(read_at(file));
  if (!scan.problem.empty()) return scan.problem;
  // Within the pixels a byte of 0xff is followed by others than this. From the end, where the mark is; some files have
  // bytes after it.
  for (size_t i = file.size(); i >= scan.begin + 2; i--)
    if (file[i - 2] == kFill && file[i - 1] == kEndOfImage) return "";
  return "the JPEG file is cut off: the mark of its end is missing";
}

}  // namespace dali_l3::loader
