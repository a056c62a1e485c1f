#include "images.h"

#include <algorithm>

#include "format/bytes.h"
#include "format/geometry.h"
#include "testing.h"

namespace l3 {
namespace {

uint32_t sample_of(Random &random, const Image &image, Kind kind, uint32_t x, uint32_t y, uint32_t channel) {
  switch (kind) {
    case Kind::kNoise: return random();
    case Kind::kExtremes: return random.below(2) ? ~0u : 0;
    case Kind::kSlope: return (x + 2 * y) * (image.bits == 8 ? 1 : 150) + 40 * channel + random.below(5);
    case Kind::kLabels: return (x / 11 + y / 7) % 3 * 71 + channel + (random.below(50) == 0);
    case Kind::kConstant: return 90 + channel;
    case Kind::kShifted: return (3 * x + 5 * y + 40 * channel + random.below(5)) << 4;
    case Kind::kRepeated: return (x + 2 * y + 40 * channel + random.below(5)) % 256 * 0x0101;
  }
  return 0;
}

}  // namespace

Bytes Random::bytes(size_t count) {
  Bytes bytes(count);
  for (uint8_t &byte : bytes) byte = uint8_t((*this)());
  return bytes;
}

Image make_image(Random &random, uint32_t width, uint32_t height, uint32_t channels, uint32_t bits, Kind kind) {
  Image image{width, height, channels, bits};
  image.pixels = Bytes(image.row_size() * height);
  uint8_t *out = image.pixels.data();
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      for (uint32_t c = 0; c < channels; c++, out += bits / 8) {
        const uint32_t sample = sample_of(random, image, kind, x, y, c);
        if (bits == 8)
          *out = uint8_t(sample);
        else
          store(out, uint16_t(sample));
      }
  return image;
}

Bytes crop(const Image &image, const l3_rect &rect) {
  Bytes pixels(rect.width * image.pixel_size() * rect.height);
  for (uint32_t y = 0; y < rect.height; y++) {
    const auto row = image.pixels.begin() + ptrdiff_t((rect.y + y) * image.row_size() + rect.x * image.pixel_size());
    std::copy_n(row, rect.width * image.pixel_size(), pixels.begin() + ptrdiff_t(y * rect.width * image.pixel_size()));
  }
  return pixels;
}

l3_image view_of(const Image &image) {
  return {image.pixels.data(), image.row_size(), image.width,          image.height,
          image.channels,      image.bits,       image.two_dimensional};
}

l3_encode_options encode_options(l3_profile profile, uint32_t effort, bool checksums) {
  return {profile, effort, checksums, nullptr, 0};
}

Bytes encode(const Image &image, const l3_encode_options &options) {
  const l3_image view = view_of(image);
  Bytes room(l3_encode_bound(&view, &options));
  size_t written = 0;
  l3_error error{};
  if (l3_encode(&view, &options, room.data(), room.size(), &written, &error))
    testing::fail(__FILE__, __LINE__, error.message);
  return Bytes(room.begin(), room.begin() + ptrdiff_t(written));
}

Decoded decode(const Bytes &file, const l3_rect *roi, uint32_t options) {
  l3_file parsed;
  l3_error error{};
  if (l3_status status = l3_open(file.data(), file.size(), &parsed, &error)) return {status, error.message, {}};
  const l3_rect rect = roi ? *roi : l3_rect{0, 0, parsed.info.width, parsed.info.height};
  const size_t row_size = size_t(rect.width) * pixel_size(parsed.info);
  Decoded decoded{L3_OK, "", Bytes(row_size * rect.height)};
  l3_output output{};
  output.data = decoded.pixels.data();
  output.row_stride = row_size;
  decoded.status = l3_decode(&parsed, roi, &output, options, &error);
  decoded.message = error.message;
  return decoded;
}

}  // namespace l3
