#include "format/fast_payload.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "format/octet.h"

namespace l3 {
namespace {

constexpr uint32_t kMaxIndices = 1u << max_index_bits(16);

// The widths that a channel's indices stand for.
struct Widths {
  alignas(16) uint8_t of_index[kMaxIndices];

  Widths(const uint8_t *palette, uint32_t index_bits, uint32_t bits) {
    for (uint32_t i = 0; i < 1u << index_bits; i++)
      of_index[i] = uint8_t(code_width(code_of_index(palette, i, index_bits, bits)));
  }
};

#if defined(__x86_64__)

// The sum for whole units, whose index words stand side by side, with indices of at most four bits.
[[gnu::target("avx2,bmi2")]] uint32_t sum_of_whole_units(const uint8_t *words, uint32_t units, uint32_t index_bits,
                                                         const Widths &widths) {
  const __m256i table = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(widths.of_index)));
  const __m256i zero = _mm256_setzero_si256();
  const uint64_t index_positions = low_bits_of_bytes(index_bits);
  __m256i sums = zero;
  for (uint32_t unit = 0; unit < units; unit += 4) {
    uint64_t indices[4], present[4];
    for (uint32_t k = 0; k < 4; k++, words += index_bits) {
      present[k] = unit + k < units ? ~uint64_t(0) : 0;
      indices[k] = unit + k < units ? _pdep_u64(load<uint32_t>(words), index_positions) : 0;
    }
    const __m256i spread =
        _mm256_set_epi64x(int64_t(indices[3]), int64_t(indices[2]), int64_t(indices[1]), int64_t(indices[0]));
    const __m256i mask =
        _mm256_set_epi64x(int64_t(present[3]), int64_t(present[2]), int64_t(present[1]), int64_t(present[0]));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(_mm256_and_si256(_mm256_shuffle_epi8(table, spread), mask), zero));
  }
  const __m128i halves = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return uint32_t(_mm_cvtsi128_si64(halves) + _mm_extract_epi64(halves, 1));
}

#endif

}  // namespace

uint32_t fast_payload_size_portable(const uint8_t *bytes, const FastChannel &channel, uint32_t bits, TileShape shape) {
  const Widths widths(bytes + channel.palette, channel.index_bits, bits);
  const uint32_t index_mask = (1u << channel.index_bits) - 1, units_per_pair = shape.units_per_row_pair();
  const uint8_t *words = bytes + channel.indices;
  uint32_t size = 0;
  for (uint64_t units = channel.units; units; units &= units - 1, words += channel.index_bits) {
    const uint32_t first_group = uint32_t(std::countr_zero(units)) % units_per_pair * kUnitGroups;
    uint64_t word = load<uint64_t>(words);
    for (uint32_t group = first_group; group < std::min(first_group + kUnitGroups, shape.groups());
         group++, word >>= channel.index_bits)
      size += widths.of_index[word & index_mask];
  }
  return size;
}

uint32_t fast_payload_size(const uint8_t *bytes, const FastChannel &channel, uint32_t bits, TileShape shape) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  if (has_avx2 && shape.groups() % kUnitGroups == 0 && channel.index_bits <= 4)
    return sum_of_whole_units(bytes + channel.indices, popcount(channel.units), channel.index_bits,
                              Widths(bytes + channel.palette, channel.index_bits, bits));
#endif
  return fast_payload_size_portable(bytes, channel, bits, shape);
}

}  // namespace l3
