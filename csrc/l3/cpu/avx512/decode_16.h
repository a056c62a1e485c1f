// Channels of 16-bit samples: a row of a tile is two registers.
#pragma once

#include "cpu/avx512/code_reader.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx512 {
namespace {

struct Row16 {
  __m512i left, right;
};
inline Row16 operator+(const Row16 &a, const Row16 &b) {
  return {_mm512_add_epi16(a.left, b.left), _mm512_add_epi16(a.right, b.right)};
}
inline Row16 average(const Row16 &a, const Row16 &b) {
  return {_mm512_avg_epu16(a.left, b.left), _mm512_avg_epu16(a.right, b.right)};
}

struct RowPair16 {
  Row16 upper, lower;
};

// Tables indexed by code. An octet consists of the low bytes of its fields and the high ones: the low and the high byte
// of an entry are about these.
constexpr Words kWidths16 = words_of([](uint32_t code) {
  const uint32_t width = code_width(code);
  return width > 8 ? 8 | (width - 8) << 8 : width;
});
constexpr Words kMasks16 = words_of([](uint32_t code) { return (1u << code_width(code)) - 1; });
constexpr Words kMinima16 = words_of(code_minimum);

// Of four groups, a lane each: whose low or high byte a byte takes.
constexpr Bytes kEntryOfByte = bytes_of([](uint32_t i) { return i / 8; });
// For fields of width w, byte k of a quadword starts at bit k * w: even bytes hold w, and are multiplied by this.
constexpr Bytes kFieldOfByte16 = bytes_of([](uint32_t i) { return i % 8; });
// Of eight groups, 16 bytes each: where the upper four samples of each lie, low bytes first, then high ones; the lower
// four follow after four bytes.
constexpr Bytes kUpperBytes = bytes_of([](uint32_t i) { return i / 8 * 16 + i % 8 / 2 + i % 2 * 8; });
constexpr Words kGroupOfSample = words_of([](uint32_t i) { return i / 4; });

// Unpacks the octets of a row pair.
struct PairUnpacker16 {
  const __m512i widths = load_words(kWidths16), masks = load_words(kMasks16), minima = load_words(kMinima16);
  const __m512i entry_of_byte = load_bytes(kEntryOfByte), field_of_byte = load_bytes(kFieldOfByte16),
                group_of_sample = load_words(kGroupOfSample);
  const __m512i uppers = load_bytes(kUpperBytes), lowers = _mm512_add_epi8(uppers, _mm512_set1_epi8(4));

  // The fields of four groups from `first` on, a group in 16 bytes, given the entries of all sixteen.
  __m512i fields(int first, uint64_t octet_bytes, __m512i width, __m512i mask, const uint8_t *payload) const {
    const __m512i octets = _mm512_maskz_expand_epi8(octet_bytes, _mm512_loadu_si512(payload));
    const __m512i entries = _mm512_add_epi8(entry_of_byte, _mm512_set1_epi8(char(2 * first)));
    const __m512i width_of_lane = _mm512_maskz_permutexvar_epi8(0x5555555555555555, entries, width);
    const __m512i bytes = _mm512_multishift_epi64_epi8(_mm512_mullo_epi16(width_of_lane, field_of_byte), octets);
    return _mm512_and_si512(bytes, _mm512_permutexvar_epi8(entries, mask));
  }

  // The residuals of a row pair whose groups have these sixteen codes; moves `payload` past the octets.
  RowPair16 operator()(__m128i codes, const uint8_t *&payload) const {
    const __m512i code = _mm512_castsi256_si512(_mm256_cvtepu8_epi16(codes));
    const __m512i width = _mm512_permutexvar_epi16(code, widths), mask = _mm512_permutexvar_epi16(code, masks),
                  minimum = _mm512_permutexvar_epi16(code, minima);
    // An entry of masks has as many ones in each byte as that part of the octet has bytes.
    const __m256i octet_bytes = _mm512_castsi512_si256(mask);
    const uint64_t quarters[4] = {
        uint64_t(_mm256_extract_epi64(octet_bytes, 0)), uint64_t(_mm256_extract_epi64(octet_bytes, 1)),
        uint64_t(_mm256_extract_epi64(octet_bytes, 2)), uint64_t(_mm256_extract_epi64(octet_bytes, 3))};
    __m512i groups[4];
    for (int i = 0; i < 4; i++) {
      groups[i] = fields(4 * i, quarters[i], width, mask, payload);
      payload += _mm_popcnt_u64(quarters[i]);
    }
    const __m512i left = _mm512_permutexvar_epi16(group_of_sample, minimum),
                  right = _mm512_permutexvar_epi16(_mm512_add_epi16(group_of_sample, _mm512_set1_epi16(8)), minimum);
    const auto row = [&](__m512i which) {
      return Row16{_mm512_add_epi16(_mm512_permutex2var_epi8(groups[0], which, groups[1]), left),
                   _mm512_add_epi16(_mm512_permutex2var_epi8(groups[2], which, groups[3]), right)};
    };
    return {row(uppers), row(lowers)};
  }
};

// Where the group before each ends in a row. None is before the first.
constexpr Words kEndsBefore16 = words_of([](uint32_t i) { return i % 16 ? 4 * (i % 16) - 1 : 0; });

// Running sums along both rows of a pair: within groups first, then over the sums of groups, sixteen of each row side
// by side.
struct PrefixSum16 {
  const __m512i ends_before = load_words(kEndsBefore16), group_of_sample = load_words(kGroupOfSample);

  static __m512i within_groups(__m512i samples) {
    samples = _mm512_add_epi16(samples, _mm512_slli_epi64(samples, 16));
    return _mm512_add_epi16(samples, _mm512_slli_epi64(samples, 32));
  }
  static Row16 within_groups(const Row16 &row) { return {within_groups(row.left), within_groups(row.right)}; }

  // `sums` holds those before each group, of the upper row and the lower.
  Row16 add(const Row16 &row, __m512i sums, int first) const {
    const __m512i left = _mm512_add_epi16(group_of_sample, _mm512_set1_epi16(int16_t(first))),
                  right = _mm512_add_epi16(left, _mm512_set1_epi16(8));
    return {_mm512_add_epi16(row.left, _mm512_permutexvar_epi16(left, sums)),
            _mm512_add_epi16(row.right, _mm512_permutexvar_epi16(right, sums))};
  }

  RowPair16 operator()(const RowPair16 &rows) const {
    const Row16 upper = within_groups(rows.upper), lower = within_groups(rows.lower);
    // The ends of the groups before; zeros before the first.
    const __m512i of_upper = _mm512_maskz_permutex2var_epi16(0x0000FFFE, upper.left, ends_before, upper.right),
                  of_lower = _mm512_maskz_permutex2var_epi16(0xFFFE0000, lower.left, ends_before, lower.right);
    __m512i sums = _mm512_or_si512(of_upper, of_lower);
    sums = _mm512_add_epi16(sums, _mm512_bslli_epi128(sums, 2));
    sums = _mm512_add_epi16(sums, _mm512_bslli_epi128(sums, 4));
    sums = _mm512_add_epi16(sums, _mm512_bslli_epi128(sums, 8));
    const __m512i ends = _mm512_shuffle_epi8(sums, _mm512_set1_epi16(0x0F0E));  // each lane's, in its every word
    sums = _mm512_add_epi16(sums, _mm512_maskz_shuffle_i64x2(0xCC, ends, ends, 0xA0));  // from lanes 0 and 2 to 1 and 3
    return {add(upper, sums, 0), add(lower, sums, 16)};
  }
};

// Places of neighbours among the samples of a row.
constexpr Words kLeftOfLeft = words_of([](uint32_t i) { return i ? i - 1 : 0; });
constexpr Words kLeftOfRight = words_of([](uint32_t i) { return 31 + i; });
constexpr Words kRightOfLeft = words_of([](uint32_t i) { return i + 1; });
constexpr Words kRightOfRight = words_of([](uint32_t i) { return 33 + i; });

template <uint32_t predictor>
uint32_t decode_channel_16(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint16_t *plane) {
  const PairUnpacker16 unpack_pair;
  const PrefixSum16 prefix_sum;
  const __m512i last = _mm512_set1_epi16(int16_t(shape.width - 1));
  const Row16 to_the_left = {load_words(kLeftOfLeft), load_words(kLeftOfRight)};
  const Row16 to_the_right = {_mm512_min_epu16(load_words(kRightOfLeft), last),
                              _mm512_min_epu16(load_words(kRightOfRight), last)};
  const auto smooth = [&](const Row16 &row) {
    const Row16 left = {_mm512_permutexvar_epi16(to_the_left.left, row.left),
                        _mm512_permutex2var_epi16(row.left, to_the_left.right, row.right)};
    const Row16 right = {_mm512_permutex2var_epi16(row.left, to_the_right.left, row.right),
                         _mm512_permutexvar_epi16(to_the_right.right, row.right)};
    return average(average(left, right), row);
  };

  CodeReader<16> codes(bytes, channel, shape);
  const uint8_t *payload = bytes + channel.payload;

  const __m512i first = _mm512_set1_epi16(int16_t(channel.first));
  Row16 above = {first, first};
  const auto reconstruct = [&](const Row16 &row, bool first_row) {
    Row16 base = above;
    if (!first_row) {
      if (predictor == kLeft) base.left = base.right = _mm512_broadcastw_epi16(_mm512_castsi512_si128(above.left));
      if (predictor == kSmoothAbove || predictor == kSmoothPlane) base = smooth(above);
    }
    above = row + base;
    _mm512_store_si512(plane, above.left);
    _mm512_store_si512(plane + 32, above.right);
    plane += L3_TILE;
  };
  // The residuals of the next pair are prepared before a pair is reconstructed, as with 8 bits.
  RowPair16 rows = unpack_pair(codes.next(), payload);
  const RowPair16 sums = prefix_sum(rows);
  rows.upper = sums.upper;
  if (sums_along_row(predictor)) rows.lower = sums.lower;
  bool first_row = true;
  for (uint32_t pair = 1; pair < shape.row_pairs(); pair++) {
    RowPair16 next = unpack_pair(codes.next(), payload);
    if (sums_along_row(predictor)) next = prefix_sum(next);
    reconstruct(rows.upper, first_row);
    reconstruct(rows.lower, false);
    first_row = false;
    rows = next;
  }
  reconstruct(rows.upper, first_row);
  reconstruct(rows.lower, false);
  return uint32_t(payload - bytes);
}

}  // namespace
}  // namespace l3::avx512
