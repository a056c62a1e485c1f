// Packed octets: eight fields of equal width (docs/format.md, "Packed octets").
#pragma once

#if defined(__BMI2__)
#include <immintrin.h>
#endif

#include "bytes.h"

namespace l3 {

// Unpacks fields of `width` bits, 0..8. Reads eight bytes.
[[gnu::always_inline]] inline void unpack_octet(const uint8_t *bytes, uint32_t width, uint8_t fields[8]) {
  const uint64_t packed = load<uint64_t>(bytes);
  const uint32_t mask = (1u << width) - 1;
  for (uint32_t k = 0; k < 8; k++) fields[k] = uint8_t(packed >> k * width & mask);
}

// Unpacks fields of `width` bits, 0..16. Reads eight bytes, or sixteen if `width` exceeds 8.
[[gnu::always_inline]] inline void unpack_octet(const uint8_t *bytes, uint32_t width, uint16_t fields[8]) {
  const uint32_t low_width = width > 8 ? 8 : 0, high_width = width - low_width;
  const uint64_t low = width > 8 ? load<uint64_t>(bytes) : 0, high = load<uint64_t>(bytes + low_width);
  const uint32_t mask = (1u << high_width) - 1;
  for (uint32_t k = 0; k < 8; k++)
    fields[k] = uint16_t((uint32_t(high >> k * high_width) & mask) << low_width | (uint32_t(low >> 8 * k) & 255));
}

// The low `width` bits (0..8) of the eight bytes of `fields`, which have no others, side by side.
[[gnu::always_inline]] inline uint64_t pack_bytes(uint64_t fields, uint32_t width) {
#if defined(__BMI2__)
  return _pext_u64(fields, 0x0101010101010101ull * ((1u << width) - 1));
#else
  uint64_t packed = 0;
  for (uint32_t k = 0; k < 8; k++) packed |= (fields >> 8 * k & 255) << k * width;
  return packed;
#endif
}

// Packs eight fields below 2^width and returns the position after them. Writes eight bytes, or sixteen if `width` exceeds 8.
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
