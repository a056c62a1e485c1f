// Image files made byte by byte, for tests of what looks at them. Nobody decodes them: any bytes stand for pixels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace image_files {

inline std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; i++) text += char(value >> 8 * i);
  return text;
}

inline std::string big(uint64_t value, int bytes) {
  std::string text = little(value, bytes);
  std::reverse(text.begin(), text.end());
  return text;
}

// CRC-32 bit by bit, as the PNG standard defines it.
inline uint32_t crc_of(const std::string &bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= uint8_t(byte);
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

const std::string kPngSignature = "\x89PNG\r\n\x1a\n";

inline std::string chunk(const std::string &type, const std::string &data) {
  return big(data.size(), 4) + type + data + big(crc_of(type + data), 4);
}

// `rest`: compression, filter, interlacing.
inline std::string png_header(uint8_t depth, uint8_t color, const std::string &rest = std::string(3, '\0'),
                              uint32_t width = 5, uint32_t height = 3) {
  return chunk("IHDR", big(width, 4) + big(height, 4) + char(depth) + char(color) + rest);
}

// A PNG file with these chunks between its header and its end.
inline std::string png(const std::string &chunks, uint8_t depth = 8, uint8_t color = 2) {
  return kPngSignature + png_header(depth, color) + chunks + chunk("IEND", "");
}

// A BMP file with `bits` a pixel, whose header is of `header_size` bytes.
inline std::string bmp(uint32_t header_size, int32_t width, int32_t height, uint32_t bits, uint32_t compression = 0) {
  const uint32_t row = (uint32_t(std::abs(width)) * bits + 31) / 32 * 4, begin = 14 + header_size;
  const int field = header_size == 12 ? 2 : 4;
  std::string header =
      little(header_size, 4) + little(uint32_t(width), field) + little(uint32_t(height), field) + little(1, 2);
  header += little(bits, 2) + little(compression, 4);
  header.resize(header_size);
  const std::string pixels(size_t{row} * uint32_t(std::abs(height)), 'p');
  return "BM" + little(begin + pixels.size(), 4) + little(0, 4) + little(begin, 4) + header + pixels;
}

}  // namespace image_files
