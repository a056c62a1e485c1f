// Channels of 8-bit samples: a row of a tile is two registers.
#pragma once

#include "cpu/avx2/registers.h"
#include "cpu/code_tables.h"
#include "format/fast_tile.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx2 {
namespace {

constexpr Bytes kIdentity = bytes_of([](uint32_t i) { return i; });
constexpr Bytes kGroupOfPixel = bytes_of([](uint32_t i) { return i / 4; });
// Where the fields of an octet go, by width.
constexpr std::array<uint64_t, 9> kFieldBits = [] {
  std::array<uint64_t, 9> bits{};
  for (uint32_t width = 0; width <= 8; width++) bits[width] = low_bits_of_bytes(width);
  return bits;
}();

// A row of a tile.
struct Row64 {
  __m256i left, right;
};
inline Row64 operator+(const Row64 &a, const Row64 &b) {
  return {_mm256_add_epi8(a.left, b.left), _mm256_add_epi8(a.right, b.right)};
}
inline Row64 average(const Row64 &a, const Row64 &b) {
  return {_mm256_avg_epu8(a.left, b.left), _mm256_avg_epu8(a.right, b.right)};
}
inline Row64 broadcast(uint8_t sample) { return {_mm256_set1_epi8(char(sample)), _mm256_set1_epi8(char(sample))}; }

struct UnitRows {
  __m256i upper, lower;
};

// The residuals of a unit with these eight codes; moves `payload` past its octets.
inline UnitRows unpack_unit(__m128i codes, const uint8_t *&payload) {
  const uint64_t widths = uint64_t(_mm_cvtsi128_si64(_mm_shuffle_epi8(generic::load_table(generic::kWidths), codes)));
  const uint64_t starts = widths * 0x0101010101010100ull;  // byte g is the sum of the widths before group g
  const auto octet = [&](uint32_t g) {
    return int64_t(_pdep_u64(load<uint64_t>(payload + (starts >> 8 * g & 255)), kFieldBits[widths >> 8 * g & 255]));
  };
  // Rows are put together within lanes, so that the lanes take the left and the right half of the groups.
  const __m256i even = _mm256_set_epi64x(octet(5), octet(4), octet(1), octet(0));
  const __m256i odd = _mm256_set_epi64x(octet(7), octet(6), octet(3), octet(2));
  payload += (starts >> 56) + (widths >> 56);
  const __m256i code_of_pixel = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(codes), load_bytes(kGroupOfPixel));
  const __m256i minimum =
      _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(generic::load_table(generic::kMinima)), code_of_pixel);
  const auto row = [&](__m256 fields) { return _mm256_add_epi8(_mm256_castps_si256(fields), minimum); };
  return {row(_mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0x88)),
          row(_mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0xDD))};
}

// Running sums of the 16 bytes of each lane.
inline __m256i sum_lanes(__m256i v) {
  v = _mm256_add_epi8(v, _mm256_slli_si256(v, 1));
  v = _mm256_add_epi8(v, _mm256_slli_si256(v, 2));
  v = _mm256_add_epi8(v, _mm256_slli_si256(v, 4));
  return _mm256_add_epi8(v, _mm256_slli_si256(v, 8));
}

// Running sums of a row.
inline Row64 prefix_sum(const Row64 &row) {
  const __m256i last = _mm256_set1_epi8(15);
  const auto sum_half = [&](__m256i half) {
    half = sum_lanes(half);
    const __m256i ends = _mm256_shuffle_epi8(half, last);
    return _mm256_add_epi8(half, _mm256_permute2x128_si256(ends, ends, 0x08));  // the lower lane's into the upper
  };
  const __m256i left = sum_half(row.left), right = sum_half(row.right);
  const __m256i end = _mm256_shuffle_epi8(_mm256_permute2x128_si256(left, left, 0x11), last);
  return {left, _mm256_add_epi8(right, end)};
}

// Every sample's left neighbour; the first keeps its own value.
inline Row64 to_the_left(const Row64 &row) {
  const __m128i lower = _mm256_castsi256_si128(row.left);
  const __m256i first = _mm256_inserti128_si256(_mm256_broadcastb_epi8(lower), lower, 1);
  const __m256i middle = _mm256_permute2x128_si256(row.left, row.right, 0x21);
  return {_mm256_alignr_epi8(row.left, first, 15), _mm256_alignr_epi8(row.right, middle, 15)};
}

// Every sample's right neighbour; where `is_last` is set, its own value.
inline Row64 to_the_right(const Row64 &row, const Row64 &is_last) {
  const __m256i middle = _mm256_permute2x128_si256(row.left, row.right, 0x21);
  const __m256i end = _mm256_permute2x128_si256(row.right, row.right, 0x81);
  return {_mm256_blendv_epi8(_mm256_alignr_epi8(middle, row.left, 1), row.left, is_last.left),
          _mm256_blendv_epi8(_mm256_alignr_epi8(end, row.right, 1), row.right, is_last.right)};
}

template <uint32_t predictor>
uint32_t decode_channel_8(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint8_t *plane) {
  const __m128i palette = generic::load_palette(bytes + channel.palette, channel.index_bits);
  const uint64_t index_positions = low_bits_of_bytes(channel.index_bits);
  const uint8_t *indices = bytes + channel.indices, *payload = bytes + channel.payload;
  const bool two_units = shape.units_per_row_pair() == 2;
  const uint64_t groups_inside[2] = {low_bits(8 * shape.groups()),
                                     shape.groups() > 8 ? low_bits(8 * (shape.groups() - 8)) : 0};
  const __m256i last = _mm256_set1_epi8(char(shape.width - 1)), columns = load_bytes(kIdentity);
  const Row64 is_last = {_mm256_cmpeq_epi8(columns, last),
                         _mm256_cmpeq_epi8(_mm256_add_epi8(columns, _mm256_set1_epi8(32)), last)};

  uint64_t units = channel.units;
  const auto next_unit = [&](uint32_t side) {
    const uint64_t present = -(units & 1);
    units >>= 1;
    const uint64_t spread = _pdep_u64(load<uint32_t>(indices), index_positions);
    indices += channel.index_bits & present;
    const __m128i all_codes = _mm_shuffle_epi8(palette, _mm_cvtsi64_si128(int64_t(spread)));
    return unpack_unit(_mm_and_si128(all_codes, _mm_cvtsi64_si128(int64_t(groups_inside[side] & present))), payload);
  };

  Row64 above = broadcast(uint8_t(channel.first));
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    const UnitRows left = next_unit(0),
                   right = two_units ? next_unit(1) : UnitRows{_mm256_setzero_si256(), _mm256_setzero_si256()};
    const Row64 residuals[2] = {{left.upper, right.upper}, {left.lower, right.lower}};
    for (uint32_t i = 0; i < 2; i++) {
      const bool first_row = pair == 0 && i == 0;
      Row64 row = residuals[i];
      if (first_row || sums_along_row(predictor)) row = prefix_sum(row);
      Row64 base = above;
      if (!first_row) {
        if (predictor == kLeft) base.left = base.right = _mm256_broadcastb_epi8(_mm256_castsi256_si128(above.left));
        if (predictor == kSmoothAbove || predictor == kSmoothPlane)
          base = average(average(to_the_left(above), to_the_right(above, is_last)), above);
      }
      above = row + base;
      uint8_t *out = plane + (2 * pair + i) * L3_TILE;
      store_aligned(out, above.left);
      store_aligned(out + 32, above.right);
    }
  }
  return uint32_t(payload - bytes);
}

}  // namespace
}  // namespace l3::avx2
