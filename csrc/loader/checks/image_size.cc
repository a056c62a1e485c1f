#include "checks/image_size.h"

#include <charconv>
#include <string_view>

#include "checks/bmp_check.h"
#include "checks/jpeg_check.h"
#include "checks/read_at.h"
#include "checks/tiff_check.h"
#include "dataset/file_format.h"
#include "l3/l3.h"

namespace dali_l3::loader {
namespace {

using Bytes = std::span<const uint8_t>;

std::optional<ImageSize> l3_size(Bytes file) {
  l3_info info;
  if (l3_peek(file.data(), file.size(), &info, nullptr) != L3_OK) return {};
  return ImageSize{info.height, info.width};
}

std::optional<ImageSize> png_size(Bytes file) {
  if (file.size() < 24) return {};
  return ImageSize{big_endian(file.subspan(20, 4)), big_endian(file.subspan(16, 4))};
}

// Of the first chunk, which is that of the pixels or begins an extended file.
std::optional<ImageSize> webp_size(Bytes file) {
  if (file.size() < 30) return {};
  const std::string_view chunk(reinterpret_cast<const char *>(file.data()) + 12, 4);
  const auto field = [&](size_t at, size_t size) { return little_endian(file.subspan(at, size)); };
  constexpr uint64_t kMask = (1 << 14) - 1;  // sizes of pixels have 14 bits
  if (chunk == "VP8 ") return ImageSize{field(28, 2) & kMask, field(26, 2) & kMask};
  if (chunk == "VP8L") return ImageSize{(field(21, 4) >> 14 & kMask) + 1, (field(21, 4) & kMask) + 1};
  if (chunk == "VP8X") return ImageSize{field(27, 3) + 1, field(24, 3) + 1};
  return {};
}

// Takes a number in decimal digits off the start of a text, with what `skipped` lists before it.
std::optional<uint64_t> take_number(std::string_view &text, std::string_view skipped) {
  text.remove_prefix(std::min(text.find_first_not_of(skipped), text.size()));
  uint64_t number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

constexpr std::string_view kSpace = " \t\r\n\v\f";

std::optional<uint64_t> take_pnm_number(std::string_view &text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (!text.starts_with('#')) return take_number(text, "");
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

// The number after a name at the start of a line.
std::optional<uint64_t> pam_field(std::string_view header, std::string_view name) {
  const size_t at = header.find(name);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + name.size());
  return take_number(header, " \t");
}

std::optional<ImageSize> size_of(std::optional<uint64_t> height, std::optional<uint64_t> width) {
  if (!height || !width) return {};
  return ImageSize{*height, *width};
}

constexpr size_t kMaxTextHeader = 1 << 16;  // bytes

std::optional<ImageSize> pnm_size(Bytes file) {
  std::string_view text(reinterpret_cast<const char *>(file.data()), std::min(file.size(), kMaxTextHeader));
  if (text.starts_with("P7")) {
    text = text.substr(0, text.find("\nENDHDR"));
    return size_of(pam_field(text, "\nHEIGHT "), pam_field(text, "\nWIDTH "));
  }
  text.remove_prefix(2);
  const auto width = take_pnm_number(text);
  return size_of(take_pnm_number(text), width);
}

std::optional<ImageSize> npy_size(Bytes file) {
  std::string_view text(reinterpret_cast<const char *>(file.data()), std::min(file.size(), kMaxTextHeader));
  const size_t at = text.find("'shape': (");
  if (at == std::string_view::npos) return {};
  text.remove_prefix(text.find('(', at));
  const auto height = take_number(text, "(");
  return size_of(height, take_number(text, ", "));
}

}  // namespace

std::optional<ImageSize> image_size(Bytes file) {
  const char *const name = sniffed_name(file);
  if (name && std::string_view(name) == "NPY") return npy_size(file);
  const ReadAt read = read_at(file);
  switch (sniff(file)) {
    case FileFormat::l3:
    case FileFormat::l3_raw:
    case FileFormat::l3_paper: return l3_size(file);
    case FileFormat::png: return png_size(file);
    case FileFormat::jpeg: return find_jpeg_scan(read).size;
    case FileFormat::bmp: return bmp_size(read);
    case FileFormat::tiff: return tiff_size(file);
    case FileFormat::webp: return webp_size(file);
    case FileFormat::pnm: return pnm_size(file);
    default: return {};
  }
}

}  // namespace dali_l3::loader
