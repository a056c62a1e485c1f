// The back end for AVX-512 with VBMI and VBMI2 (Ice Lake and Zen 4 onwards): a row of a tile is one register.
#include <immintrin.h>

#include <array>

#include "generic_decoder.h"
#include "generic_encoder.h"

namespace l3 {
namespace {

// The bytes of a register, byte i being function(i).
using Bytes = std::array<uint8_t, 64>;
template <typename Function>
constexpr Bytes bytes_of(Function function) {
  Bytes bytes{};
  for (uint32_t i = 0; i < 64; i++) bytes[i] = uint8_t(function(i));
  return bytes;
}
inline __m512i load_bytes(const Bytes &bytes) { return _mm512_loadu_si512(bytes.data()); }

// A table for _mm_shuffle_epi8, indexed by code.
using CodeTable = std::array<uint8_t, 16>;
template <typename Function>
constexpr CodeTable code_table(Function function) {
  CodeTable table{};
  for (uint32_t code = 0; code < 16; code++) table[code] = uint8_t(function(code));
  return table;
}
inline __m128i load_table(const CodeTable &table) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(table.data())); }

constexpr CodeTable kWidths = code_table(code_width), kMinima = code_table(code_minimum);
constexpr CodeTable kMasks = code_table([](uint32_t code) { return (1u << code_width(code)) - 1; });
constexpr Bytes kIdentity = bytes_of([](uint32_t i) { return i; });
constexpr Bytes kEndOfQuarterBefore = bytes_of([](uint32_t i) { return i < 32 ? 15 : 47; });
constexpr Bytes kGroupOfByte = bytes_of([](uint32_t i) { return i / 8; });
// Where the fields of an octet start, in bits, for widths 8, 1, 2, ... 7: the look-up takes three bits. Octets of width 0 have no bits.
constexpr Bytes kFieldStarts = bytes_of([](uint32_t i) { return i % 8 * (i < 8 ? 8 : i / 8); });

// Unpacks units of octets.
struct UnitUnpacker {
  const __m512i group_of_byte = load_bytes(kGroupOfByte), field_starts = load_bytes(kFieldStarts);
  const __m128i widths = load_table(kWidths), masks = load_table(kMasks), minima = load_table(kMinima);

  // The residuals of a unit with these eight codes, a group in eight bytes; moves `payload` past the octets.
  __m512i operator()(__m128i codes, const uint8_t *&payload) const {
    const __m128i mask = _mm_shuffle_epi8(masks, codes);
    const uint64_t octet_bytes = uint64_t(_mm_cvtsi128_si64(mask));  // as many ones in each byte as its octet has bytes
    const __m512i octets = _mm512_maskz_expand_epi8(octet_bytes, _mm512_loadu_si512(payload));
    payload += _mm_popcnt_u64(octet_bytes);
    const __m512i starts = _mm512_permutexvar_epi64(_mm512_cvtepu8_epi64(_mm_shuffle_epi8(widths, codes)), field_starts);
    const __m512i fields = _mm512_multishift_epi64_epi8(starts, octets);
    const __m512i field_mask = _mm512_permutexvar_epi8(group_of_byte, _mm512_castsi128_si512(mask));
    const __m512i minimum = _mm512_permutexvar_epi8(group_of_byte, _mm512_castsi128_si512(_mm_shuffle_epi8(minima, codes)));
    return _mm512_add_epi8(_mm512_and_si512(fields, field_mask), minimum);
  }
};

// Running sums of 64 bytes: by shifts within a quarter; then each second quarter takes the last sum of the one before, and the upper half that
// of the lower.
struct PrefixSum {
  const __m512i end_of_quarter_before = load_bytes(kEndOfQuarterBefore), end_of_lower_half = _mm512_set1_epi8(31);
  static constexpr __mmask64 kSecondQuarters = 0xFFFF0000FFFF0000, kUpperHalf = 0xFFFFFFFF00000000;

  __m512i operator()(__m512i v) const {
    v = _mm512_add_epi8(v, _mm512_bslli_epi128(v, 1));
    v = _mm512_add_epi8(v, _mm512_bslli_epi128(v, 2));
    v = _mm512_add_epi8(v, _mm512_bslli_epi128(v, 4));
    v = _mm512_add_epi8(v, _mm512_bslli_epi128(v, 8));
    v = _mm512_add_epi8(v, _mm512_maskz_permutexvar_epi8(kSecondQuarters, end_of_quarter_before, v));
    return _mm512_add_epi8(v, _mm512_maskz_permutexvar_epi8(kUpperHalf, end_of_lower_half, v));
  }
};

constexpr Bytes kToTheLeft = bytes_of([](uint32_t i) { return i ? i - 1 : 0; });

// The codes of a channel's indices, for _mm_shuffle_epi8.
inline __m128i load_palette(const uint8_t *palette, uint32_t index_bits) {
  if (index_bits == max_index_bits(8)) return _mm512_castsi512_si128(load_bytes(kIdentity));
  return _mm_cvtsi64_si128(int64_t(_pdep_u64(load<uint64_t>(palette), 0x0F0F0F0F0F0F0F0Full)));
}

template <uint32_t predictor>
uint32_t decode_channel(const uint8_t *stream, const FastChannel &channel, TileShape shape, uint8_t *plane) {
  const UnitUnpacker unpack_unit;
  const PrefixSum prefix_sum;
  // In a unit the rows of the groups alternate: four bytes of the upper, four of the lower.
  const __m512i upper_of_units = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i lower_of_units = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const uint32_t last = shape.width - 1;
  const __m512i to_the_left = load_bytes(kToTheLeft);
  const __m512i to_the_right = _mm512_min_epu8(_mm512_add_epi8(load_bytes(kIdentity), _mm512_set1_epi8(1)), _mm512_set1_epi8(char(last)));

  const __m128i palette = load_palette(stream + channel.palette, channel.index_bits);
  const uint64_t index_positions = 0x0101010101010101ull * ((1u << channel.index_bits) - 1);
  const uint8_t *indices = stream + channel.indices, *payload = stream + channel.payload;
  const uint32_t units_per_pair = shape.units_per_row_pair();
  const uint64_t groups_inside[2] = {low_bits(8 * shape.groups()), shape.groups() > 8 ? low_bits(8 * (shape.groups() - 8)) : 0};

  uint64_t units = channel.units;
  const auto next_unit = [&](uint32_t side) {
    const uint64_t present = -(units & 1);
    units >>= 1;
    const uint64_t spread = _pdep_u64(load<uint32_t>(indices), index_positions);
    indices += channel.index_bits & present;
    const __m128i all_codes = _mm_shuffle_epi8(palette, _mm_cvtsi64_si128(int64_t(spread)));
    return unpack_unit(_mm_and_si128(all_codes, _mm_cvtsi64_si128(int64_t(groups_inside[side] & present))), payload);
  };

  __m512i above = _mm512_set1_epi8(char(channel.first));
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    const __m512i left = next_unit(0), right = units_per_pair == 2 ? next_unit(1) : _mm512_setzero_si512();
    const __m512i residuals[2] = {_mm512_permutex2var_epi32(left, upper_of_units, right), _mm512_permutex2var_epi32(left, lower_of_units, right)};
    for (uint32_t i = 0; i < 2; i++) {
      const bool first_row = pair == 0 && i == 0;
      __m512i row = residuals[i];
      if (first_row || sums_along_row(predictor)) row = prefix_sum(row);
      __m512i base = above;
      if (!first_row) {
        if (predictor == kLeft) base = _mm512_broadcastb_epi8(_mm512_castsi512_si128(above));
        if (predictor == kSmoothAbove || predictor == kSmoothPlane)
          base = _mm512_avg_epu8(_mm512_avg_epu8(_mm512_permutexvar_epi8(to_the_left, above), _mm512_permutexvar_epi8(to_the_right, above)), above);
      }
      above = _mm512_add_epi8(row, base);
      _mm512_store_si512(plane + (2 * pair + i) * L3_TILE, above);
    }
  }
  return uint32_t(payload - stream);
}

uint32_t decode_channel_8(const uint8_t *stream, const FastChannel &channel, TileShape shape, uint8_t *plane) {
  switch (channel.predictor) {
    case kAbove: return decode_channel<kAbove>(stream, channel, shape, plane);
    case kSmoothAbove: return decode_channel<kSmoothAbove>(stream, channel, shape, plane);
    case kLeft: return decode_channel<kLeft>(stream, channel, shape, plane);
    case kPlane: return decode_channel<kPlane>(stream, channel, shape, plane);
    default: return decode_channel<kSmoothPlane>(stream, channel, shape, plane);
  }
}

// Writes the first `size` bytes of `registers` to `out`.
template <uint32_t count>
inline void write_row(const __m512i (&registers)[count], uint32_t size, uint8_t *out, bool bypass_cache) {
  if (size < 64 * count) {
    for (uint32_t j = 0; j < count && size > 64 * j; j++)
      _mm512_mask_storeu_epi8(out + 64 * j, low_bits(size - 64 * j), registers[j]);
  } else if (!bypass_cache) {
    for (uint32_t j = 0; j < count; j++) _mm512_storeu_si512(out + 64 * j, registers[j]);
  } else if (const uint32_t shift = -uintptr_t(out) & 63; shift == 0) {
    for (uint32_t j = 0; j < count; j++) _mm512_stream_si512(reinterpret_cast<__m512i *>(out + 64 * j), registers[j]);
  } else {
    // Whole cache lines are streamed, put together from two registers each; the two ends share their lines with the neighbouring tiles.
    const __m512i from_shift = _mm512_add_epi8(load_bytes(kIdentity), _mm512_set1_epi8(char(shift)));
    _mm512_mask_storeu_epi8(out, low_bits(shift), registers[0]);
    for (uint32_t j = 0; j + 1 < count; j++)
      _mm512_stream_si512(reinterpret_cast<__m512i *>(out + shift + 64 * j), _mm512_permutex2var_epi8(registers[j], from_shift, registers[j + 1]));
    _mm512_mask_storeu_epi8(out + shift + 64 * (count - 1), low_bits(64 - shift), _mm512_permutexvar_epi8(from_shift, registers[count - 1]));
  }
}

// Byte i of register j of interleaved pixels comes from this place of its channel's row, plus 64 for the second channel of a pair.
template <uint32_t channels, uint32_t j>
constexpr Bytes kSources = bytes_of([](uint32_t i) { return (64 * j + i) / channels + ((64 * j + i) % channels % 2 ? 64 : 0); });

// The bytes of register j that belong to the third or fourth channel.
template <uint32_t channels, uint32_t j>
constexpr __mmask64 kOfSecondPair = [] {
  __mmask64 mask = 0;
  for (uint32_t i = 0; i < 64; i++) mask |= uint64_t((64 * j + i) % channels >= 2) << i;
  return mask;
}();

template <uint32_t channels, uint32_t j>
inline __m512i interleave(const __m512i (&rows)[channels]) {
  if constexpr (channels == 1) {
    return rows[0];
  } else {
    const __m512i sources = load_bytes(kSources<channels, j>), first_pair = _mm512_permutex2var_epi8(rows[0], sources, rows[1]);
    if constexpr (channels == 2) return first_pair;
    if constexpr (channels == 3) return _mm512_mask_permutexvar_epi8(first_pair, kOfSecondPair<3, j>, sources, rows[2]);
    if constexpr (channels == 4)
      return _mm512_mask_blend_epi8(kOfSecondPair<4, j>, first_pair, _mm512_permutex2var_epi8(rows[2], sources, rows[3]));
  }
}

template <uint32_t channels, uint32_t transform>
void store_tile(const Planes<uint8_t> &planes, TileShape shape, uint8_t *out, size_t row_stride, bool bypass_cache) {
  const __m512i middle = _mm512_set1_epi8(char(128));
  for (uint32_t y = 0; y < shape.height; y++, out += row_stride) {
    __m512i rows[channels], pixels[channels];  // rows in the image's order
    for (uint32_t n = 0; n < channels; n++) rows[channel_of_plane(n, channels)] = _mm512_load_si512(planes.plane[n] + y * L3_TILE);
    if constexpr (transform != kTransformNone) {
      // Adding a half of the range and flipping the top bit are the same.
      __m512i reference = rows[1];
      rows[0] = _mm512_add_epi8(rows[0], _mm512_xor_si512(rows[1], middle));
      if constexpr (transform == kSubtractGreenAndMean) {
        const __m512i odd = _mm512_and_si512(_mm512_xor_si512(rows[0], rows[1]), _mm512_set1_epi8(1));
        reference = _mm512_sub_epi8(_mm512_avg_epu8(rows[0], rows[1]), odd);  // rounded down
      }
      rows[2] = _mm512_add_epi8(rows[2], _mm512_xor_si512(reference, middle));
    }
    pixels[0] = interleave<channels, 0>(rows);
    if constexpr (channels > 1) pixels[1] = interleave<channels, 1>(rows);
    if constexpr (channels > 2) pixels[2] = interleave<channels, 2>(rows);
    if constexpr (channels > 3) pixels[3] = interleave<channels, 3>(rows);
    write_row(pixels, shape.width * channels, out, bypass_cache);
  }
}

template <uint32_t channels>
void store_colour_tile(const Planes<uint8_t> &planes, uint32_t transform, TileShape shape, uint8_t *out, size_t row_stride,
                       bool bypass_cache) {
  switch (transform) {
    case kTransformNone: return store_tile<channels, kTransformNone>(planes, shape, out, row_stride, bypass_cache);
    case kSubtractGreen: return store_tile<channels, kSubtractGreen>(planes, shape, out, row_stride, bypass_cache);
    default: return store_tile<channels, kSubtractGreenAndMean>(planes, shape, out, row_stride, bypass_cache);
  }
}

void store_tile_8(const Planes<uint8_t> &planes, uint32_t channels, uint32_t transform, TileShape shape, uint8_t *out, size_t row_stride,
                  bool bypass_cache) {
  switch (channels) {
    case 1: return store_tile<1, kTransformNone>(planes, shape, out, row_stride, bypass_cache);
    case 2: return store_tile<2, kTransformNone>(planes, shape, out, row_stride, bypass_cache);
    case 3: return store_colour_tile<3>(planes, transform, shape, out, row_stride, bypass_cache);
    default: return store_colour_tile<4>(planes, transform, shape, out, row_stride, bypass_cache);
  }
}

void copy_rows(const uint8_t *in, size_t in_stride, uint8_t *out, size_t out_stride, uint32_t row_size, uint32_t rows, bool bypass_cache) {
  for (uint32_t y = 0; y < rows; y++, in += in_stride, out += out_stride) {
    uint32_t x = 0;
    for (; x + 192 <= row_size; x += 192) {
      const __m512i registers[] = {_mm512_loadu_si512(in + x), _mm512_loadu_si512(in + x + 64), _mm512_loadu_si512(in + x + 128)};
      write_row(registers, 192, out + x, bypass_cache);
    }
    for (; x < row_size; x += 64) {
      const __mmask64 mask = low_bits(row_size - x);
      _mm512_mask_storeu_epi8(out + x, mask, _mm512_maskz_loadu_epi8(mask, in + x));
    }
  }
}

}  // namespace

const Kernels kAvx512Kernels = {
    "avx512",
    decode_channel_8,
    generic::decode_channel<uint16_t>,
    store_tile_8,
    generic::store_tile<uint16_t>,
    generic::encode_tile<uint8_t>,
    generic::encode_tile<uint16_t>,
    copy_rows,
};

}  // namespace l3
