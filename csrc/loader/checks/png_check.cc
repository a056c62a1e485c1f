#include "checks/png_check.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "l3/format/crc32.h"

namespace dali_l3::loader {
namespace {

constexpr size_t kSignature = 8;    // bytes
constexpr size_t kFrame = 12;       // bytes of a chunk around its data: length and type before, checksum after
constexpr size_t kHeaderData = 13;  // bytes: width, height, depth, colour type, compression, filter, interlacing
constexpr uint32_t kMaxSize = 0x7fffffff;
constexpr uint8_t kPalette = 3;  // a colour type

// A chunk in memory.
struct Chunk {
  const uint8_t *type;  // four characters
  std::span<const uint8_t> data;
  uint32_t checksum;

  bool is(const char *name) const { return std::memcmp(type, name, 4) == 0; }
  bool is_critical() const { return !(type[0] & 0x20); }  // an upper-case letter
  bool is_right() const { return l3::crc32_ieee(type, 4 + data.size()) == checksum; }
};

// How the chunk is called in messages; a damaged type may be anything.
std::string name_of(const Chunk &chunk) {
  const std::string name(reinterpret_cast<const char *>(chunk.type), 4);
  const bool is_name =
      std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
  return is_name ? "PNG chunk " + name : "PNG chunk";
}

std::string check_header_data(std::span<const uint8_t> data) {
  const uint64_t width = big_endian(data.first(4)), height = big_endian(data.subspan(4, 4));
  const uint8_t depth = data[8], color = data[9];
  if (width < 1 || height < 1 || width > kMaxSize || height > kMaxSize)
    return "the PNG header does not give the image's size";
  constexpr std::string_view kDepths[] = {"\1\2\4\x08\x10", "", "\x08\x10", "\1\2\4\x08",
                                          "\x08\x10",       "", "\x08\x10"};  // by colour type
  if (color >= std::size(kDepths) || kDepths[color].find(char(depth)) == std::string_view::npos)
    return "the PNG header has the colour type " + std::to_string(color) + " with a depth of " + std::to_string(depth) +
           ", which is none";
  if (data[10] != 0 || data[11] != 0 || data[12] > 1)
    return "the PNG header has an unknown way of compression, filtering or interlacing";
  return "";
}

}  // namespace

std::string check_png_header(const ReadAt &read) {
  uint8_t header[kSignature + kFrame + kHeaderData];
  if (read(0, header) < sizeof header) return "the file ends within the PNG header";
  if (std::memcmp(header + kSignature, "\0\0\0\x0dIHDR", 8) != 0) return "the PNG file does not begin with a header";
  const std::span<const uint8_t> data(header + kSignature + 8, kHeaderData);
  const Chunk chunk{header + kSignature + 4, data, uint32_t(big_endian({data.data() + kHeaderData, 4}))};
  return chunk.is_right() ? check_header_data(data) : "the PNG header's checksum does not match";
}

std::string check_png(std::span<const uint8_t> file) {
  if (std::string problem = check_png_header(read_at(file)); !problem.empty()) return problem;
  bool has_palette = file[kSignature + 8 + 9] != kPalette, has_pixels = false;
  for (auto rest = file.subspan(kSignature + kFrame + kHeaderData); !rest.empty();) {
    if (rest.size() < kFrame) return "the file ends within a PNG chunk";
    const uint64_t size = big_endian(rest.first(4));
    Chunk chunk{rest.data() + 4, {}, 0};
    if (size > rest.size() - kFrame)
      return "the file ends within a " + name_of(chunk) + " of " + std::to_string(size) + " bytes";
    chunk.data = rest.subspan(8, size);
    chunk.checksum = uint32_t(big_endian(rest.subspan(8 + size, 4)));
    if (!chunk.is_right())
      return "the checksum of the " + name_of(chunk) + " at byte " + std::to_string(rest.data() - file.data()) +
             " does not match";
    if (chunk.is("PLTE")) {
      has_palette = true;
    } else if (chunk.is("IDAT")) {
      if (!has_palette) return "the PNG file has no palette";
      has_pixels = true;
    } else if (chunk.is("IEND")) {
      return has_pixels ? "" : "the PNG file has no image data";
    } else if (chunk.is_critical()) {
      return "the PNG file has an unknown " + name_of(chunk) + " that a decoder must not pass over";
    }
    rest = rest.subspan(kFrame + size);
  }
  return "the PNG file ends without its last chunk, IEND";
}

}  // namespace dali_l3::loader
