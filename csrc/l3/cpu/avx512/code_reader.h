// The codes of a channel's groups, a row pair at a time.
#pragma once

#include "cpu/avx512/registers.h"
#include "cpu/code_tables.h"
#include "format/fast_tile.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx512 {
namespace {

// Of a channel of samples of `bits` bits.
template <uint32_t bits>
class CodeReader {
 public:
  CodeReader(const uint8_t *bytes, const FastChannel &channel, TileShape shape)
      : palette_(load_palette(bytes + channel.palette, channel.index_bits)),
        starts_(_mm_set1_epi64x(int64_t(0x0706050403020100ull * channel.index_bits))),
        index_mask_(_mm_set1_epi8(char((1u << channel.index_bits) - 1))),
        has_palette_(bits == 8 || has_palette(channel.index_bits, bits)),
        indices_(bytes + channel.indices),
        index_bits_(channel.index_bits),
        units_(channel.units),
        units_per_pair_(shape.units_per_row_pair()) {
    const __m128i group = _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m128i outside = _mm_cmpgt_epi8(group, _mm_set1_epi8(char(shape.groups() - 1)));
    for (uint32_t present = 0; present < 4; present++) {
      const __m128i absent = _mm_set_epi64x(present & 2 ? 0 : -1, present & 1 ? 0 : -1);
      absent_[present] = _mm_and_si128(_mm_or_si128(outside, absent), _mm_set1_epi8(char(0x80)));
    }
  }

  // Of the next row pair, sixteen groups; 0 for those that are absent or outside the tile.
  __m128i next() {
    const uint64_t present = units_ & low_bits(units_per_pair_);
    units_ >>= units_per_pair_;
    const uint8_t *const right = indices_ + (index_bits_ & -(present & 1));
    const __m128i words = _mm_set_epi64x(load<int64_t>(right), load<int64_t>(indices_));
    indices_ = right + (index_bits_ & -(present >> 1));
    // Index k of a word starts at bit k * index_bits.
    const __m128i indices = _mm_and_si128(_mm_multishift_epi64_epi8(starts_, words), index_mask_);
    // The top bit makes a shuffle give 0, and an index negative.
    const __m128i marked = _mm_or_si128(indices, absent_[present]);
    return has_palette_ ? _mm_shuffle_epi8(palette_, marked) : _mm_max_epi8(marked, _mm_setzero_si128());
  }

 private:
  static __m128i load_palette(const uint8_t *palette, uint32_t index_bits) {
    if constexpr (bits == 8) return generic::load_palette(palette, index_bits);
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(palette));
  }

  __m128i absent_[4];  // top bits of the groups that are absent or outside, by which of the two units are present
  __m128i palette_, starts_, index_mask_;
  bool has_palette_;
  const uint8_t *indices_;
  uint64_t index_bits_, units_;
  uint32_t units_per_pair_;
};

}  // namespace
}  // namespace l3::avx512
