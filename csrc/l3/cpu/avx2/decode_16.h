// Channels of 16-bit samples: a row of a tile is four registers.
#pragma once

#include "cpu/avx2/registers.h"
#include "cpu/generic_decoder.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx2 {
namespace {

constexpr uint32_t kQuarters = 4;

struct Row16 {
  __m256i quarters[kQuarters];
};
template <typename Function>
inline Row16 row_of(Function function) {
  return {{function(0), function(1), function(2), function(3)}};
}
inline Row16 operator+(const Row16 &a, const Row16 &b) {
  return row_of([&](uint32_t i) { return _mm256_add_epi16(a.quarters[i], b.quarters[i]); });
}
inline Row16 average(const Row16 &a, const Row16 &b) {
  return row_of([&](uint32_t i) { return _mm256_avg_epu16(a.quarters[i], b.quarters[i]); });
}

// Where the low and the high bytes of an octet's fields go, by width.
using FieldBits = std::array<uint64_t, 17>;
constexpr FieldBits kLowFieldBits = [] {
  FieldBits bits{};
  for (uint32_t width = 0; width <= 16; width++) bits[width] = low_bits_of_bytes(width < 8 ? width : 8);
  return bits;
}();
constexpr FieldBits kHighFieldBits = [] {
  FieldBits bits{};
  for (uint32_t width = 8; width <= 16; width++) bits[width] = low_bits_of_bytes(width - 8);
  return bits;
}();

// A byte of the minima of 16 codes from `first` on.
template <uint32_t first, uint32_t byte>
inline __m128i minima_table() {
  constexpr auto table = [] {
    std::array<uint8_t, 16> bytes{};
    for (uint32_t i = 0; i < 16; i++) bytes[i] = uint8_t(code_minimum(first + i) >> 8 * byte);
    return bytes;
  }();
  return _mm_loadu_si128(reinterpret_cast<const __m128i *>(table.data()));
}

// The minima of eight codes.
inline __m128i minima_of(__m128i codes) {
  // A shuffle gives zeros for indices whose top bit is set.
  const __m128i low_codes = _mm_add_epi8(codes, _mm_set1_epi8(0x70)),
                high_codes = _mm_sub_epi8(codes, _mm_set1_epi8(16));
  const __m128i low = _mm_or_si128(_mm_shuffle_epi8(minima_table<0, 0>(), low_codes),
                                   _mm_shuffle_epi8(minima_table<16, 0>(), high_codes));
  const __m128i high = _mm_or_si128(_mm_shuffle_epi8(minima_table<0, 1>(), low_codes),
                                    _mm_shuffle_epi8(minima_table<16, 1>(), high_codes));
  return _mm_unpacklo_epi8(low, high);
}

// From the minima of four groups to those of their samples in a row; `first` is the first group.
template <uint32_t first>
constexpr Bytes kMinimumOfSample = bytes_of([](uint32_t i) { return 2 * (first + i / 8) + i % 2; });

// The fields of a unit, eight to a group: their low bytes and their high bytes.
struct UnitFields {
  alignas(32) uint64_t low[kUnitGroups], high[kUnitGroups];
  __m128i minima;  // of the groups

  // Unpacks the octets of groups with these codes; moves `payload` past them.
  void unpack(__m128i codes, const uint8_t *&payload) {
    const uint64_t widths = uint64_t(_mm_cvtsi128_si64(_mm_avg_epu8(codes, _mm_setzero_si128())));  // (code + 1) / 2
    const uint64_t starts = widths * 0x0101010101010100ull;  // byte g is the sum of the widths before group g
    for (uint32_t g = 0; g < kUnitGroups; g++) {
      const uint32_t width = widths >> 8 * g & 255;
      const uint8_t *const octet = payload + (starts >> 8 * g & 255);
      low[g] = _pdep_u64(load<uint64_t>(octet), kLowFieldBits[width]);
      high[g] = _pdep_u64(load<uint64_t>(octet + 8), kHighFieldBits[width]);
    }
    payload += (starts >> 56) + (widths >> 56);
    minima = minima_of(codes);
  }

  // The residuals of both rows, two quarters each.
  void residuals(__m256i *upper, __m256i *lower) const {
    const __m256i of_groups = _mm256_broadcastsi128_si256(minima);
    const __m256i of_samples[2] = {_mm256_shuffle_epi8(of_groups, load_bytes(kMinimumOfSample<0>)),
                                   _mm256_shuffle_epi8(of_groups, load_bytes(kMinimumOfSample<4>))};
    for (uint32_t i = 0; i < 2; i++) {
      const __m256i lows = load_aligned(low + 4 * i), highs = load_aligned(high + 4 * i);
      const __m256i even = _mm256_unpacklo_epi8(lows, highs), odd = _mm256_unpackhi_epi8(lows, highs);
      upper[i] = _mm256_add_epi16(_mm256_unpacklo_epi64(even, odd), of_samples[i]);
      lower[i] = _mm256_add_epi16(_mm256_unpackhi_epi64(even, odd), of_samples[i]);
    }
  }
};

// Row pairs whose octets are unpacked before the first of them is reconstructed. What is unpacked passes through
// memory, which takes less than moving it to vector registers piece by piece, if it has time to get there.
constexpr uint32_t kPairsAhead = 4;

// A register's last sample, in all of its places.
inline __m256i broadcast_last(__m256i samples) {
  return _mm256_shuffle_epi8(_mm256_permute2x128_si256(samples, samples, 0x11), _mm256_set1_epi16(0x0F0E));
}

// Running sums of a row.
inline Row16 prefix_sum(const Row16 &row) {
  const auto sum_quarter = [](__m256i v) {
    v = _mm256_add_epi16(v, _mm256_slli_si256(v, 2));
    v = _mm256_add_epi16(v, _mm256_slli_si256(v, 4));
    v = _mm256_add_epi16(v, _mm256_slli_si256(v, 8));
    const __m256i ends = _mm256_shuffle_epi8(v, _mm256_set1_epi16(0x0F0E));
    return _mm256_add_epi16(v, _mm256_permute2x128_si256(ends, ends, 0x08));  // the lower lane's into the upper
  };
  Row16 sums = row_of([&](uint32_t i) { return sum_quarter(row.quarters[i]); });
  for (uint32_t i = 1; i < kQuarters; i++)
    sums.quarters[i] = _mm256_add_epi16(sums.quarters[i], broadcast_last(sums.quarters[i - 1]));
  return sums;
}

// Every sample's left neighbour; the first keeps its own value.
inline Row16 to_the_left(const Row16 &row) {
  const __m256i *const quarters = row.quarters;
  const __m128i lower = _mm256_castsi256_si128(quarters[0]);
  const __m256i first = _mm256_inserti128_si256(_mm256_broadcastw_epi16(lower), lower, 1);
  return row_of([&](uint32_t i) {
    const __m256i before = i ? _mm256_permute2x128_si256(quarters[i - 1], quarters[i], 0x21) : first;
    return _mm256_alignr_epi8(quarters[i], before, 14);
  });
}

// Every sample's right neighbour; where `is_last` is set, its own value.
inline Row16 to_the_right(const Row16 &row, const Row16 &is_last) {
  const __m256i *const quarters = row.quarters;
  return row_of([&](uint32_t i) {
    const __m256i after = i + 1 < kQuarters ? _mm256_permute2x128_si256(quarters[i], quarters[i + 1], 0x21)
                                            : _mm256_permute2x128_si256(quarters[i], quarters[i], 0x81);
    return _mm256_blendv_epi8(_mm256_alignr_epi8(after, quarters[i], 2), quarters[i], is_last.quarters[i]);
  });
}

template <uint32_t predictor>
uint32_t decode_channel_16(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint16_t *plane) {
  const bool has_palette = l3::has_palette(channel.index_bits, 16);
  const __m128i palette = _mm_loadu_si128(reinterpret_cast<const __m128i *>(bytes + channel.palette));
  const uint64_t index_positions = low_bits_of_bytes(channel.index_bits);
  const uint8_t *indices = bytes + channel.indices, *payload = bytes + channel.payload;
  const bool two_units = shape.units_per_row_pair() == 2;
  const uint64_t groups_inside[2] = {low_bits(8 * shape.groups()),
                                     shape.groups() > 8 ? low_bits(8 * (shape.groups() - 8)) : 0};
  const __m256i first_columns = _mm256_set_epi16(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const Row16 is_last = row_of([&](uint32_t i) {
    return _mm256_cmpeq_epi16(first_columns, _mm256_set1_epi16(int16_t(shape.width - 1 - 16 * i)));
  });

  uint64_t units = channel.units;
  const auto unpack_unit = [&](uint32_t side, UnitFields &fields) {
    const uint64_t present = -(units & 1);
    units >>= 1;
    const uint64_t spread = _pdep_u64(load<uint64_t>(indices), index_positions);
    indices += channel.index_bits & present;
    const __m128i all = _mm_cvtsi64_si128(int64_t(spread)), codes = has_palette ? _mm_shuffle_epi8(palette, all) : all;
    const __m128i there = _mm_cvtsi64_si128(int64_t(groups_inside[side] & present));
    fields.unpack(_mm_and_si128(codes, there), payload);
  };
  UnitFields fields[kPairsAhead][2];
  std::memset(fields, 0, two_units ? 0 : sizeof fields);
  const auto unpack_pairs = [&](uint32_t count) {
    for (uint32_t pair = 0; pair < count; pair++) {
      unpack_unit(0, fields[pair][0]);
      if (two_units) unpack_unit(1, fields[pair][1]);
    }
  };

  const __m256i first = _mm256_set1_epi16(int16_t(channel.first));
  Row16 above = row_of([&](uint32_t) { return first; });
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    if (pair % kPairsAhead == 0) unpack_pairs(std::min(shape.row_pairs() - pair, kPairsAhead));
    Row16 rows[2];
    const UnitFields(&units_of_pair)[2] = fields[pair % kPairsAhead];
    units_of_pair[0].residuals(rows[0].quarters, rows[1].quarters);
    units_of_pair[1].residuals(rows[0].quarters + 2, rows[1].quarters + 2);
    for (uint32_t i = 0; i < 2; i++) {
      const bool first_row = pair == 0 && i == 0;
      Row16 row = rows[i];
      if (first_row || sums_along_row(predictor)) row = prefix_sum(row);
      Row16 base = above;
      if (!first_row) {
        if (predictor == kLeft) {
          const __m256i left = _mm256_broadcastw_epi16(_mm256_castsi256_si128(above.quarters[0]));
          base = row_of([&](uint32_t) { return left; });
        }
        if (predictor == kSmoothAbove || predictor == kSmoothPlane)
          base = average(average(to_the_left(above), to_the_right(above, is_last)), above);
      }
      above = row + base;
      uint16_t *out = plane + (2 * pair + i) * L3_TILE;
      for (uint32_t q = 0; q < kQuarters; q++) store_aligned(out + 16 * q, above.quarters[q]);
    }
  }
  return uint32_t(payload - bytes);
}

}  // namespace
}  // namespace l3::avx2
