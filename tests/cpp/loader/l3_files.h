// L3 files for tests of the loader.
#pragma once

#include <string>

#include "l3/l3.h"
#include "testing.h"

// An image of several tiles, with metadata.
inline std::string l3_image_file(l3_profile profile = L3_PROFILE_FAST) {
  std::string pixels(70 * 66 * 3, '\0');
  for (size_t i = 0; i < pixels.size(); i++) pixels[i] = char(i * 7 + i / 210 * 3);
  l3_image image{};
  image.data = pixels.data();
  image.row_stride = 70 * 3;
  image.width = 70;
  image.height = 66;
  image.channels = 3;
  image.bits = 8;
  const l3_metadata metadata{"icc", 3, "profile", 7};
  l3_encode_options options{};
  options.profile = profile;
  options.effort = 1;
  options.checksums = 1;
  options.metadata = &metadata;
  options.metadata_count = 1;
  std::string file(l3_encode_bound(&image, &options), '\0');
  size_t size = 0;
  CHECK_EQUAL(l3_encode(&image, &options, file.data(), file.size(), &size, nullptr), L3_OK);
  return file.substr(0, size);
}
