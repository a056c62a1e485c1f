#include "images.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace benchmark {

void check(l3_status status, const l3_error &error) {
  if (status) throw std::runtime_error(error.message);
}

Image read_ppm(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string signature;
  uint32_t peak = 0;
  Image image;
  file >> signature >> image.width >> image.height >> peak;
  file.get();  // the white space before the pixels
  if (!file || signature != "P6" || peak != 255 || image.width > L3_MAX_DIMENSION || image.height > L3_MAX_DIMENSION)
    throw std::runtime_error(path + ": not a PPM file of 8-bit samples");
  image.pixels.resize(size_t{3} * image.width * image.height);
  if (!file.read(reinterpret_cast<char *>(image.pixels.data()), std::streamsize(image.pixels.size())))
    throw std::runtime_error(path + ": truncated");
  return image;
}

std::vector<Image> read_images(const std::string &folder) {
  std::vector<Image> images;
  const auto path = [&] { return folder + "/" + std::to_string(images.size()) + ".ppm"; };
  while (std::filesystem::exists(path())) images.push_back(read_ppm(path()));
  if (images.empty()) throw std::runtime_error(path() + ": no such file");
  return images;
}

Bytes encode(const l3_image &image, l3_profile profile) {
  const l3_encode_options options{profile, 2, 1, nullptr, 0};
  Bytes file(l3_encode_bound(&image, &options));
  size_t size = 0;
  l3_error error{};
  check(l3_encode(&image, &options, file.data(), file.size(), &size, &error), error);
  file.resize(size);
  return file;
}

Bytes encode(const Image &image, l3_profile profile) {
  return encode(l3_image{image.pixels.data(), size_t{3} * image.width, image.width, image.height, 3, 8, 0}, profile);
}

l3_file open(const Bytes &file) {
  l3_file parsed;
  l3_error error{};
  check(l3_open(file.data(), file.size(), &parsed, &error), error);
  return parsed;
}

Bytes decode_on_cpu(const Bytes &file) {
  const l3_file parsed = open(file);
  const size_t row = size_t{parsed.info.channels} * (parsed.info.bits / 8) * parsed.info.width;
  Bytes pixels(row * parsed.info.height);
  const l3_output output{pixels.data(), row, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0};
  l3_error error{};
  check(l3_decode(&parsed, nullptr, &output, L3_VERIFY, &error), error);
  return pixels;
}

}  // namespace benchmark
