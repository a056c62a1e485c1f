// Loading rows of tiles with AVX2.
#pragma once

#include "cpu/avx2/registers.h"
#include "cpu/quartered_plane.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx2 {
namespace {

// Rows of 8-bit samples in one, three or four channels are rearranged in registers; the compiler does the others.
struct RowLoader {
  template <uint32_t channels, typename Sample>
  static void load(const uint8_t *pixels, Sample *const (&rows)[channels]) {
    if constexpr (sizeof(Sample) == 1 && channels == 1)
      load_gray(pixels, rows[0]);
    else if constexpr (sizeof(Sample) == 1 && channels >= 3)
      load_colour<channels>(pixels, rows);
    else
      generic::RowLoader::load(pixels, rows);
  }

 private:
  static void load_gray(const uint8_t *pixels, uint8_t *row) {
    // In each half of a register, the columns of four groups; then those of the halves beside each other.
    static constexpr Bytes by_column = bytes_of([](uint32_t i) { return i % 4 * 4 + i % 16 / 4; });
    const auto load_eight_groups = [&](uint32_t group) {
      const __m256i columns = _mm256_shuffle_epi8(load(pixels + 4 * group), load_bytes(by_column));
      return _mm256_permutevar8x32_epi32(columns, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    };
    const __m256i first = load_eight_groups(0), second = load_eight_groups(8);
    store_halves(_mm256_unpacklo_epi64(first, second), row, row + 2 * generic::kQuarter);
    store_halves(_mm256_unpackhi_epi64(first, second), row + generic::kQuarter, row + 3 * generic::kQuarter);
  }

  // Transposes bytes: from 16 for each group, of four pixels, to one of every group.
  template <uint32_t channels>
  static void load_colour(const uint8_t *pixels, uint8_t *const (&rows)[channels]) {
    constexpr uint32_t size = 4 * channels;  // of a group
    __m256i bytes[8];                        // of the groups i and i + 8
    for (uint32_t i = 0; i < 8; i++) {
      const __m128i high = i < 7 || size == 16 ? load_half(pixels + (i + 8) * size)
                                               : _mm_srli_si128(load_half(pixels + 16 * size - 16), 16 - size);
      bytes[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(pixels + i * size)), high, 1);
    }
    // Interleaving registers that are four apart leaves pairs of groups beside each other, then fours, then eights.
    for (uint32_t round = 0; round < 3; round++) {
      __m256i interleaved[8];
      for (uint32_t i = 0; i < 4; i++) {
        interleaved[2 * i] = _mm256_unpacklo_epi8(bytes[i], bytes[i + 4]);
        interleaved[2 * i + 1] = _mm256_unpackhi_epi8(bytes[i], bytes[i + 4]);
      }
      std::copy(interleaved, interleaved + 8, bytes);
    }
    const auto place = [&](uint32_t byte) { return rows[byte % channels] + byte / channels * generic::kQuarter; };
    for (uint32_t byte = 0; byte < size; byte += 2)
      store_halves(_mm256_permute4x64_epi64(bytes[byte / 2], 0xD8), place(byte), place(byte + 1));
  }

  static __m256i load(const uint8_t *bytes) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bytes)); }
  static __m128i load_half(const uint8_t *bytes) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(bytes)); }

  static void store_halves(__m256i bytes, uint8_t *low, uint8_t *high) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(low), _mm256_castsi256_si128(bytes));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(high), _mm256_extracti128_si256(bytes, 1));
  }
};

}  // namespace
}  // namespace l3::avx2
