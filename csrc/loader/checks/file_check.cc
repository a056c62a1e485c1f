#include "checks/file_check.h"

#include <stdexcept>

#include "checks/bmp_check.h"
#include "checks/jpeg_check.h"
#include "checks/png_check.h"
#include "checks/tiff_check.h"
#include "input/open_file.h"
#include "l3/format/git_lfs.h"
#include "l3/l3.h"

namespace dali_l3::loader {
namespace {

// The functions return what is wrong, or an empty string.

std::string check_length(uint64_t file_size, uint64_t needed) {
  if (file_size >= needed) return "";
  return "the file ends after " + std::to_string(file_size) + " of " + std::to_string(needed) + " bytes";
}

std::string check_l3_header(uint64_t file_size, const ReadAt &read) {
  uint8_t header[L3_HEADER_SIZE];
  const size_t size = read(0, header);
  l3_info info;
  l3_error error;
  if (l3_peek(header, size, &info, &error) != L3_OK) return error.message;
  return check_length(file_size, info.file_size);
}

std::string check_l3(std::span<const uint8_t> file) {
  l3_file parsed;
  l3_error error;
  if (l3_open(file.data(), file.size(), &parsed, &error) != L3_OK || l3_verify(&parsed, &error) != L3_OK)
    return error.message;
  return "";
}

std::string check_webp_header(uint64_t file_size, const ReadAt &read) {
  uint8_t size[4];  // of what follows
  read(4, size);    // which every file with the signature of WebP has
  return check_length(file_size, 8 + little_endian(size));
}

std::string problem_of_header(FileFormat format, uint64_t file_size, const ReadAt &read) {
  switch (format) {
    case FileFormat::l3:
    case FileFormat::l3_raw:
    case FileFormat::l3_paper: return check_l3_header(file_size, read);
    case FileFormat::png: return check_png_header(read);
    case FileFormat::jpeg: return find_jpeg_scan(read).problem;
    case FileFormat::bmp: return check_bmp_header(file_size, read);
    case FileFormat::tiff: return check_tiff_header(file_size, read);
    case FileFormat::webp: return check_webp_header(file_size, read);
    default: return "";
  }
}

std::string problem_of_content(FileFormat format, std::span<const uint8_t> file) {
  switch (format) {
    case FileFormat::l3:
    case FileFormat::l3_raw:
    case FileFormat::l3_paper: return check_l3(file);
    case FileFormat::png: return check_png(file);
    case FileFormat::jpeg: return check_jpeg(file);
    case FileFormat::tiff: return check_tiff(file);
    default: return problem_of_header(format, file.size(), read_at(file));
  }
}

void refuse(const std::string &path, const std::string &problem) {
  if (!problem.empty()) fail_file(path, problem);
}

}  // namespace

void check_header(const std::string &path, FileFormat format, uint64_t file_size, const ReadAt &read) {
  refuse(path, problem_of_header(format, file_size, read));
}

void check_content(const std::string &path, FileFormat format, std::span<const uint8_t> file) {
  refuse(path, problem_of_content(format, file));
}

void refuse_garbage(const std::string &path, std::span<const uint8_t> head) {
  if (is_named_as_image(path) && !sniffed_name(head)) fail_file(path, "of no known image format, in spite of its name");
}

bool is_lfs_pointer(std::span<const uint8_t> head) {
  static_assert(sizeof l3::kLfsPointer <= kLfsBytes);
  return l3::is_lfs_pointer(head.data(), head.size());
}

void fail_lfs_pointer(const std::string &path) { throw std::runtime_error(path + " " + l3::kIsLfsPointer); }

void refuse_lfs_pointer(const std::string &path, std::span<const uint8_t> head) {
  if (is_lfs_pointer(head)) fail_lfs_pointer(path);
}

}  // namespace dali_l3::loader
