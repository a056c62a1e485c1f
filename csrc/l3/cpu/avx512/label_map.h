// Label maps: a row's places in the table of values are one register.
#pragma once

#include "cpu/avx512/registers.h"
#include "cpu/label_marks.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx512 {
namespace {

// A table of bytes, by place.
template <uint32_t registers>
struct ByteTable {
  __m512i entries[registers];

  explicit ByteTable(const uint8_t *bytes) {
    for (uint32_t i = 0; i < registers; i++) entries[i] = _mm512_loadu_si512(bytes + 64 * i);
  }
  __m512i operator[](__m512i places) const {
    if constexpr (registers == 1) {
      return _mm512_permutexvar_epi8(places, entries[0]);
    } else {
      const __m512i first = _mm512_permutex2var_epi8(entries[0], places, entries[1]);
      if constexpr (registers == 2) return first;
      return _mm512_mask_blend_epi8(_mm512_movepi8_mask(places), first,
                                    _mm512_permutex2var_epi8(entries[2], places, entries[3]));
    }
  }
};

// The values of a row, by place.
template <typename Sample, uint32_t registers>
struct Values;

template <uint32_t registers>
struct Values<uint8_t, registers> {
  ByteTable<registers> values;

  explicit Values(const uint8_t (&table)[kMaxLabels]) : values(table) {}
  void store_row(__m512i places, uint8_t *row) const { _mm512_store_si512(row, values[places]); }
};

template <uint32_t registers>
struct Values<uint16_t, registers> {
  ByteTable<registers> low, high;

  explicit Values(const uint16_t (&table)[kMaxLabels]) : Values(split(table)) {}
  void store_row(__m512i places, uint16_t *row) const {
    const __m512i lows = low[places], highs = high[places];
    _mm512_store_si512(row, words(_mm512_castsi512_si256(lows), _mm512_castsi512_si256(highs)));
    _mm512_store_si512(row + 32, words(_mm512_extracti64x4_epi64(lows, 1), _mm512_extracti64x4_epi64(highs, 1)));
  }

 private:
  struct Split {
    uint8_t low[kMaxLabels], high[kMaxLabels];
  };
  static Split split(const uint16_t (&table)[kMaxLabels]) {
    Split bytes;
    for (uint32_t i = 0; i < 64 * registers; i++) {
      bytes.low[i] = uint8_t(table[i]);
      bytes.high[i] = uint8_t(table[i] >> 8);
    }
    return bytes;
  }
  explicit Values(const Split &bytes) : low(bytes.low), high(bytes.high) {}

  static __m512i words(__m256i lows, __m256i highs) {
    return _mm512_or_si512(_mm512_cvtepu8_epi16(lows), _mm512_slli_epi16(_mm512_cvtepu8_epi16(highs), 8));
  }
};

// Places of the labels of a row, given those above, and for pixels that are marked the ranks of theirs, which are less
// than 255.
inline __m512i replace_places(__m512i above, __m512i ranks, __mmask64 marked) {
  const __m512i one = _mm512_set1_epi8(1), next = _mm512_add_epi8(ranks, one);
  const __m512i not_below = _mm512_min_epu8(_mm512_subs_epu8(next, above), one);  // 1 if rank >= above
  return _mm512_mask_add_epi8(above, marked, ranks, not_below);
}

template <uint32_t registers, typename Sample>
void decode_marks(const uint8_t *bytes, const LabelMap &map, TileShape shape, const uint8_t *rank, Sample *plane) {
  Sample table[kMaxLabels] = {};
  std::memcpy(table, bytes + map.values, map.labels * sizeof(Sample));
  const Values<Sample, registers> values(table);
  generic::MarkReader marks(bytes, map);
  const bool two_units = shape.units_per_row_pair() == 2;
  const auto next_ranks = [&](uint64_t marked) {
    const __m512i expanded = _mm512_maskz_expand_epi8(marked, _mm512_loadu_si512(rank));
    rank += popcount(marked);
    return expanded;
  };
  // In a unit the rows of the groups alternate, as in octets: four pixels of the upper, four of the lower.
  const __m512i upper_of_units = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i lower_of_units = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  using generic::lower_marks, generic::upper_marks;

  __m512i places = _mm512_set1_epi8(char(map.first));
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    Sample *const upper = plane + 2 * pair * L3_TILE;
    const uint64_t left = marks.next(), right = two_units ? marks.next() : 0;
    const __m512i left_ranks = next_ranks(left), right_ranks = next_ranks(right);
    places = replace_places(places, _mm512_permutex2var_epi32(left_ranks, upper_of_units, right_ranks),
                            upper_marks(left) | uint64_t(upper_marks(right)) << 32);
    values.store_row(places, upper);
    places = replace_places(places, _mm512_permutex2var_epi32(left_ranks, lower_of_units, right_ranks),
                            lower_marks(left) | uint64_t(lower_marks(right)) << 32);
    values.store_row(places, upper + L3_TILE);
  }
}

// A row of two labels.
template <typename Sample>
class TwoLabelRow;

template <>
class TwoLabelRow<uint8_t> {
 public:
  TwoLabelRow(uint8_t label, uint8_t difference)
      : samples_(_mm512_set1_epi8(char(label))), difference_(_mm512_set1_epi8(char(difference))) {}
  void toggle(uint64_t marks) { samples_ = _mm512_xor_si512(samples_, _mm512_maskz_mov_epi8(marks, difference_)); }
  void write(uint8_t *row) const { _mm512_store_si512(row, samples_); }

 private:
  __m512i samples_, difference_;
};

template <>
class TwoLabelRow<uint16_t> {
 public:
  TwoLabelRow(uint16_t label, uint16_t difference)
      : left_(_mm512_set1_epi16(int16_t(label))), right_(left_), difference_(_mm512_set1_epi16(int16_t(difference))) {}
  void toggle(uint64_t marks) {
    left_ = _mm512_xor_si512(left_, _mm512_maskz_mov_epi16(__mmask32(marks), difference_));
    right_ = _mm512_xor_si512(right_, _mm512_maskz_mov_epi16(__mmask32(marks >> 32), difference_));
  }
  void write(uint16_t *row) const {
    _mm512_store_si512(row, left_);
    _mm512_store_si512(row + 32, right_);
  }

 private:
  __m512i left_, right_, difference_;
};

template <typename Sample>
const char *decode_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane) {
  LabelMap map;
  uint8_t ranks[kMaxRanks];
  if (const char *problem = generic::read_label_map<Sample>(bytes, channel, shape, &map, ranks)) return problem;
  if (map.labels <= 2)
    generic::decode_two_labels<TwoLabelRow<Sample>>(bytes, map, shape, plane);
  else if (map.labels <= 64)
    decode_marks<1>(bytes, map, shape, ranks, plane);
  else if (map.labels <= 128)
    decode_marks<2>(bytes, map, shape, ranks, plane);
  else
    decode_marks<4>(bytes, map, shape, ranks, plane);
  return nullptr;
}

}  // namespace
}  // namespace l3::avx512
