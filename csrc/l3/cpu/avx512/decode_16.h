// Channels of 16-bit samples: a row of a tile is two registers.
#pragma once

#include "cpu/avx512/code_reader.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx512 {
namespace {

struct Row16 {
  __m512i left, right;

  static Row16 load(const uint16_t *row) { return {_mm512_load_si512(row), _mm512_load_si512(row + 32)}; }
  void store(uint16_t *row) const {
    _mm512_store_si512(row, left);
    _mm512_store_si512(row + 32, right);
  }
};
inline Row16 operator+(const Row16 &a, const Row16 &b) {
  return {_mm512_add_epi16(a.left, b.left), _mm512_add_epi16(a.right, b.right)};
}
inline Row16 average(const Row16 &a, const Row16 &b) {
  return {_mm512_avg_epu16(a.left, b.left), _mm512_avg_epu16(a.right, b.right)};
}

struct RowPair16 {
  Row16 upper, lower;

  static RowPair16 load(const uint16_t *rows) { return {Row16::load(rows), Row16::load(rows + L3_TILE)}; }
  void store(uint16_t *rows) const {
    upper.store(rows);
    lower.store(rows + L3_TILE);
  }
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

// What the tables say of all groups of a channel, the sixteen of a row pair side by side. It is looked up before the
// first octet is unpacked: from an index to its samples is a long chain of instructions, and a processor has too few
// registers to be at work on several such chains. docs/codec.md has figures.
class GroupEntries16 {
 public:
  GroupEntries16(CodeReader<16> codes, uint32_t row_pairs) {
    const __m512i widths = load_words(kWidths16), masks = load_words(kMasks16), minima = load_words(kMinima16);
    for (uint32_t pair = 0; pair < row_pairs; pair++) {
      const __m512i code = _mm512_castsi256_si512(_mm256_cvtepu8_epi16(codes.next()));
      store(widths_[pair], _mm512_permutexvar_epi16(code, widths));
      store(masks_[pair], _mm512_permutexvar_epi16(code, masks));
      store(minima_[pair], _mm512_permutexvar_epi16(code, minima));
    }
  }

  // Of the groups of a row pair, in the first half of a register.
  __m512i widths(uint32_t pair) const { return load(widths_[pair]); }
  __m512i masks(uint32_t pair) const { return load(masks_[pair]); }
  __m512i minima(uint32_t pair) const { return load(minima_[pair]); }

  // The masks of four groups: each byte has as many ones as that part of the octet, the low or the high one, has bytes.
  uint64_t octet_bytes(uint32_t pair, int quarter) const {
    return l3::load<uint64_t>(reinterpret_cast<const uint8_t *>(masks_[pair] + 4 * quarter));
  }

 private:
  using Entries = uint16_t[L3_TILE / 2][L3_TILE / 4];  // of row pairs, of groups

  static void store(uint16_t *entries, __m512i first_half) {
    _mm256_store_si256(reinterpret_cast<__m256i *>(entries), _mm512_castsi512_si256(first_half));
  }
  static __m512i load(const uint16_t *entries) {
    return _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i *>(entries)));
  }

  alignas(64) Entries widths_, masks_, minima_;
};

// Unpacks the octets of a row pair.
struct PairUnpacker16 {
  const __m512i entry_of_byte = load_bytes(kEntryOfByte), field_of_byte = load_bytes(kFieldOfByte16),
                group_of_sample = load_words(kGroupOfSample);
  const __m512i uppers = load_bytes(kUpperBytes), lowers = _mm512_add_epi8(uppers, _mm512_set1_epi8(4));

  // The fields of four groups from `first` on, a group in 16 bytes, given the entries of all sixteen.
  __m512i fields(int first, __mmask64 octet_bytes, __m512i width, __m512i mask, const uint8_t *payload) const {
    const __m512i octets = _mm512_maskz_expand_epi8(octet_bytes, _mm512_loadu_si512(payload));
    const __m512i entries = _mm512_add_epi8(entry_of_byte, _mm512_set1_epi8(char(2 * first)));
    const __m512i width_of_lane = _mm512_maskz_permutexvar_epi8(0x5555555555555555, entries, width);
    const __m512i bytes = _mm512_multishift_epi64_epi8(_mm512_mullo_epi16(width_of_lane, field_of_byte), octets);
    return _mm512_and_si512(bytes, _mm512_permutexvar_epi8(entries, mask));
  }

  // The residuals of a row pair; moves `payload` past its octets.
  RowPair16 operator()(const GroupEntries16 &entries, uint32_t pair, const uint8_t *&payload) const {
    const __m512i width = entries.widths(pair), mask = entries.masks(pair), minimum = entries.minima(pair);
    __m512i groups[4];
    for (int i = 0; i < 4; i++) {
      const uint64_t octet_bytes = entries.octet_bytes(pair, i);
      groups[i] = fields(4 * i, octet_bytes, width, mask, payload);
      payload += _mm_popcnt_u64(octet_bytes);
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
// The end of the lane before, for lanes 1 and 3.
constexpr Words kEndOfLane16 = words_of([](uint32_t i) { return i < 16 ? 7 : 23; });

// Running sums along both rows of a pair: within groups first, then over the sums of groups, sixteen of each row side
// by side.
struct PrefixSum16 {
  const __m512i ends_before = load_words(kEndsBefore16), end_of_lane = load_words(kEndOfLane16),
                group_of_sample = load_words(kGroupOfSample);

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
    sums = _mm512_add_epi16(sums, _mm512_maskz_permutexvar_epi16(0xFF00FF00, end_of_lane, sums));
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

  const uint32_t row_pairs = shape.row_pairs();
  const GroupEntries16 entries(CodeReader<16>(bytes, channel, shape), row_pairs);
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
    above.store(plane);
    plane += L3_TILE;
  };
  RowPair16 rows = unpack_pair(entries, 0, payload);
  const RowPair16 sums = prefix_sum(rows);  // the first row is a running sum, whatever the predictor
  if constexpr (sums_along_row(predictor)) {
    // All residuals wait in the plane for their sums, which are long chains too.
    for (uint32_t pair = 1; pair < row_pairs; pair++)
      unpack_pair(entries, pair, payload).store(plane + pair * 2 * L3_TILE);
    reconstruct(sums.upper, true);
    reconstruct(sums.lower, false);
    for (uint32_t pair = 1; pair < row_pairs; pair++) {
      const RowPair16 summed = prefix_sum(RowPair16::load(plane));
      reconstruct(summed.upper, false);
      reconstruct(summed.lower, false);
    }
  } else {
    // A pair is unpacked before the row above it is reconstructed, so that the two overlap, as with 8 bits.
    reconstruct(sums.upper, true);
    for (uint32_t pair = 1; pair < row_pairs; pair++) {
      const RowPair16 next = unpack_pair(entries, pair, payload);
      reconstruct(rows.lower, false);
      reconstruct(next.upper, false);
      rows = next;
    }
    reconstruct(rows.lower, false);
  }
  return uint32_t(payload - bytes);
}

}  // namespace
}  // namespace l3::avx512
