// The back end for AVX2 and BMI2.
#include <immintrin.h>

#include "cpu/avx2/decode_16.h"
#include "cpu/avx2/decode_8.h"
#include "cpu/avx2/label_map.h"
#include "cpu/avx2/load_row.h"
#include "cpu/avx2/store_tile.h"
#include "cpu/dispatch.h"
#include "cpu/generic_kernels.h"
#include "cpu/uncached_rows.h"

namespace l3 {
namespace {

using avx2::load_32;
using avx2::store_32;

uint32_t decode_channel(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint8_t *plane) {
  return generic::with_predictor(channel.predictor, [&](auto predictor) {
    return avx2::decode_channel_8<predictor>(bytes, channel, shape, plane);
  });
}

uint32_t decode_channel(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint16_t *plane) {
  return generic::with_predictor(channel.predictor, [&](auto predictor) {
    return avx2::decode_channel_16<predictor>(bytes, channel, shape, plane);
  });
}

void copy_rows(const Rows &rows, Destination destination) {
  const auto [first, in_stride, row_size, count] = rows;
  const uint8_t *in = first;
  uint8_t *out = destination.data;
  for (uint32_t y = 0; y < count; y++, in += in_stride, out += destination.stride) {
    uint32_t x = 0;
    for (; x + 32 <= row_size; x += 32) store_32(out + x, load_32(in + x), Stores::kCached);
    std::memcpy(out + x, in + x, row_size - x);
  }
}

// A line of zeros, then one of ones.
constexpr std::array<uint8_t, 2 * kCacheLine> kZerosAndOnes = [] {
  std::array<uint8_t, 2 * kCacheLine> bytes{};
  for (uint32_t i = kCacheLine; i < 2 * kCacheLine; i++) bytes[i] = 255;
  return bytes;
}();

struct Line {
  static void store(uint8_t *line, const uint8_t *bytes) { store(line, load_32(bytes), load_32(bytes + 32)); }
  static void store_joined(uint8_t *line, const uint8_t *first, const uint8_t *rest, uint32_t size) {
    const uint8_t *of_rest = kZerosAndOnes.data() + kCacheLine - size;
    store(line, _mm256_blendv_epi8(load_32(first), load_32(rest), load_32(of_rest)),
          _mm256_blendv_epi8(load_32(first + 32), load_32(rest + 32), load_32(of_rest + 32)));
  }
  static void copy(uint8_t *line, const uint8_t *bytes, uint32_t begin, uint32_t end) {
    std::memcpy(line + begin, bytes + begin, end - begin);
  }
  static void keep(uint8_t *line, const uint8_t *bytes, uint32_t end) { copy(line, bytes, 0, end); }

 private:
  static void store(uint8_t *line, __m256i left, __m256i right) {
    store_32(line, left, Stores::kUncached);
    store_32(line + 32, right, Stores::kUncached);
  }
};

}  // namespace

const Kernels kAvx2Kernels = {
    .name = "avx2",
    .supported = cpu_runs_avx2_kernels,
    .of_8_bits = {.decode_channel = decode_channel,
                  .decode_label_map = avx2::decode_label_map<uint8_t>,
                  .store_tile = avx2::store_tile<uint8_t>,
                  .encode_tile = generic::encode_tile<uint8_t, avx2::RowLoader>},
    .of_16_bits = {.decode_channel = decode_channel,
                   .decode_label_map = avx2::decode_label_map<uint16_t>,
                   .store_tile = avx2::store_tile<uint16_t>,
                   .encode_tile = generic::encode_tile<uint16_t, avx2::RowLoader>},
    .copy_rows = copy_rows,
    .copy_rows_uncached = generic::copy_rows_uncached<Line>,
};

}  // namespace l3
