// Storing a tile: its planes become interleaved pixels.
#pragma once

#include "cpu/avx512/registers.h"
#include "cpu/dispatch.h"
#include "cpu/kernels.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx512 {
namespace {

inline void store_line_uncached(uint8_t *line, __m512i bytes) {
  _mm512_stream_si512(reinterpret_cast<__m512i *>(line), bytes);
}

// Writes the first `size` bytes of `registers` to `out`.
template <uint32_t count>
inline void write_row(const __m512i (&registers)[count], uint32_t size, uint8_t *out, Stores stores) {
  for (uint32_t j = 0; j < count; j++) {
    if (size < 64 * count)
      _mm512_mask_storeu_epi8(out + 64 * j, size > 64 * j ? low_bits(size - 64 * j) : 0, registers[j]);
    else if (stores == Stores::kUncached)
      store_line_uncached(out + 64 * j, registers[j]);
    else
      _mm512_storeu_si512(out + 64 * j, registers[j]);
  }
}

// What a register of samples can do.
template <typename Sample>
struct Lanes;

template <>
struct Lanes<uint8_t> {
  static __m512i fill(uint32_t sample) { return _mm512_set1_epi8(char(sample)); }
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi8(a, b); }
  static __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi8(a, b); }
  static __m512i average(__m512i a, __m512i b) { return _mm512_avg_epu8(a, b); }
  static __m512i multiply(__m512i a, uint32_t /*factor: 1*/) { return a; }
  static __m512i select(__m512i a, __m512i places, __m512i b) { return _mm512_permutex2var_epi8(a, places, b); }
  static __m512i blend(__mmask64 mask, __m512i a, __m512i b) { return _mm512_mask_blend_epi8(mask, a, b); }
  static __m512i blend_selected(__m512i a, __mmask64 mask, __m512i places, __m512i b) {
    return _mm512_mask_permutexvar_epi8(a, mask, places, b);
  }
};

template <>
struct Lanes<uint16_t> {
  static __m512i fill(uint32_t sample) { return _mm512_set1_epi16(int16_t(sample)); }
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi16(a, b); }
  static __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi16(a, b); }
  static __m512i average(__m512i a, __m512i b) { return _mm512_avg_epu16(a, b); }
  static __m512i multiply(__m512i a, uint32_t factor) { return factor == 1 ? a : _mm512_mullo_epi16(a, fill(factor)); }
  static __m512i select(__m512i a, __m512i places, __m512i b) { return _mm512_permutex2var_epi16(a, places, b); }
  static __m512i blend(__mmask32 mask, __m512i a, __m512i b) { return _mm512_mask_blend_epi16(mask, a, b); }
  static __m512i blend_selected(__m512i a, __mmask32 mask, __m512i places, __m512i b) {
    return _mm512_mask_permutexvar_epi16(a, mask, places, b);
  }
};

template <typename Sample>
constexpr uint32_t kSamples = 64 / sizeof(Sample);  // in a register

// Sample i of register j of interleaved pixels comes from this place of its channel's register, plus kSamples for the
// second channel of a pair.
template <typename Sample, uint32_t channels, uint32_t j>
constexpr auto kSources = elements_of<Sample>([](uint32_t i) {
  const uint32_t position = kSamples<Sample> * j + i;
  return position / channels + (position % channels % 2 ? kSamples<Sample> : 0);
});

// The samples of register j that belong to the third or fourth channel.
template <typename Sample, uint32_t channels, uint32_t j>
constexpr uint64_t kOfSecondPair = [] {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < kSamples<Sample>; i++) mask |= uint64_t((kSamples<Sample> * j + i) % channels >= 2) << i;
  return mask;
}();

template <typename Sample, uint32_t channels, uint32_t j>
inline __m512i interleave(const __m512i (&rows)[channels]) {
  using L = Lanes<Sample>;
  if constexpr (channels == 1) {
    return rows[0];
  } else {
    const __m512i sources = load_elements<Sample>(kSources<Sample, channels, j>),
                  first_pair = L::select(rows[0], sources, rows[1]);
    if constexpr (channels == 2) return first_pair;
    if constexpr (channels == 3) return L::blend_selected(first_pair, kOfSecondPair<Sample, 3, j>, sources, rows[2]);
    if constexpr (channels == 4)
      return L::blend(kOfSecondPair<Sample, 4, j>, first_pair, L::select(rows[2], sources, rows[3]));
  }
}

template <typename Sample, uint32_t transform, uint32_t channels>
inline void undo_transform(__m512i (&rows)[channels]) {
  using L = Lanes<Sample>;
  if constexpr (transform != kTransformNone) {
    // Adding a half of the range and flipping the top bit are the same.
    const __m512i middle = L::fill(1u << (8 * sizeof(Sample) - 1));
    __m512i reference = rows[1];
    rows[0] = L::add(rows[0], _mm512_xor_si512(rows[1], middle));
    if constexpr (transform == kSubtractGreenAndMean) {
      const __m512i odd = _mm512_and_si512(_mm512_xor_si512(rows[0], rows[1]), L::fill(1));
      reference = L::subtract(L::average(rows[0], rows[1]), odd);  // rounded down
    }
    rows[2] = L::add(rows[2], _mm512_xor_si512(reference, middle));
  }
}

template <typename Sample, uint32_t channels, uint32_t transform>
void store_tile(const DecodedTile<Sample> &tile, Destination destination, Stores stores) {
  constexpr uint32_t kRegisters = L3_TILE / kSamples<Sample>;  // in a row of a plane
  const uint32_t height = tile.shape.height, size = tile.shape.width * channels * uint32_t(sizeof(Sample)),
                 factor = tile.transform.factor;
  const Planes<Sample> &planes = tile.planes;
  uint8_t *out = destination.data;
  for (uint32_t y = 0; y < height; y++, out += destination.stride) {
    __m512i pixels[kRegisters * channels];
    for (uint32_t part = 0; part < kRegisters; part++) {
      __m512i rows[channels];  // in the image's order
      for (uint32_t n = 0; n < channels; n++)
        rows[channel_of_plane(n, channels)] =
            _mm512_load_si512(planes.plane[n] + y * L3_TILE + part * kSamples<Sample>);
      undo_transform<Sample, transform>(rows);
      for (__m512i &row : rows) row = Lanes<Sample>::multiply(row, factor);
      __m512i *const of_part = pixels + part * channels;
      of_part[0] = interleave<Sample, channels, 0>(rows);
      if constexpr (channels > 1) of_part[1] = interleave<Sample, channels, 1>(rows);
      if constexpr (channels > 2) of_part[2] = interleave<Sample, channels, 2>(rows);
      if constexpr (channels > 3) of_part[3] = interleave<Sample, channels, 3>(rows);
    }
    write_row(pixels, size, out, stores);
  }
}

template <typename Sample>
void store_tile(const DecodedTile<Sample> &tile, Destination out, Stores stores) {
  if (tile.channels == 1) return store_tile<Sample, 1, kTransformNone>(tile, out, stores);
  if (tile.channels == 2) return store_tile<Sample, 2, kTransformNone>(tile, out, stores);
  generic::with_color_transform(tile.transform.color, [&](auto color) {
    if (tile.channels == 3)
      store_tile<Sample, 3, color>(tile, out, stores);
    else
      store_tile<Sample, 4, color>(tile, out, stores);
  });
}

}  // namespace
}  // namespace l3::avx512
