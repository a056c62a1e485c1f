#include "header_check.h"

#include <cstring>
#include <string>

#include "l3/l3.h"
#include "open_file.h"

namespace dali_l3::loader {
namespace {

// The functions return what is wrong, or an empty string.

std::string check_l3(uint64_t file_size, const ReadAt &read) {
  uint8_t header[L3_HEADER_SIZE];
  const size_t size = read(0, header);
  l3_info info;
  l3_error error;
  if (l3_peek(header, size, &info, &error) != L3_OK) return error.message;
  if (file_size < info.file_size)
    return "the file ends after " + std::to_string(file_size) + " of " + std::to_string(info.file_size) + " bytes";
  return "";
}

std::string check_png(const ReadAt &read) {
  uint8_t header[33];  // the signature, and the first chunk: length, type, 13 bytes, checksum
  if (read(0, header) < sizeof header) return "the file ends within the PNG header";
  if (std::memcmp(header + 8, "\0\0\0\x0dIHDR", 8) != 0) return "the PNG file does not begin with a header";
  return "";
}

// Walks over the segments up to the start of the scan, which is where the pixels begin.
std::string check_jpeg(const ReadAt &read) {
  constexpr uint8_t kFill = 0xff, kStandalone = 0x01, kFirstRestart = 0xd0, kStartOfImage = 0xd8, kEndOfImage = 0xd9, kStartOfScan = 0xda;
  constexpr int kMaxMarkers = 1 << 16;  // so that files of nothing but fill bytes do not hold anybody up
  constexpr uint8_t kHuffmanTable = 0xc4, kExtension = 0xc8, kArithmetic = 0xcc;
  bool has_frame = false;
  uint64_t offset = 2;
  for (int i = 0; i < kMaxMarkers; i++) {
    uint8_t segment[4];  // marker, length
    if (read(offset, segment) < sizeof segment) return "the file ends within the JPEG header";
    const uint8_t marker = segment[1];
    if (segment[0] != kFill) return "the JPEG header has something else where a marker should be";
    if (marker == kFill) {
      offset++;
    } else if (marker == kStandalone || (marker >= kFirstRestart && marker <= kStartOfImage)) {
      offset += 2;
    } else if (marker == kEndOfImage) {
      return "the JPEG file ends before its pixels";
    } else {
      const uint32_t length = segment[2] * 256 + segment[3];
      if (length < 2) return "the JPEG header has a segment without a length";
      if (marker >= 0xc0 && marker <= 0xcf && marker != kHuffmanTable && marker != kExtension && marker != kArithmetic) has_frame = true;
      if (marker == kStartOfScan) {
        uint8_t last;
        if (!has_frame) return "the JPEG header does not give the image's size";
        if (read(offset + 1 + length, {&last, 1}) < 1) return "the file ends within the JPEG header";
        return "";
      }
      offset += 2 + length;
    }
  }
  return "the JPEG header does not come to an end";
}

std::string problem_of(FileFormat format, uint64_t file_size, const ReadAt &read) {
  switch (format) {
    case FileFormat::l3: return check_l3(file_size, read);
    case FileFormat::png: return check_png(read);
    case FileFormat::jpeg: return check_jpeg(read);
    default: return "";
  }
}

}  // namespace

void check_header(const std::string &path, FileFormat format, uint64_t file_size, const ReadAt &read) {
  const std::string problem = problem_of(format, file_size, read);
  if (!problem.empty()) fail_file(path, problem);
}

}  // namespace dali_l3::loader
