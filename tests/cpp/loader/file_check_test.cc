// Checking of files: what damage is found in each format, and that nothing is read outside of them. Files are made
// here, byte by byte.
#include "checks/file_check.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include "checks/image_size.h"
#include "dataset/companions.h"
#include "image_files.h"
#include "l3_files.h"
#include "testing.h"

using namespace dali_l3::loader;
using namespace image_files;
using testing::error_of;
using namespace std::string_literals;

namespace {

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

const std::string kPng = png(chunk("gAMA", "abcd") + chunk("tEXt", "Title\0a picture"s) +
                             chunk("IDAT", std::string(200, 'x')) + chunk("IDAT", "the rest"));

const std::string kThumbnail = "\xff\xe1\0\x10thumbnail\xff\xd8\xff\xd9!"s;  // a segment that holds an image of its own
const std::string kJpeg =
    "\xff\xd8"s + kThumbnail + "\xff\xc0\0\3c\xff\xda\0\3d"s + "pixels\xff\0more\xff\xd0pixels\xff\xd9"s;

std::string webp(const std::string &data) { return "RIFF" + little(4 + data.size(), 4) + "WEBP" + data; }

// A TIFF with three strips or tiles of ten bytes each, before the directory or after it.
std::string tiff(bool is_big_endian, bool is_big_tiff, bool pixels_first, bool tiles = false) {
  const auto integer = [&](uint64_t value, int bytes) {
    return is_big_endian ? big(value, bytes) : little(value, bytes);
  };
  const int field = is_big_tiff ? 8 : 4;
  const auto entry = [&](uint64_t tag, uint64_t type, const std::string &value) {
    return integer(tag, 2) + integer(type, 2) + integer(3, field) + value +
           std::string(size_t(field) - value.size(), '\0');
  };
  const uint64_t begin = is_big_tiff ? 16 : 8, directory_size = is_big_tiff ? 8 + 2 * 20 + 8 : 2 + 2 * 12 + 4;
  const uint64_t arrays_size = is_big_tiff ? 12 : 12 + 6;  // three sizes of two bytes fit into a field of eight
  const uint64_t directory = pixels_first ? begin + 30 : begin,
                 pixels = pixels_first ? begin : begin + directory_size + arrays_size;
  const uint64_t arrays = directory + directory_size;
  std::string offsets, sizes;
  for (uint64_t i = 0; i < 3; i++) offsets += integer(pixels + 10 * i, 4);
  for (uint64_t i = 0; i < 3; i++) sizes += integer(10, 2);

  std::string head = (is_big_endian ? "MM"s : "II"s) + integer(is_big_tiff ? 43 : 42, 2);
  if (is_big_tiff) head += integer(8, 2) + integer(0, 2);
  std::string text = integer(2, is_big_tiff ? 8 : 2) + entry(tiles ? 324 : 273, 4, integer(arrays, field));
  text += entry(tiles ? 325 : 279, 3, is_big_tiff ? sizes : integer(arrays + 12, field)) + integer(0, field) + offsets;
  if (!is_big_tiff) text += sizes;
  const std::string strips(30, 's');
  return head + integer(directory, field) + (pixels_first ? strips + text : text + strips);
}

// ---- Verdicts -------------------------------------------------------------------------------------------------------

std::span<const uint8_t> span_of(const std::string &bytes) {
  return {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()};
}

// What is wrong with a file, without its name; a copy of exactly its size lets a sanitizer see what lies beyond.
std::string problem_of(const std::string &file, Check check) {
  const std::unique_ptr<uint8_t[]> memory(new uint8_t[file.size()]);
  std::copy(file.begin(), file.end(), memory.get());
  const std::span<const uint8_t> bytes(memory.get(), file.size());
  const FileFormat format = sniff(bytes);
  if (format == FileFormat::unknown) return "unknown";
  const std::string message = error_of([&] {
    if (check == Check::content)
      check_content("some/file", format, bytes);
    else
      check_header("some/file", format, bytes.size(), read_at(bytes));
  });
  if (message.empty()) return "";
  CHECK_EQUAL(message.substr(0, 11), "some/file: ");
  return message.substr(11);
}

std::string content_problem(const std::string &file) { return problem_of(file, Check::content); }
std::string header_problem(const std::string &file) { return problem_of(file, Check::headers); }

const std::pair<const char *, std::string> kWhole[] = {
    {"L3", l3_image_file()},
    {"L3 raw", l3_image_file(L3_PROFILE_RAW)},
    {"L3 paper", l3_image_file(L3_PROFILE_PAPER)},
    {"PNG", kPng},
    {"PNG of indices", png(chunk("PLTE", "rgb") + chunk("IDAT", "x"), 8, 3)},
    {"JPEG", kJpeg},
    {"BMP", bmp(40, 5, 3, 24)},
    {"BMP of OS/2", bmp(12, 5, 3, 1)},
    {"BMP of OS/2 2.x, short", bmp(16, 5, 3, 24)},
    {"BMP from the top", bmp(124, 5, -3, 32, 3)},
    {"compressed BMP", bmp(40, 5, 3, 8, 1).substr(0, 60)},
    {"WebP", webp("VP8 data")},
    {"TIFF", tiff(false, false, false)},
    {"TIFF, strips first", tiff(true, false, true)},
    {"BigTIFF", tiff(false, true, false, true)},
    {"BigTIFF, tiles first", tiff(true, true, true, true)},
    {"GIF", "GIF89a whatever"},
    {"PNM", "P5 whatever"},
};

}  // namespace

TEST(whole_files_pass) {
  for (const auto &[name, file] : kWhole) {
    const testing::Context context("%s", name);
    CHECK_EQUAL(header_problem(file), "");
    CHECK_EQUAL(content_problem(file), "");
    CHECK_EQUAL(content_problem(file + "bytes after the end"), "");
  }
}

TEST(every_bit_that_a_checksum_covers) {
  for (const auto &[file, uncovered] : {std::pair{l3_image_file(), size_t{16}}, std::pair{kPng, size_t{0}}}) {
    for (size_t bit = 0; bit < 8 * file.size(); bit++) {
      const testing::Context context("bit %zu of %zu bytes", bit, file.size());
      std::string flipped = file;
      flipped[bit / 8] = char(flipped[bit / 8] ^ 1 << bit % 8);
      CHECK_EQUAL(content_problem(flipped).empty(), bit / 8 >= file.size() - uncovered);
    }
  }
}

TEST(every_truncation) {
  for (const auto &[name, file] : kWhole) {
    if (name == "compressed BMP"s || name == "GIF"s || name == "PNM"s) continue;
    // The last row of a BMP may lack its padding. Here it has 15 and 1 of 16 and 4 bytes.
    const size_t padding = name == "BMP"s || name == "BMP of OS/2 2.x, short"s ? 1 : name == "BMP of OS/2"s ? 3 : 0;
    for (size_t size = 0; size < file.size(); size++) {
      const testing::Context context("%s, %zu of %zu bytes", name, size, file.size());
      CHECK_EQUAL(content_problem(file.substr(0, size)).empty(), size >= file.size() - padding);
    }
  }
}

TEST(what_is_wrong_is_said) {
  const std::string pixels = chunk("IDAT", "x"), whole_l3 = l3_image_file();
  std::string damaged_chunk = kPng, damaged_type = kPng, damaged_l3 = whole_l3;
  damaged_chunk[damaged_chunk.find("picture")] ^= 1;
  damaged_type[damaged_type.find("tEXt")] = '\n';
  damaged_l3[whole_l3.size() - 20] ^= 1;
  const std::pair<std::string, const char *> files[] = {
      {damaged_l3, "tile 3 (row 1, column 1): the checksum does not match"},
      {damaged_chunk, "the checksum of the PNG chunk tEXt at byte 49 does not match"},
      {damaged_type, "the checksum of the PNG chunk at byte 49 does not match"},
      {png(""), "the PNG file has no image data"},
      {kPngSignature + png_header(8, 2) + pixels, "the PNG file ends without its last chunk, IEND"},
      {kPng.substr(0, kPng.size() - 3), "the file ends within a PNG chunk"},
      {kPng.substr(0, kPng.size() - 13), "the file ends within a PNG chunk IDAT of 8 bytes"},
      {png(pixels, 8, 3), "the PNG file has no palette"},
      {png(pixels + chunk("PLTE", "rgb"), 8, 3), "the PNG file has no palette"},
      {png(chunk("ABCD", "") + pixels), "the PNG file has an unknown PNG chunk ABCD that a decoder must not pass over"},
      {kPngSignature + pixels + pixels + pixels, "the PNG file does not begin with a header"},
      {kPngSignature + "\0\0\0\x0dIHDR12345678901234567"s, "the PNG header's checksum does not match"},
      {kPngSignature + png_header(8, 2, "\0\0\0"s, 0, 3), "the PNG header does not give the image's size"},
      {kPngSignature + png_header(8, 2, "\0\0\0"s, 5, 0x80000000), "the PNG header does not give the image's size"},
      {kPngSignature + png_header(8, 2, "\0\0\2"s),
       "the PNG header has an unknown way of compression, filtering or interlacing"},
      {kJpeg.substr(0, kJpeg.size() - 2), "the JPEG file is cut off: the mark of its end is missing"},
      {kJpeg.substr(0, 2) + kThumbnail + "\xff\xd9  ", "the JPEG file ends before its pixels"},
      {bmp(40, 0, 3, 24), "the BMP header does not give the image's size"},
      {bmp(40, -5, 3, 24), "the BMP header does not give the image's size"},
      {bmp(40, 5, 3, 48), "the BMP header has pixels of 48 bits"},
      {bmp(40, 5, 3, 24).substr(0, 30), "the file ends within the BMP header"},
      {bmp(40, 5, 3, 24).substr(0, 70), "the file ends before its last row of pixels"},
      {webp("VP8 data").substr(0, 15), "the file ends after 15 of 20 bytes"},
      {tiff(false, false, false).substr(0, 30), "the file has no whole TIFF directory where its header says"},
      {tiff(false, false, false).substr(0, 80), "the file ends before the last of its TIFF strips or tiles"},
      {whole_l3.substr(0, 100), "truncated: 100 of"},
  };
  for (const auto &[file, problem] : files) {
    const testing::Context context("%s", problem);
    const std::string found = content_problem(file);
    if (found.find(problem) != 0) CHECK_EQUAL(found, problem);
  }
}

// As far as a header goes, files are checked by their headers alone.
TEST(headers_are_checked_with_few_reads) {
  for (const auto &[name, file] : kWhole) {
    const testing::Context context("%s", name);
    const uint64_t size = uint64_t{1} << 30;  // as if much more followed
    uint64_t bytes_read = 0;
    const ReadAt read = read_at(span_of(file));
    check_header("f", sniff(span_of(file)), size, [&](uint64_t offset, std::span<uint8_t> bytes) {
      bytes_read += bytes.size();
      return read(offset, bytes);
    });
    CHECK(bytes_read <= 100);
  }
}

TEST(combinations_of_depth_and_colour_of_png) {
  const std::string valid = "0:1 0:2 0:4 0:8 0:16 2:8 2:16 3:1 3:2 3:4 3:8 4:8 4:16 6:8 6:16 ";
  std::string accepted;
  for (int color = 0; color < 20; color++)
    for (int depth = 0; depth < 40; depth++)
      if (header_problem(kPngSignature + png_header(uint8_t(depth), uint8_t(color))).empty())
        accepted += std::to_string(color) + ":" + std::to_string(depth) + " ";
  CHECK_EQUAL(accepted, valid);
}

TEST(sizes_that_would_overflow) {
  for (const uint32_t header_size : {40u, 124u}) {
    std::string file = bmp(header_size, 5, 3, 32);
    file.replace(18, 8, "\xff\xff\xff\x7f\0\0\0\x80"s);
    CHECK_EQUAL(header_problem(file), "the file ends before its last row of pixels");
    file.replace(10, 4, "\xff\xff\xff\xff");
    CHECK_EQUAL(header_problem(file), "the file ends before its last row of pixels");
  }
  for (const bool is_big_tiff : {false, true}) {
    const std::string whole = tiff(false, is_big_tiff, false);
    const size_t directory = is_big_tiff ? 16 : 8;
    for (size_t at = 4; at < whole.size() - 30; at++) {
      std::string file = whole;
      file.replace(at, 8, std::string(8, '\xff'));
      content_problem(file);  // whatever it is
    }
    std::string many = whole;
    many.replace(directory, 2, "\xff\xff");
    CHECK(contains(content_problem(many), "no whole TIFF directory"));
    many.replace(directory, 2, "\0\0"s);
    CHECK(contains(content_problem(many), "no whole TIFF directory"));
  }
}

// A sanitizer sees whether something outside of the file is read.
TEST(random_changes_are_survived) {
  std::mt19937 random(1);
  for (const auto &[name, whole] : kWhole)
    for (int i = 0; i < 3000; i++) {
      const testing::Context context("%s, mutant %d", name, i);
      std::string file = whole;
      for (uint32_t changes = 1 + random() % 4; changes; changes--) file[random() % file.size()] = char(random());
      if (i % 2) file.resize(random() % file.size());
      const std::string of_header = header_problem(file), of_content = content_problem(file);
      if (!of_header.empty()) CHECK(!of_content.empty());
    }
}

// ---- Sizes ----------------------------------------------------------------------------------------------------------

std::optional<ImageSize> size_of(const std::string &file) {
  const std::unique_ptr<uint8_t[]> memory(new uint8_t[file.size()]);
  std::copy(file.begin(), file.end(), memory.get());
  return image_size({memory.get(), file.size()});
}

std::string jpeg_with_frame(const std::string &frame) {
  return "\xff\xd8"s + kThumbnail + "\xff\xc0" + big(2 + frame.size(), 2) + frame + "\xff\xda\0\3dpixels\xff\xd9"s;
}

std::string vp8(uint16_t width, uint16_t height) {
  return webp("VP8 " + little(20, 4) + "\x10\0\0\x9d\1\x2a"s + little(width, 2) + little(height, 2) + "pixels0000");
}

TEST(sizes_of_files_that_are_whole_or_cut_off) {
  const std::pair<std::string, ImageSize> files[] = {
      {kPng, {3, 5}},
      {l3_image_file(), {66, 70}},
      {l3_image_file(L3_PROFILE_RAW), {66, 70}},
      {l3_image_file(L3_PROFILE_PAPER), {66, 70}},
      {bmp(40, 300, -200, 8), {200, 300}},
      {bmp(12, 7, 9, 24), {9, 7}},
      {jpeg_with_frame("\x08"s + big(200, 2) + big(300, 2) + "\1\1\x11\0"s), {200, 300}},
      {vp8(300, 200), {200, 300}},
      {vp8(300 | 1 << 14, 200 | 3 << 14), {200, 300}},  // with the scales that players may apply
      {webp("VP8L" + little(20, 4) + "\x2f" + little(299 | 199 << 14, 4) + std::string(15, 'p')), {200, 300}},
      {webp("VP8X" + little(10, 4) + little(0, 4) + little(299, 3) + little(199, 3)), {200, 300}},
  };
  for (const auto &[file, size] : files) {
    CHECK(size_of(file) == size);
    for (size_t bytes = 0; bytes < file.size(); bytes++) {
      const std::optional<ImageSize> found = size_of(file.substr(0, bytes));
      CHECK(!found || found == size);
    }
  }
  // Of texts that are cut off, the numbers may be too.
  const std::pair<std::string, ImageSize> texts[] = {
      {"P6\n# by hand\n300 200\n255\npixels", {200, 300}},
      {"P7\nWIDTH 300\nHEIGHT 200\nDEPTH 3\nMAXVAL 255\nENDHDR\npixels", {200, 300}},
      {"\x93NUMPY\1\0v\0{'descr': '|u1', 'fortran_order': False, 'shape': (200, 300, 3), }\n"s, {200, 300}},
  };
  for (const auto &[file, size] : texts) {
    CHECK(size_of(file) == size);
    for (size_t bytes = 0; bytes < file.size(); bytes++) size_of(file.substr(0, bytes));
  }
}

TEST(sizes_that_a_header_does_not_give) {
  CHECK(!size_of(kJpeg));                                                         // a frame of one byte
  CHECK(!size_of(jpeg_with_frame("\x08"s + big(0, 2) + big(300, 2) + "\1\1"s)));  // the height comes after the pixels
  CHECK(!size_of(tiff(false, false, true)));
  CHECK(!size_of("P6\n300"));
  CHECK(!size_of("P6\n# without an end"));
  CHECK(!size_of("P6 99999999999999999999 1"));
  CHECK(!size_of("P7\nWIDTH 300\nENDHDR\nHEIGHT 200\n"));
  CHECK(!size_of("text"));
}

TEST(pointers_of_git_lfs_are_named) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  CHECK_EQUAL(error_of([&] { refuse_lfs_pointer("a/1.png", span_of(pointer)); }),
              "a/1.png is a Git LFS pointer, not an image: run 'git lfs pull'");
  refuse_lfs_pointer("a/1.png", span_of(kPng));
  refuse_lfs_pointer("a/1.png", span_of(pointer.substr(0, 41)));
}
