// How often each tile is decoded where several regions touch it. This program has a back end of its own, which counts.
#include <algorithm>
#include <map>
#include <vector>

#include "cpu/kernels.h"
#include "images.h"
#include "testing.h"

namespace {

std::map<const uint8_t *, int>
    g_decodes;  // of channels, by where their tile begins; the last ones of a file are copied

template <typename Sample>
uint32_t count_decode(const uint8_t *bytes, const l3::FastChannel &channel, l3::TileShape shape, Sample *plane) {
  g_decodes[bytes]++;
  return l3::kPortableKernels.of_samples<Sample>().decode_channel(bytes, channel, shape, plane);
}

l3::Kernels counting_kernels() {
  l3::Kernels kernels = l3::kPortableKernels;
  kernels.of_8_bits.decode_channel = count_decode<uint8_t>;
  kernels.of_16_bits.decode_channel = count_decode<uint16_t>;
  return kernels;
}

}  // namespace

// In the place of cpu/backend.cc, which the linker leaves out.
namespace l3 {
const Kernels *active_kernels(l3_error *) {
  static const Kernels kernels = counting_kernels();
  return &kernels;
}
}  // namespace l3

using namespace l3;

TEST(each_tile_is_decoded_once_however_many_regions_touch_it) {
  constexpr uint32_t kChannels = 3, kWidth = 400, kHeight = 300;
  Random random(12);
  for (const uint32_t bits : {8, 16}) {
    const Bytes file =
        encode(make_image(random, kWidth, kHeight, kChannels, bits, Kind::kSlope), encode_options(L3_PROFILE_FAST));
    l3_file parsed;
    CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
    for (uint32_t trial = 0; trial < 50; trial++) {
      const uint32_t width = random.between(1, 200), height = random.between(1, 200), count = random.between(1, 9);
      std::vector<l3_rect> regions(count);
      for (l3_rect &region : regions)
        region = {random.between(0, kWidth - width), random.between(0, kHeight - height), width, height};
      std::vector<l3_region_tile> tiles(l3_list_region_tiles(&parsed, regions.data(), count, nullptr));
      l3_list_region_tiles(&parsed, regions.data(), count, tiles.data());
      std::vector<l3_region_tile> alone = tiles;  // each tile for one of its regions only
      alone.erase(std::unique(alone.begin(), alone.end(), [](auto a, auto b) { return a.tile == b.tile; }),
                  alone.end());

      const size_t row = width * kChannels * bits / 8;
      Bytes pixels(row * height * count);
      const l3_output output = {pixels.data(), row, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0};
      const auto decodes = [&](const std::vector<l3_region_tile> &list) {
        g_decodes.clear();
        CHECK_EQUAL(l3_decode_region_tiles(&parsed, regions.data(), &output, row * height, 0, list.data(), list.size(),
                                           nullptr),
                    L3_OK);
        return g_decodes;
      };
      CHECK(decodes(tiles) == decodes(alone));
    }
  }
}
