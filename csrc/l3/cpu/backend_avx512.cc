// The back end for AVX-512 with VBMI and VBMI2 (Ice Lake and Zen 4 onwards).
#include <immintrin.h>

#include "cpu/avx512/decode_16.h"
#include "cpu/avx512/decode_8.h"
#include "cpu/avx512/label_map.h"
#include "cpu/avx512/load_row.h"
#include "cpu/avx512/store_tile.h"
#include "cpu/dispatch.h"
#include "cpu/generic_kernels.h"
#include "cpu/uncached_rows.h"

namespace l3 {
namespace {

uint32_t decode_channel(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint8_t *plane) {
  return generic::with_predictor(channel.predictor, [&](auto predictor) {
    return avx512::decode_channel_8<predictor>(bytes, channel, shape, plane);
  });
}

uint32_t decode_channel(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint16_t *plane) {
  return generic::with_predictor(channel.predictor, [&](auto predictor) {
    return avx512::decode_channel_16<predictor>(bytes, channel, shape, plane);
  });
}

struct Line {
  static void store(uint8_t *line, const uint8_t *bytes) {
    avx512::store_line_uncached(line, _mm512_loadu_si512(bytes));
  }
  static void store_joined(uint8_t *line, const uint8_t *first, const uint8_t *rest, uint32_t size) {
    avx512::store_line_uncached(line, _mm512_mask_loadu_epi8(_mm512_load_si512(first), ~low_bits(size), rest));
  }
  static void copy(uint8_t *line, const uint8_t *bytes, uint32_t begin, uint32_t end) {
    const __mmask64 mask = low_bits(end) & ~low_bits(begin);
    _mm512_mask_storeu_epi8(line, mask, _mm512_maskz_loadu_epi8(mask, bytes));
  }
  static void keep(uint8_t *line, const uint8_t *bytes, uint32_t end) {
    _mm512_store_si512(line, _mm512_maskz_loadu_epi8(low_bits(end), bytes));
  }
};

void copy_rows(const Rows &rows, Destination destination) {
  const auto [first, in_stride, row_size, count] = rows;
  const uint8_t *in = first;
  uint8_t *out = destination.data;
  for (uint32_t y = 0; y < count; y++, in += in_stride, out += destination.stride) {
    uint32_t x = 0;
    for (; x + 64 <= row_size; x += 64) _mm512_storeu_si512(out + x, _mm512_loadu_si512(in + x));
    Line::copy(out + x, in + x, 0, row_size - x);
  }
}

}  // namespace

const Kernels kAvx512Kernels = {
    .name = "avx512",
    .supported = cpu_runs_avx512_kernels,
    .of_8_bits = {.decode_channel = decode_channel,
                  .decode_label_map = avx512::decode_label_map<uint8_t>,
                  .store_tile = avx512::store_tile<uint8_t>,
                  .encode_tile = generic::encode_tile<uint8_t, avx512::RowLoader>},
    .of_16_bits = {.decode_channel = decode_channel,
                   .decode_label_map = avx512::decode_label_map<uint16_t>,
                   .store_tile = avx512::store_tile<uint16_t>,
                   .encode_tile = generic::encode_tile<uint16_t, avx512::RowLoader>},
    .copy_rows = copy_rows,
    .copy_rows_uncached = generic::copy_rows_uncached<Line>,
};

}  // namespace l3
