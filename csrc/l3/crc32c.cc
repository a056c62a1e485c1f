#include "crc32c.h"

#include <array>

#include "bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace l3 {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected

// kTables[k][b] is the CRC of byte b followed by k zero bytes, without the initial and final inversion.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (int k = 1; k < 8; k++)
    for (uint32_t byte = 0; byte < 256; byte++) tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 255];
  return tables;
}();

#if defined(__x86_64__)

// Bytes in each of the three streams that are summed side by side, since the instruction has a latency of three cycles. Short enough that a
// typical tile has several blocks.
constexpr size_t kLane = 256;

// x^exponent modulo the polynomial, reflected.
constexpr uint32_t power_of_x(size_t exponent) {
  uint32_t value = 0x80000000;  // 1
  for (size_t i = 0; i < exponent; i++) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
  return value;
}

// Moves `crc` over zero bytes: x^n as the constant moves it over n + 32 bits, since reducing the 64-bit product with the CRC instruction
// multiplies by x^32 once more.
[[gnu::target("sse4.2,pclmul")]] inline uint32_t shift(uint32_t crc, uint32_t constant) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(int(crc)), _mm_cvtsi32_si128(int(constant)), 0);
  return uint32_t(_mm_crc32_u64(0, uint64_t(_mm_cvtsi128_si64(product)) << 1));
}

[[gnu::target("sse4.2,pclmul")]] uint32_t crc32c_sse42(const uint8_t *data, size_t size, uint32_t crc) {
  constexpr uint32_t shift_one = power_of_x(8 * kLane - 32), shift_two = power_of_x(16 * kLane - 32);
  crc = ~crc;
  for (; size >= 3 * kLane; data += 3 * kLane, size -= 3 * kLane) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      a = _mm_crc32_u64(a, load<uint64_t>(data + i));
      b = _mm_crc32_u64(b, load<uint64_t>(data + kLane + i));
      c = _mm_crc32_u64(c, load<uint64_t>(data + 2 * kLane + i));
    }
    crc = shift(uint32_t(a), shift_two) ^ shift(uint32_t(b), shift_one) ^ uint32_t(c);
  }
  for (; size >= 8; data += 8, size -= 8) crc = uint32_t(_mm_crc32_u64(crc, load<uint64_t>(data)));
  for (; size; data++, size--) crc = _mm_crc32_u8(crc, *data);
  return ~crc;
}

// The two constants that move 128 bits over `bits` bits. A carry-less product of reflected numbers, 64 bits by 32, stands 33 bits too high.
[[gnu::target("avx512f")]] inline __m512i fold_constants(uint32_t low, uint32_t high) {
  return _mm512_broadcast_i32x4(_mm_set_epi64x(high, low));
}
template <size_t bits>
[[gnu::target("avx512f")]] inline __m512i fold_by() {
  constexpr uint32_t low = power_of_x(bits + 31), high = power_of_x(bits - 33);
  return fold_constants(low, high);
}

// Moves the four 128-bit parts of `state` by the distance of the constants, and adds `next`.
[[gnu::target("avx512f,vpclmulqdq")]] inline __m512i fold(__m512i state, __m512i constants, __m512i next) {
  const __m512i low = _mm512_clmulepi64_epi128(state, constants, 0x00), high = _mm512_clmulepi64_epi128(state, constants, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // exclusive or of the three
}

// Folds 256 bytes at a time into 256, these into 64, and leaves the rest to the CRC instruction.
[[gnu::target("avx512f,vpclmulqdq,sse4.2,pclmul")]] uint32_t crc32c_vpclmul(const uint8_t *data, size_t size, uint32_t crc) {
  if (size < 512) return crc32c_sse42(data, size, crc);
  const __m512i by_256_bytes = fold_by<2048>(), by_64_bytes = fold_by<512>();
  __m512i a = _mm512_xor_si512(_mm512_loadu_si512(data), _mm512_zextsi128_si512(_mm_cvtsi32_si128(int(~crc))));
  __m512i b = _mm512_loadu_si512(data + 64), c = _mm512_loadu_si512(data + 128), d = _mm512_loadu_si512(data + 192);
  for (data += 256, size -= 256; size >= 256; data += 256, size -= 256) {
    a = fold(a, by_256_bytes, _mm512_loadu_si512(data));
    b = fold(b, by_256_bytes, _mm512_loadu_si512(data + 64));
    c = fold(c, by_256_bytes, _mm512_loadu_si512(data + 128));
    d = fold(d, by_256_bytes, _mm512_loadu_si512(data + 192));
  }
  a = fold(fold(fold(a, by_64_bytes, b), by_64_bytes, c), by_64_bytes, d);
  for (; size >= 64; data += 64, size -= 64) a = fold(a, by_64_bytes, _mm512_loadu_si512(data));
  alignas(64) uint8_t rest[64];
  _mm512_store_si512(rest, a);
  // `rest` stands for all bytes so far, with a CRC of zero before them.
  return crc32c_sse42(data, size, crc32c_sse42(rest, sizeof rest, ~0u));
}

using Crc = uint32_t (*)(const uint8_t *, size_t, uint32_t);

Crc best_crc() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")) return crc32c_vpclmul;
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) return crc32c_sse42;
  return [](const uint8_t *data, size_t size, uint32_t crc) { return crc32c_portable(data, size, crc); };
}

#endif

}  // namespace

uint32_t crc32c_portable(const void *data, size_t size, uint32_t crc) {
  const uint8_t *bytes = static_cast<const uint8_t *>(data);
  crc = ~crc;
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word = load<uint64_t>(bytes) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; k++) crc ^= kTables[7 - k][word >> 8 * k & 255];
  }
  for (; size; bytes++, size--) crc = crc >> 8 ^ kTables[0][(crc ^ *bytes) & 255];
  return ~crc;
}

uint32_t crc32c(const void *data, size_t size, uint32_t crc) {
#if defined(__x86_64__)
  static const Crc best = best_crc();
  return best(static_cast<const uint8_t *>(data), size, crc);
#else
  return crc32c_portable(data, size, crc);
#endif
}

}  // namespace l3
