// Constants of whole registers.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx2 {
namespace {

using Bytes = std::array<uint8_t, 32>;
template <typename Function>
constexpr Bytes bytes_of(Function function) {
  Bytes bytes{};
  for (uint32_t i = 0; i < 32; i++) bytes[i] = uint8_t(function(i));
  return bytes;
}
inline __m256i load_bytes(const Bytes &bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bytes.data()));
}

// A register at an address that is a multiple of 32.
inline __m256i load_aligned(const void *samples) { return _mm256_load_si256(static_cast<const __m256i *>(samples)); }
inline void store_aligned(void *samples, __m256i values) {
  _mm256_store_si256(static_cast<__m256i *>(samples), values);
}

}  // namespace
}  // namespace l3::avx2
