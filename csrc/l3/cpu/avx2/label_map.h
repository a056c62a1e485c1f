// Label maps: a half of a row's places in the table of values is one register.
#pragma once

#include "cpu/avx2/registers.h"
#include "cpu/label_marks.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx2 {
namespace {

constexpr Bytes kByteOfBit = bytes_of([](uint32_t i) { return i / 8; });
constexpr Bytes kBitOfByte = bytes_of([](uint32_t i) { return 1 << i % 8; });

// A byte of ones for each of 32 bits that is set.
inline __m256i bytes_of_bits(uint32_t bits) {
  const __m256i bit = load_bytes(kBitOfByte);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(int(bits)), load_bytes(kByteOfBit));
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
}

// 32 words, of bytes that are 0 or ones.
struct Words32 {
  __m256i left, right;
};
inline Words32 words_of_bytes(__m256i ones) {
  return {_mm256_cvtepi8_epi16(_mm256_castsi256_si128(ones)), _mm256_cvtepi8_epi16(_mm256_extracti128_si256(ones, 1))};
}

// A row of two labels.
template <typename Sample>
class TwoLabelRow;

template <>
class TwoLabelRow<uint8_t> {
 public:
  TwoLabelRow(uint8_t label, uint8_t difference) : difference_(_mm256_set1_epi8(char(difference))) {
    left_ = right_ = _mm256_set1_epi8(char(label));
  }
  void toggle(uint64_t marks) {
    left_ = _mm256_xor_si256(left_, _mm256_and_si256(bytes_of_bits(uint32_t(marks)), difference_));
    right_ = _mm256_xor_si256(right_, _mm256_and_si256(bytes_of_bits(uint32_t(marks >> 32)), difference_));
  }
  void write(uint8_t *row) const {
    store_aligned(row, left_);
    store_aligned(row + 32, right_);
  }

 private:
  __m256i left_, right_, difference_;
};

template <>
class TwoLabelRow<uint16_t> {
 public:
  TwoLabelRow(uint16_t label, uint16_t difference) : difference_(_mm256_set1_epi16(int16_t(difference))) {
    for (__m256i &quarter : quarters_) quarter = _mm256_set1_epi16(int16_t(label));
  }
  void toggle(uint64_t marks) {
    for (uint32_t i = 0; i < 2; i++) {
      const Words32 marked = words_of_bytes(bytes_of_bits(uint32_t(marks >> 32 * i)));
      toggle(quarters_[2 * i], marked.left);
      toggle(quarters_[2 * i + 1], marked.right);
    }
  }
  void write(uint16_t *row) const {
    for (uint32_t i = 0; i < 4; i++) store_aligned(row + 16 * i, quarters_[i]);
  }

 private:
  void toggle(__m256i &quarter, __m256i marked) const {
    quarter = _mm256_xor_si256(quarter, _mm256_and_si256(marked, difference_));
  }
  __m256i quarters_[4], difference_;
};

// A table of up to 32 bytes, by place.
class ByteTable {
 public:
  ByteTable() = default;
  explicit ByteTable(const uint8_t (&bytes)[32]) : first_(load_half(bytes)), second_(load_half(bytes + 16)) {}
  __m256i operator[](__m256i places) const {
    // A shuffle gives zeros for indices whose top bit is set.
    const __m256i of_first = _mm256_shuffle_epi8(first_, _mm256_add_epi8(places, _mm256_set1_epi8(0x70)));
    const __m256i of_second = _mm256_shuffle_epi8(second_, _mm256_sub_epi8(places, _mm256_set1_epi8(16)));
    return _mm256_or_si256(of_first, of_second);
  }

 private:
  static __m256i load_half(const uint8_t *bytes) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(bytes)));
  }
  __m256i first_, second_;
};
constexpr uint32_t kTableSize = 32;

// The labels of 32 pixels in memory order, by place.
template <typename Sample>
class Values;

template <>
class Values<uint8_t> {
 public:
  explicit Values(const uint8_t (&table)[kTableSize]) : bytes_(table) {}
  void store(__m256i places, uint8_t *row) const { store_aligned(row, bytes_[places]); }

 private:
  ByteTable bytes_;
};

template <>
class Values<uint16_t> {
 public:
  explicit Values(const uint16_t (&table)[kTableSize]) {
    uint8_t low[kTableSize], high[kTableSize];
    for (uint32_t i = 0; i < kTableSize; i++) {
      low[i] = uint8_t(table[i]);
      high[i] = uint8_t(table[i] >> 8);
    }
    low_ = ByteTable(low);
    high_ = ByteTable(high);
  }
  void store(__m256i places, uint16_t *row) const {
    const __m256i low = low_[places], high = high_[places];
    const __m256i even = _mm256_unpacklo_epi8(low, high), odd = _mm256_unpackhi_epi8(low, high);
    store_aligned(row, _mm256_permute2x128_si256(even, odd, 0x20));
    store_aligned(row + 16, _mm256_permute2x128_si256(even, odd, 0x31));
  }

 private:
  ByteTable low_, high_;
};

// Of a unit's pixel masks: the byte and the bit that tell whether a pixel of the upper row is marked; those of the
// lower row are four bits higher.
constexpr Bytes kMaskOfPixel = bytes_of([](uint32_t i) { return i / 4 % 8; });
constexpr Bytes kUpperBitOfPixel = bytes_of([](uint32_t i) { return 1 << i % 4; });

// By pixel mask: a byte of ones for each bit that is set.
constexpr std::array<uint64_t, 256> kBytesOfMask = [] {
  std::array<uint64_t, 256> bytes{};
  for (uint32_t mask = 0; mask < 256; mask++)
    for (uint32_t k = 0; k < 8; k++)
      if (mask >> k & 1) bytes[mask] |= uint64_t(255) << 8 * k;
  return bytes;
}();

struct UnitRanks {
  __m256i upper, lower;
};

// The ranks of a unit's pixels; moves `rank` past them.
inline UnitRanks expand_ranks(uint64_t masks, const uint8_t *&rank) {
  const auto next = [&] {
    const uint32_t mask = masks & 255;
    const uint64_t ranks = _pdep_u64(load<uint64_t>(rank), kBytesOfMask[mask]);
    rank += popcount(mask);
    masks >>= 8;
    return int64_t(ranks);
  };
  int64_t groups[kUnitGroups];
  for (int64_t &group : groups) group = next();
  // As with octets, rows are put together within lanes.
  const __m256 even = _mm256_castsi256_ps(_mm256_set_epi64x(groups[5], groups[4], groups[1], groups[0]));
  const __m256 odd = _mm256_castsi256_ps(_mm256_set_epi64x(groups[7], groups[6], groups[3], groups[2]));
  return {_mm256_castps_si256(_mm256_shuffle_ps(even, odd, 0x88)),
          _mm256_castps_si256(_mm256_shuffle_ps(even, odd, 0xDD))};
}

// Places of the labels of 32 pixels, given those above, and for pixels that are marked (bytes of ones) the ranks of
// theirs.
inline __m256i replace_places(__m256i above, __m256i ranks, __m256i marked) {
  const __m256i not_below = _mm256_cmpeq_epi8(_mm256_max_epu8(ranks, above), ranks);
  return _mm256_blendv_epi8(above, _mm256_sub_epi8(ranks, not_below), marked);
}

// Decodes a map of at most kTableSize labels.
template <typename Sample>
void decode_marks(const uint8_t *bytes, const LabelMap &map, TileShape shape, const uint8_t *rank, Sample *plane) {
  Sample table[kTableSize] = {};
  std::memcpy(table, bytes + map.values, map.labels * sizeof(Sample));
  const Values<Sample> values(table);
  generic::MarkReader marks(bytes, map);
  const __m256i mask_of_pixel = load_bytes(kMaskOfPixel), upper_bit = load_bytes(kUpperBitOfPixel),
                lower_bit = _mm256_slli_epi64(upper_bit, 4);
  const auto is_set = [](__m256i bits, __m256i bit) { return _mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), bit); };

  __m256i halves[2];
  halves[0] = halves[1] = _mm256_set1_epi8(char(map.first));
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    Sample *upper = plane + 2 * pair * L3_TILE;
    for (uint32_t i = 0; i < shape.units_per_row_pair(); i++, upper += 32) {
      __m256i &places = halves[i];
      const uint64_t masks = marks.next();
      if (masks) {
        const UnitRanks ranks = expand_ranks(masks, rank);
        const __m256i bits = _mm256_shuffle_epi8(_mm256_set1_epi64x(int64_t(masks)), mask_of_pixel);
        places = replace_places(places, ranks.upper, is_set(bits, upper_bit));
        values.store(places, upper);
        places = replace_places(places, ranks.lower, is_set(bits, lower_bit));
      } else {
        values.store(places, upper);
      }
      values.store(places, upper + L3_TILE);
    }
  }
}

template <typename Sample>
const char *decode_label_map(const uint8_t *bytes, const FastChannel &channel, TileShape shape, Sample *plane) {
  LabelMap map;
  uint8_t ranks[kMaxRanks];
  if (const char *problem = generic::read_label_map<Sample>(bytes, channel, shape, &map, ranks)) return problem;
  if (map.labels <= 2)
    generic::decode_two_labels<TwoLabelRow<Sample>>(bytes, map, shape, plane);
  else if (map.labels <= kTableSize)
    decode_marks(bytes, map, shape, ranks, plane);
  else
    generic::decode_marked_groups(bytes, map, shape, ranks, plane);
  return nullptr;
}

}  // namespace
}  // namespace l3::avx2
