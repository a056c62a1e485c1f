// Label maps: a row's places in the table of values are one register.
#pragma once

#include "cpu/avx512/registers.h"
#include "cpu/generic_label_map.h"

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

// The marks of a tile, unit by unit.
class MarkReader {
 public:
  MarkReader(const uint8_t *bytes, const LabelMap &map)
      : units_(map.units), group_masks_(bytes + map.group_masks), pixel_masks_(bytes + map.pixel_masks) {}

  // The next unit's pixel masks, a byte a group. Reads eight bytes from the masks on.
  uint64_t next() {
    const uint64_t present = units_ & 1;
    units_ >>= 1;
    const uint32_t groups = *group_masks_ & uint32_t(-present);
    group_masks_ += present;
    const uint64_t masks = _pdep_u64(load<uint64_t>(pixel_masks_), generic::bytes_of_bits(groups));
    pixel_masks_ += popcount(groups);
    return masks;
  }

 private:
  uint64_t units_;
  const uint8_t *group_masks_, *pixel_masks_;
};

// Places of the labels of a row, given those above, and for pixels that are marked the ranks of theirs.
inline __m512i replace_places(__m512i above, __m512i ranks, __mmask64 marked) {
  const __mmask64 not_below = _mm512_cmpge_epu8_mask(ranks, above);
  const __m512i places = _mm512_mask_add_epi8(ranks, not_below, ranks, _mm512_set1_epi8(1));
  return _mm512_mask_mov_epi8(above, marked, places);
}

template <uint32_t registers, typename Sample>
void decode_marks(const uint8_t *bytes, const LabelMap &map, TileShape shape, const uint8_t *rank,
                  const Sample (&table)[kMaxLabels], Sample *plane) {
  const Values<Sample, registers> values(table);
  MarkReader marks(bytes, map);
  const bool two_units = shape.units_per_row_pair() == 2;
  const auto next_ranks = [&](uint64_t marked) {
    const __m512i expanded = _mm512_maskz_expand_epi8(marked, _mm512_loadu_si512(rank));
    rank += popcount(marked);
    return expanded;
  };
  // In a unit the rows of the groups alternate, as in octets: four pixels of the upper, four of the lower.
  const __m512i upper_of_units = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i lower_of_units = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  constexpr uint64_t upper_bits = 0x0F0F0F0F0F0F0F0F;

  __m512i places = _mm512_set1_epi8(char(map.first));
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    Sample *const upper = plane + 2 * pair * L3_TILE;
    const uint64_t left = marks.next(), right = two_units ? marks.next() : 0;
    const __m512i left_ranks = next_ranks(left), right_ranks = next_ranks(right);
    places = replace_places(places, _mm512_permutex2var_epi32(left_ranks, upper_of_units, right_ranks),
                            _pext_u64(left, upper_bits) | _pext_u64(right, upper_bits) << 32);
    values.store_row(places, upper);
    places = replace_places(places, _mm512_permutex2var_epi32(left_ranks, lower_of_units, right_ranks),
                            _pext_u64(left, ~upper_bits) | _pext_u64(right, ~upper_bits) << 32);
    values.store_row(places, upper + L3_TILE);
  }
}

template <typename Sample>
const char *decode_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane) {
  LabelMap map;
  if (const char *problem = generic::parse_all_but_ranks<Sample>(bytes, channel, shape, &map)) return problem;
  uint8_t ranks[kMaxRanks];
  if (const char *problem = generic::unpack_ranks(bytes, channel, map, ranks)) return problem;
  Sample table[kMaxLabels] = {};
  std::memcpy(table, bytes + map.values, map.labels * sizeof(Sample));
  if (map.labels <= 64)
    decode_marks<1>(bytes, map, shape, ranks, table, plane);
  else if (map.labels <= 128)
    decode_marks<2>(bytes, map, shape, ranks, table, plane);
  else
    decode_marks<4>(bytes, map, shape, ranks, table, plane);
  return nullptr;
}

}  // namespace
}  // namespace l3::avx512
