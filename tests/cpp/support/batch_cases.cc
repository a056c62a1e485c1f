#include "batch_cases.h"

#include <iterator>

#include "testing.h"

namespace l3 {

Destination::Destination(const Wanted &wanted) : wanted(wanted) {
  l3_error error{};
  if (l3_open(wanted.file->data(), wanted.file->size(), &file, &error))
    testing::fail(__FILE__, __LINE__, error.message);
  const size_t sample_size = l3_output_sample_size(&file.info, wanted.sample);
  row_stride = (wanted.region.width * l3_output_channels(&file.info, wanted.color) + wanted.gap) * sample_size;
  memory.assign((wanted.region.height * row_stride + wanted.offset * sample_size + 7) / 8, 0xA5A5A5A5A5A5A5A5);
}

l3_output Destination::output(void *at) const {
  const size_t offset = wanted.offset * l3_output_sample_size(&file.info, wanted.sample);
  return {static_cast<uint8_t *>(at) + offset, row_stride, wanted.color, wanted.sample, 0};
}

Wanted whole(const Bytes &file) {
  l3_info info;
  CHECK_EQUAL(l3_peek(file.data(), file.size(), &info, nullptr), L3_OK);
  return {&file, {0, 0, info.width, info.height}, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0, 0};
}

Wanted some(Random &random, const Bytes &file) {
  Wanted wanted = whole(file);
  if (random.below(2)) {
    const uint32_t x = random.below(wanted.region.width), y = random.below(wanted.region.height);
    wanted.region = {x, y, random.between(1, wanted.region.width - x), random.between(1, wanted.region.height - y)};
  }
  if (random.below(3) == 0) {
    wanted.color = l3_color(random.below(L3_COLOR_YCBCR + 1));
    wanted.sample = l3_sample(random.below(L3_SAMPLE_F16 + 1));
  }
  wanted.gap = random.below(2) ? random.below(40) : 0;
  wanted.offset = random.below(2) ? random.below(16) : 0;
  return wanted;
}

Bytes some_file(Random &random, bool checksums) {
  const uint32_t channels = random.between(1, L3_MAX_CHANNELS), bits = random.below(3) ? 8 : 16;
  const l3_profile profile = random.below(2) ? L3_PROFILE_FAST : l3_profile(random.below(3));
  const uint32_t width = random.below(3) ? random.between(1, 200) : 64 * random.between(1, 3),
                 height = random.between(1, 150);
  const Kind kind = kKinds[random.below(std::size(kKinds))];
  const Image image = make_image(random, width, height, channels, bits, kind);
  return encode(image, encode_options(profile, random.between(1, 3), checksums));
}

Bytes damaged(Random &random, Bytes file) {
  l3_file parsed;
  CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
  const size_t payload = size_t(parsed.payload - file.data());
  for (uint32_t changes = random.between(1, 3); changes; changes--)
    file[payload + random.below(parsed.info.payload_size)] ^= uint8_t(1u << random.below(8));
  return file;
}

}  // namespace l3
