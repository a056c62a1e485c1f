// Channels of 8-bit samples: a row of a tile is one register.
#pragma once

#include "cpu/avx512/code_reader.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx512 {
namespace {

constexpr generic::CodeTable kMasks = generic::code_table([](uint32_t code) { return (1u << code_width(code)) - 1; });
constexpr Bytes kIdentity = bytes_of([](uint32_t i) { return i; });
constexpr Bytes kToTheLeft = bytes_of([](uint32_t i) { return i ? i - 1 : 0; });
constexpr Bytes kGroupOfByte = bytes_of([](uint32_t i) { return i / 8; });   // in a unit
constexpr Bytes kGroupOfPixel = bytes_of([](uint32_t i) { return i / 4; });  // in a row
constexpr Bytes kFieldOfByte = bytes_of([](uint32_t i) { return i % 8; });
// Of 64 bytes, where the group before each ends in a row; of the next 64, the same in another. None is before the
// first.
constexpr Bytes kEndsBefore = bytes_of([](uint32_t i) { return i % 16 ? 64 * (i / 16) + 4 * (i % 16) - 1 : 0; });
constexpr __mmask64 kGroupsAfterFirst = 0xFFFEFFFE;
constexpr Bytes kSecondToLaterOfGroup = bytes_of([](uint32_t i) { return i % 4 < 2 ? 128 : i % 16 / 4 * 4 + 1; });

struct RowPair {
  __m512i upper, lower;
};

// Unpacks the octets of a row pair.
struct PairUnpacker {
  const __m128i widths = generic::load_table(generic::kWidths), masks = generic::load_table(kMasks),
                minima = generic::load_table(generic::kMinima);
  const __m512i left_groups = load_bytes(kGroupOfByte),
                right_groups = _mm512_add_epi8(left_groups, _mm512_set1_epi8(8));
  const __m512i group_of_pixel = load_bytes(kGroupOfPixel), field_of_byte = load_bytes(kFieldOfByte);
  // In a unit the rows of the groups alternate: four bytes of the upper, four of the lower.
  const __m512i upper_of_units = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i lower_of_units = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);

  // The fields of a unit, a group in eight bytes, given the widths and masks of the row pair's groups, and which groups
  // are the unit's.
  __m512i fields(uint64_t octet_bytes, __m128i width, __m128i mask, __m512i groups, const uint8_t *payload) const {
    const __m512i octets = _mm512_maskz_expand_epi8(octet_bytes, _mm512_loadu_si512(payload));
    // Field k starts at bit k * width. Both factors of a product are small enough for the two products of a 16-bit lane
    // not to meet.
    const __m512i width_of_lane =
        _mm512_maskz_permutexvar_epi8(0x5555555555555555, groups, _mm512_castsi128_si512(width));
    const __m512i fields = _mm512_multishift_epi64_epi8(_mm512_mullo_epi16(width_of_lane, field_of_byte), octets);
    return _mm512_and_si512(fields, _mm512_permutexvar_epi8(groups, _mm512_castsi128_si512(mask)));
  }

  // The residuals of a row pair whose groups have these sixteen codes; moves `payload` past the octets.
  RowPair operator()(__m128i codes, const uint8_t *&payload) const {
    const __m128i width = _mm_shuffle_epi8(widths, codes), mask = _mm_shuffle_epi8(masks, codes);
    const uint64_t left_bytes = uint64_t(_mm_cvtsi128_si64(mask)), right_bytes = uint64_t(_mm_extract_epi64(mask, 1));
    // A mask has as many ones in each byte as the octet has bytes.
    const __m512i left = fields(left_bytes, width, mask, left_groups, payload);
    payload += _mm_popcnt_u64(left_bytes);
    const __m512i right = fields(right_bytes, width, mask, right_groups, payload);
    payload += _mm_popcnt_u64(right_bytes);
    const __m512i minimum =
        _mm512_permutexvar_epi8(group_of_pixel, _mm512_castsi128_si512(_mm_shuffle_epi8(minima, codes)));
    return {_mm512_add_epi8(_mm512_permutex2var_epi32(left, upper_of_units, right), minimum),
            _mm512_add_epi8(_mm512_permutex2var_epi32(left, lower_of_units, right), minimum)};
  }
};

// Running sums along both rows of a pair: within groups first, then over the sums of groups, sixteen of each row side
// by side.
struct PrefixSum {
  const __m512i second_to_later = load_bytes(kSecondToLaterOfGroup), ends_before = load_bytes(kEndsBefore);
  const __m512i upper_groups = load_bytes(kGroupOfPixel),
                lower_groups = _mm512_add_epi8(upper_groups, _mm512_set1_epi8(16));

  __m512i within_groups(__m512i row) const {
    row = _mm512_mullo_epi16(row, _mm512_set1_epi16(0x0101));  // adds every even byte to the odd one after it
    return _mm512_add_epi8(row, _mm512_shuffle_epi8(row, second_to_later));
  }

  RowPair operator()(const RowPair &rows) const {
    const __m512i upper = within_groups(rows.upper), lower = within_groups(rows.lower);
    __m256i before =
        _mm512_castsi512_si256(_mm512_maskz_permutex2var_epi8(kGroupsAfterFirst, upper, ends_before, lower));
    before = _mm256_add_epi8(before, _mm256_bslli_epi128(before, 1));
    before = _mm256_add_epi8(before, _mm256_bslli_epi128(before, 2));
    before = _mm256_add_epi8(before, _mm256_bslli_epi128(before, 4));
    before = _mm256_add_epi8(before, _mm256_bslli_epi128(before, 8));
    return {_mm512_add_epi8(upper, _mm512_permutexvar_epi8(upper_groups, _mm512_castsi256_si512(before))),
            _mm512_add_epi8(lower, _mm512_permutexvar_epi8(lower_groups, _mm512_castsi256_si512(before)))};
  }
};

template <uint32_t predictor>
uint32_t decode_channel_8(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint8_t *plane) {
  const PairUnpacker unpack_pair;
  const PrefixSum prefix_sum;
  const __m512i to_the_left = load_bytes(kToTheLeft), last = _mm512_set1_epi8(char(shape.width - 1));
  const __m512i to_the_right = _mm512_min_epu8(_mm512_add_epi8(load_bytes(kIdentity), _mm512_set1_epi8(1)), last);

  CodeReader<8> codes(bytes, channel, shape);
  const uint8_t *payload = bytes + channel.payload;

  __m512i above = _mm512_set1_epi8(char(channel.first));
  const auto reconstruct = [&](__m512i row, bool first_row) {
    __m512i base = above;
    if (!first_row) {
      if (predictor == kLeft) base = _mm512_broadcastb_epi8(_mm512_castsi512_si128(above));
      if (predictor == kSmoothAbove || predictor == kSmoothPlane) {
        const __m512i left = _mm512_permutexvar_epi8(to_the_left, above),
                      right = _mm512_permutexvar_epi8(to_the_right, above);
        base = _mm512_avg_epu8(_mm512_avg_epu8(left, right), above);
      }
    }
    above = _mm512_add_epi8(row, base);
    _mm512_store_si512(plane, above);
    plane += L3_TILE;
  };
  // Rows wait for the rows above them, but their residuals do not: those of the next pair are prepared before a pair is
  // reconstructed, so that the two overlap. The empty statement keeps the compiler from mixing them again, which costs
  // up to 30%.
  RowPair rows = unpack_pair(codes.next(), payload);
  const RowPair sums = prefix_sum(rows);
  rows.upper = sums.upper;
  if (sums_along_row(predictor)) rows.lower = sums.lower;
  bool first_row = true;
  for (uint32_t pair = 1; pair < shape.row_pairs(); pair++) {
    RowPair next = unpack_pair(codes.next(), payload);
    if (sums_along_row(predictor)) next = prefix_sum(next);
    asm volatile("" : "+v"(next.upper), "+v"(next.lower), "+v"(above), "+v"(rows.upper), "+v"(rows.lower));
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
