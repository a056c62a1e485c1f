// Packed octets: eight fields of equal width (docs/format.md, "Packed octets").
#pragma once

#if defined(__BMI2__)
#include <immintrin.h>
#endif

#include "format/bytes.h"

namespace l3 {

// The low `width` bits (0..8) of each of eight bytes.
constexpr uint64_t low_bits_of_bytes(uint32_t width) { return 0x0101010101010101ull * ((1u << width) - 1); }

// The eight fields of `width` bits (0..8) of an octet, each in a byte.
[[gnu::always_inline]] inline uint64_t spread_octet(uint64_t octet, uint32_t width) {
#if defined(__BMI2__)
  return _pdep_u64(octet, low_bits_of_bytes(width));
#else
  // Halves, then quarters, then eighths move apart.
  const uint64_t four = (1ull << 4 * width) - 1, two = ((1ull << 2 * width) - 1) * 0x0000000100000001ull;
  const uint64_t one = ((1ull << width) - 1) * 0x0001000100010001ull;
  octet = (octet & four) | (octet >> 4 * width & four) << 32;
  octet = (octet & two) | (octet >> 2 * width & two) << 16;
  return (octet & one) | (octet >> width & one) << 8;
#endif
}

// Unpacks fields of `width` bits, 0..8. Reads eight bytes.
[[gnu::always_inline]] inline void unpack_octet(const uint8_t *bytes, uint32_t width, uint8_t fields[8]) {
  store(fields, spread_octet(load<uint64_t>(bytes), width));
}

// Unpacks fields of `width` bits, 0..16. Reads eight bytes, or sixteen if `width` exceeds 8.
[[gnu::always_inline]] inline void unpack_octet(const uint8_t *bytes, uint32_t width, uint16_t fields[8]) {
  const uint32_t low_width = width > 8 ? 8 : 0;
  const uint64_t low = width > 8 ? load<uint64_t>(bytes) : 0,
                 high = spread_octet(load<uint64_t>(bytes + low_width), width - low_width);
  for (uint32_t k = 0; k < 8; k++) fields[k] = uint16_t((high >> 8 * k & 255) << low_width | (low >> 8 * k & 255));
}

// The low `width` bits (0..8) of the eight bytes of `fields`, which have no others, side by side.
[[gnu::always_inline]] inline uint64_t pack_bytes(uint64_t fields, uint32_t width) {
#if defined(__BMI2__)
  return _pext_u64(fields, low_bits_of_bytes(width));
#else
  uint64_t packed = 0;
  for (uint32_t k = 0; k < 8; k++) packed |= (fields >> 8 * k & 255) << k * width;
  return packed;
#endif
}

// Packs eight fields below 2^width and returns the position after them. Writes eight bytes, or sixteen if `width`
// exceeds 8.
[[gnu::always_inline]] inline uint8_t *pack_octet(const uint8_t fields[8], uint32_t width, uint8_t *out) {
  store(out, pack_bytes(load<uint64_t>(fields), width));
  return out + width;
}

[[gnu::always_inline]] inline uint8_t *pack_octet(const uint16_t fields[8], uint32_t width, uint8_t *out) {
  uint64_t low = 0, high = 0;
  for (uint32_t k = 0; k < 8; k++) {
    low |= uint64_t(fields[k] & 255) << 8 * k;
    high |= uint64_t(fields[k] >> 8) << 8 * k;
  }
  if (width <= 8) {
    store(out, pack_bytes(low, width));
  } else {
    store(out, low);
    store(out + 8, pack_bytes(high, width - 8));
  }
  return out + width;
}

}  // namespace l3
