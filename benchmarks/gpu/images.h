// The images that the benchmark decodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "l3/l3.h"

namespace benchmark {

using Bytes = std::vector<uint8_t>;

// Throws std::runtime_error where a call of the codec failed.
void check(l3_status status, const l3_error &error);

// 8-bit RGB, rows without gaps.
struct Image {
  uint32_t width = 0, height = 0;
  Bytes pixels;
};

// Reads a binary PPM file with 255 as its largest value. Throws std::runtime_error.
Image read_ppm(const std::string &path);

// The files FOLDER/0.ppm, FOLDER/1.ppm and so on. Throws std::runtime_error where there is none.
std::vector<Image> read_images(const std::string &folder);

// Throw std::runtime_error.
Bytes encode(const l3_image &image, l3_profile profile);
Bytes encode(const Image &image, l3_profile profile);
l3_file open(const Bytes &file);
Bytes decode_on_cpu(const Bytes &file);

}  // namespace benchmark
