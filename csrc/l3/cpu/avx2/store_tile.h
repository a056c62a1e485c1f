// Storing a tile: its planes become interleaved pixels.
#pragma once

#include "cpu/avx2/registers.h"
#include "cpu/dispatch.h"
#include "cpu/generic_decoder.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx2 {
namespace {

inline __m256i load_32(const uint8_t *in) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(in)); }
inline void store_32(uint8_t *out, __m256i bytes, Stores stores) {
  if (stores == Stores::kUncached)
    _mm256_stream_si256(reinterpret_cast<__m256i *>(out), bytes);
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(out), bytes);
}

// What a register of samples can do.
template <typename Sample>
struct Lanes;

template <>
struct Lanes<uint8_t> {
  static __m256i fill(uint32_t sample) { return _mm256_set1_epi8(char(sample)); }
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi8(a, b); }
  static __m256i subtract(__m256i a, __m256i b) { return _mm256_sub_epi8(a, b); }
  static __m256i average(__m256i a, __m256i b) { return _mm256_avg_epu8(a, b); }
  static __m256i multiply(__m256i a, uint32_t /*factor: 1*/) { return a; }
};

template <>
struct Lanes<uint16_t> {
  static __m256i fill(uint32_t sample) { return _mm256_set1_epi16(int16_t(sample)); }
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi16(a, b); }
  static __m256i subtract(__m256i a, __m256i b) { return _mm256_sub_epi16(a, b); }
  static __m256i average(__m256i a, __m256i b) { return _mm256_avg_epu16(a, b); }
  static __m256i multiply(__m256i a, uint32_t factor) { return factor == 1 ? a : _mm256_mullo_epi16(a, fill(factor)); }
};

// For each 16 of 48 interleaved bytes and each channel, where in 16 bytes of the channel they come from; 128 for other
// channels' bytes.
template <typename Sample, uint32_t part, uint32_t channel>
constexpr Bytes kSources = bytes_of([](uint32_t i) {
  const uint32_t size = sizeof(Sample), position = (16 * part + i % 16) / size;
  return position % 3 == channel ? position / 3 * size + i % size : 128;
});

template <typename Sample, uint32_t part>
inline __m256i interleave_part(__m256i red, __m256i green, __m256i blue) {
  return _mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(red, load_bytes(kSources<Sample, part, 0>)),
                                         _mm256_shuffle_epi8(green, load_bytes(kSources<Sample, part, 1>))),
                         _mm256_shuffle_epi8(blue, load_bytes(kSources<Sample, part, 2>)));
}

// A register of each channel: 96 bytes.
template <typename Sample>
inline void store_rgb(__m256i red, __m256i green, __m256i blue, uint8_t *out, Stores stores) {
  const __m256i first = interleave_part<Sample, 0>(red, green, blue),
                second = interleave_part<Sample, 1>(red, green, blue),
                third = interleave_part<Sample, 2>(red, green, blue);
  store_32(out, _mm256_permute2x128_si256(first, second, 0x20), stores);
  store_32(out + 32, _mm256_permute2x128_si256(third, first, 0x30), stores);
  store_32(out + 64, _mm256_permute2x128_si256(second, third, 0x31), stores);
}

template <typename Sample, uint32_t transform>
inline void undo_transform(__m256i &red, __m256i green, __m256i &blue) {
  using L = Lanes<Sample>;
  if constexpr (transform != kTransformNone) {
    // Adding a half of the range and flipping the top bit are the same.
    const __m256i middle = L::fill(1u << (8 * sizeof(Sample) - 1));
    __m256i reference = green;
    red = L::add(red, _mm256_xor_si256(green, middle));
    if constexpr (transform == kSubtractGreenAndMean) {
      const __m256i odd = _mm256_and_si256(_mm256_xor_si256(red, green), L::fill(1));
      reference = L::subtract(L::average(red, green), odd);  // rounded down
    }
    blue = L::add(blue, _mm256_xor_si256(reference, middle));
  }
}

template <typename Sample, uint32_t transform>
void store_rgb_tile(const DecodedTile<Sample> &tile, Destination destination, Stores stores) {
  constexpr uint32_t kSamples = 32 / sizeof(Sample);  // in a register
  const TileShape shape = tile.shape;
  const uint32_t factor = tile.transform.factor, row_size = 3 * shape.width * uint32_t(sizeof(Sample));
  const bool whole = shape.width == L3_TILE;
  if (!whole) stores = Stores::kCached;
  const Sample *const planes = tile.planes.plane[0];
  alignas(32) uint8_t partial[3 * L3_TILE * sizeof(Sample)];
  uint8_t *out = destination.data;
  for (uint32_t y = 0; y < shape.height; y++, out += destination.stride) {
    uint8_t *const row = whole ? out : partial;
    for (uint32_t x = 0; x < L3_TILE; x += kSamples) {
      const Sample *samples = planes + y * L3_TILE + x;
      const __m256i green = load_aligned(samples);
      __m256i red = load_aligned(samples + kPlaneSize), blue = load_aligned(samples + 2 * kPlaneSize);
      undo_transform<Sample, transform>(red, green, blue);
      using L = Lanes<Sample>;
      store_rgb<Sample>(L::multiply(red, factor), L::multiply(green, factor), L::multiply(blue, factor),
                        row + 3 * x * sizeof(Sample), stores);
    }
    if (!whole) std::memcpy(out, partial, row_size);
  }
}

// Gray: the rows of the plane.
template <typename Sample>
void store_gray_tile(const DecodedTile<Sample> &tile, Destination destination, Stores stores) {
  constexpr uint32_t kSamples = 32 / sizeof(Sample);  // in a register
  const TileShape shape = tile.shape;
  const uint32_t factor = tile.transform.factor, row_size = shape.width * uint32_t(sizeof(Sample));
  const bool whole = shape.width == L3_TILE;
  const Sample *row = tile.planes.plane[0];
  alignas(32) uint8_t partial[L3_TILE * sizeof(Sample)];
  uint8_t *out = destination.data;
  for (uint32_t y = 0; y < shape.height; y++, row += L3_TILE, out += destination.stride) {
    for (uint32_t x = 0; x < L3_TILE; x += kSamples)
      store_32((whole ? out : partial) + x * sizeof(Sample), Lanes<Sample>::multiply(load_aligned(row + x), factor),
               whole ? stores : Stores::kCached);
    if (!whole) std::memcpy(out, partial, row_size);
  }
}

template <typename Sample>
void store_tile(const DecodedTile<Sample> &tile, Destination out, Stores stores) {
  if (tile.channels == 1) return store_gray_tile(tile, out, stores);
  if (tile.channels != 3) return generic::store_tile(tile, out, stores);
  generic::with_color_transform(tile.transform.color,
                                [&](auto color) { store_rgb_tile<Sample, color>(tile, out, stores); });
}

}  // namespace
}  // namespace l3::avx2
