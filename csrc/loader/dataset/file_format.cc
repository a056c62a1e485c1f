#include "dataset/file_format.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "l3/l3.h"

namespace dali_l3::loader {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  const char *name;
  FileFormat format = FileFormat::unknown;
};

// The first that fits counts.
constexpr Signature kPrefixes[] = {
    {"LLL."sv, "L3", FileFormat::l3},  // the prototype's
    {"\x89PNG\r\n\x1a\n"sv, "PNG", FileFormat::png},
    {"\xff\xd8\xff"sv, "JPEG", FileFormat::jpeg},
    {"II*\0\x10\0\0\0CR"sv, "Canon raw", FileFormat::tiff},  // its pictures are in TIFF's directories
    {"II*\0"sv, "TIFF", FileFormat::tiff},
    {"MM\0*"sv, "TIFF", FileFormat::tiff},
    {"II+\0"sv, "TIFF", FileFormat::tiff},  // BigTIFF
    {"MM\0+"sv, "TIFF", FileFormat::tiff},
    {"GIF87a"sv, "GIF", FileFormat::gif},
    {"GIF89a"sv, "GIF", FileFormat::gif},
    {"\0\0\0\x0cjP  \r\n\x87\n"sv, "JPEG 2000", FileFormat::jpeg2000},
    {"\xff\x4f\xff\x51"sv, "JPEG 2000", FileFormat::jpeg2000},  // a bare codestream
    {"\x93NUMPY"sv, "NPY"},
    {"\0\0\0\x0cJXL \r\n\x87\n"sv, "JPEG XL"},
    {"\xff\x0a"sv, "JPEG XL"},
    {"8BPS"sv, "Photoshop"},
    {"v/1\x01"sv, "OpenEXR"},
};

// By the profile, which the header says.
constexpr std::string_view kL3Start = "\x89L3I\r\n\x1a\n"sv;
constexpr Signature kL3 = {kL3Start, "L3", FileFormat::l3};
constexpr Signature kL3Raw = {kL3Start, "L3", FileFormat::l3_raw};
constexpr Signature kL3Paper = {kL3Start, "L3", FileFormat::l3_paper};

// By the two letters that a bitmap begins with.
constexpr Signature kBitmaps[] = {
    {"BM"sv, "BMP", FileFormat::bmp}, {"IC"sv, "OS/2 icon"},    {"CI"sv, "OS/2 icon"},
    {"PT"sv, "OS/2 pointer"},         {"CP"sv, "OS/2 pointer"},
};
constexpr uint8_t kBitmapHeaderSizes[] = {12, 16, 40, 52, 56, 64, 108, 124};

// Endings of names of which it is certain that such files have one of the signatures.
constexpr std::string_view kEndings[] = {"l3",  "png", "jpg", "jpeg", "bmp", "tif", "tiff", "webp",
                                         "pnm", "ppm", "pgm", "pbm",  "pam", "jp2", "gif",  "npy"};

// By the brand that follows "ftyp".
constexpr Signature kHeif[] = {
    {"avif"sv, "AVIF"}, {"avis"sv, "AVIF"}, {"heic"sv, "HEIC"},
    {"heix"sv, "HEIC"}, {"mif1"sv, "HEIF"}, {"msf1"sv, "HEIF"},
};

constexpr Signature kWebP = {"WEBP"sv, "WebP", FileFormat::webp};
constexpr Signature kPnm = {"P"sv, "PNM", FileFormat::pnm};
constexpr Signature kPam = {"P7\n"sv, "PAM", FileFormat::pnm};
constexpr Signature kBitmapArray = {"BA"sv, "OS/2 bitmap array"};
constexpr Signature kNone = {""sv, nullptr};

template <size_t size>
const Signature &find_start(const Signature (&signatures)[size], std::string_view bytes) {
  for (const Signature &signature : signatures)
    if (bytes.starts_with(signature.bytes)) return signature;
  return kNone;
}

// A header that is damaged, or not all there, says nothing.
const Signature &find_l3(std::string_view head) {
  static_assert(kSniffedBytes >= L3_HEADER_SIZE);
  l3_info info;
  if (l3_peek(head.data(), head.size(), &info, nullptr) != L3_OK) return kL3;
  if (info.profile == L3_PROFILE_RAW) return kL3Raw;
  return info.profile == L3_PROFILE_PAPER ? kL3Paper : kL3;
}

// Two letters are a weak signature, so the size of the header that follows must be one that there is.
bool has_bitmap_header(std::string_view head) {
  if (head.size() < 18 || head.substr(15, 3) != "\0\0\0"sv) return false;
  return std::find(std::begin(kBitmapHeaderSizes), std::end(kBitmapHeaderSizes), uint8_t(head[14])) !=
         std::end(kBitmapHeaderSizes);
}

bool is_pnm(std::string_view head) {
  return head.size() >= 3 && head[0] == 'P' && head[1] >= '1' && head[1] <= '6' &&
         " \t\r\n#"sv.find(head[2]) != std::string_view::npos;
}

const Signature &find(std::span<const uint8_t> bytes) {
  const std::string_view head(reinterpret_cast<const char *>(bytes.data()), std::min(bytes.size(), kSniffedBytes));
  if (head.starts_with(kL3Start)) return find_l3(head);
  if (const Signature &prefix = find_start(kPrefixes, head); prefix.name) return prefix;
  if (head.starts_with("RIFF"sv) && head.size() >= 12 && head.substr(8, 4) == kWebP.bytes) return kWebP;
  if (has_bitmap_header(head)) return find_start(kBitmaps, head);
  if (head.starts_with(kBitmapArray.bytes) && head.size() >= 16 && find_start(kBitmaps, head.substr(14)).name)
    return kBitmapArray;
  if (head.starts_with(kPam.bytes)) return kPam;
  if (is_pnm(head)) return kPnm;
  if (head.size() >= 12 && head.substr(4, 4) == "ftyp"sv) return find_start(kHeif, head.substr(8));
  return kNone;
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
    case FileFormat::l3_raw: return "L3 raw";
    case FileFormat::l3_paper: return "L3 paper";
    case FileFormat::unknown: break;
  }
  return "unknown";
}

bool is_named_as_image(std::string_view path) {
  const size_t dot = path.find_last_of("./");
  if (dot == std::string_view::npos || path[dot] != '.') return false;
  std::string ending(path.substr(dot + 1));
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

FileFormat sniff(std::span<const uint8_t> head) { return find(head).format; }

const char *sniffed_name(std::span<const uint8_t> head) { return find(head).name; }

}  // namespace dali_l3::loader
