#include "dataset/file_format.h"

#include <algorithm>
#include <string_view>

namespace dali_l3::loader {
namespace {

using namespace std::string_view_literals;

struct Signature {
  FileFormat format;
  std::string_view bytes;
};

// WebP and PNM, which need more than that, are not here.
constexpr Signature kSignatures[] = {
    {FileFormat::l3, "\x89L3I\r\n\x1a\n"sv},
    {FileFormat::l3, "LLL."sv},  // the prototype's
    {FileFormat::png, "\x89PNG\r\n\x1a\n"sv},
    {FileFormat::jpeg, "\xff\xd8\xff"sv},
    {FileFormat::bmp, "BM"sv},
    {FileFormat::tiff, "II*\0"sv},
    {FileFormat::tiff, "MM\0*"sv},
    {FileFormat::tiff, "II+\0"sv},  // BigTIFF
    {FileFormat::tiff, "MM\0+"sv},
    {FileFormat::jpeg2000, "\0\0\0\x0cjP  \r\n\x87\n"sv},
    {FileFormat::jpeg2000, "\xff\x4f\xff\x51"sv},  // a bare codestream
    {FileFormat::gif, "GIF87a"sv},
    {FileFormat::gif, "GIF89a"sv},
};

bool is_webp(std::string_view head) {
  return head.starts_with("RIFF"sv) && head.size() >= 12 && head.substr(8, 4) == "WEBP"sv;
}

bool is_pnm(std::string_view head) {
  return head.size() >= 3 && head[0] == 'P' && head[1] >= '1' && head[1] <= '7' &&
         " \t\r\n"sv.find(head[2]) != std::string_view::npos;
}

}  // namespace

const char *format_name(FileFormat format) {
  switch (format) {
    case FileFormat::l3: return "L3";
    case FileFormat::png: return "PNG";
    case FileFormat::jpeg: return "JPEG";
    case FileFormat::bmp: return "BMP";
    case FileFormat::tiff: return "TIFF";
    case FileFormat::webp: return "WebP";
    case FileFormat::pnm: return "PNM";
    case FileFormat::jpeg2000: return "JPEG 2000";
    case FileFormat::gif: return "GIF";
    case FileFormat::unknown: break;
  }
  return "unknown";
}

FileFormat sniff(std::span<const uint8_t> bytes) {
  const std::string_view head(reinterpret_cast<const char *>(bytes.data()), std::min(bytes.size(), kSniffedBytes));
  for (const Signature &signature : kSignatures)
    if (head.starts_with(signature.bytes)) return signature.format;
  if (is_webp(head)) return FileFormat::webp;
  if (is_pnm(head)) return FileFormat::pnm;
  return FileFormat::unknown;
}

}  // namespace dali_l3::loader
