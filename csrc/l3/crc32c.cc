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

// x^(8 * bytes) modulo the polynomial, reflected.
constexpr uint32_t shift_constant(size_t bytes) {
  uint32_t value = 0x80000000;  // 1
  for (size_t bit = 0; bit < 8 * bytes; bit++) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
  return value;
}

// Moves `crc` over zero bytes: shift_constant(n) as the constant moves it over n + 4, since reducing the 64-bit product with the CRC
// instruction multiplies by x^32 once more.
[[gnu::target("sse4.2,pclmul")]] inline uint32_t shift(uint32_t crc, uint32_t constant) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(int(crc)), _mm_cvtsi32_si128(int(constant)), 0);
  return uint32_t(_mm_crc32_u64(0, uint64_t(_mm_cvtsi128_si64(product)) << 1));
}

[[gnu::target("sse4.2,pclmul")]] uint32_t crc32c_sse42(const uint8_t *data, size_t size, uint32_t crc) {
  constexpr uint32_t shift_one = shift_constant(kLane - 4), shift_two = shift_constant(2 * kLane - 4);
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

bool has_crc_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  return has;
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
  if (has_crc_instruction()) return crc32c_sse42(static_cast<const uint8_t *>(data), size, crc);
#endif
  return crc32c_portable(data, size, crc);
}

}  // namespace l3
