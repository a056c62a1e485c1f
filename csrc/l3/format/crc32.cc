// One form of each step for both polynomials; only the last bytes of CRC-32C go to the instruction that the processor
// has for it.

#include "format/crc32.h"

#include <array>

#include "format/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace l3 {
namespace {

// Reflected.
constexpr uint32_t kCastagnoli = 0x82F63B78, kIeee = 0xEDB88320;

// kTables[k][b] is the CRC of byte b followed by k zero bytes, without the initial and final inversion.
template <uint32_t polynomial>
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    tables[0][byte] = crc;
  }
  for (int k = 1; k < 8; k++)
    for (uint32_t byte = 0; byte < 256; byte++)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 255];
  return tables;
}();

template <uint32_t polynomial>
uint32_t portable(const uint8_t *data, size_t size, uint32_t crc) {
  constexpr auto &tables = kTables<polynomial>;
  crc = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word = load<uint64_t>(data) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; k++) crc ^= tables[7 - k][word >> 8 * k & 255];
  }
  for (; size; data++, size--) crc = crc >> 8 ^ tables[0][(crc ^ *data) & 255];
  return ~crc;
}

using Crc = uint32_t (*)(const uint8_t *, size_t, uint32_t);

#if defined(__x86_64__)

// x^exponent modulo the polynomial, reflected.
template <uint32_t polynomial>
constexpr uint32_t power_of_x(size_t exponent) {
  uint32_t value = 0x80000000;  // 1
  for (size_t i = 0; i < exponent; i++) value = value >> 1 ^ (value & 1 ? polynomial : 0);
  return value;
}

// ---- CRC-32C by its instruction -------------------------------------------------------------------------------------

// Bytes in each of the three parts that are summed side by side, since the instruction has a latency of three cycles.
// Short enough that a typical tile has several blocks.
constexpr size_t kLane = 256;

// Moves `crc` over zero bytes: x^n as the constant moves it over n + 32 bits, since reducing the 64-bit product with
// the CRC instruction multiplies by x^32 once more.
[[gnu::target("sse4.2,pclmul")]] inline uint32_t shift(uint32_t crc, uint32_t constant) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(int(crc)), _mm_cvtsi32_si128(int(constant)), 0);
  return uint32_t(_mm_crc32_u64(0, uint64_t(_mm_cvtsi128_si64(product)) << 1));
}

[[gnu::target("sse4.2,pclmul")]] uint32_t crc32c_sse42(const uint8_t *data, size_t size, uint32_t crc) {
  constexpr uint32_t shift_one = power_of_x<kCastagnoli>(8 * kLane - 32),
                     shift_two = power_of_x<kCastagnoli>(16 * kLane - 32);
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

// ---- Either by carry-less multiplication ----------------------------------------------------------------------------

// The two constants that move 128 bits over `bits` bits: one for the low half, one for the high half. A carry-less
// product of reflected numbers, 64 bits by 32, stands 33 bits too high.
template <uint32_t polynomial, size_t bits>
struct FoldConstants {
  static constexpr uint32_t low = power_of_x<polynomial>(bits + 31), high = power_of_x<polynomial>(bits - 33);
};

template <uint32_t polynomial, size_t bits>
[[gnu::target("pclmul")]] inline __m128i fold_128(__m128i state, __m128i next) {
  using Constants = FoldConstants<polynomial, bits>;
  const __m128i constants = _mm_set_epi64x(Constants::high, Constants::low);
  const __m128i low = _mm_clmulepi64_si128(state, constants, 0x00), high = _mm_clmulepi64_si128(state, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

inline __m128i load_128(const uint8_t *data) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(data)); }

// Folds 64 bytes at a time into 64, these into 16, and leaves those and the rest to the tables.
template <uint32_t polynomial>
[[gnu::target("pclmul")]] uint32_t by_pclmul(const uint8_t *data, size_t size, uint32_t crc) {
  if (size < 64) return portable<polynomial>(data, size, crc);
  __m128i a = _mm_xor_si128(load_128(data), _mm_cvtsi32_si128(int(~crc)));
  __m128i b = load_128(data + 16), c = load_128(data + 32), d = load_128(data + 48);
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
    a = fold_128<polynomial, 512>(a, load_128(data));
    b = fold_128<polynomial, 512>(b, load_128(data + 16));
    c = fold_128<polynomial, 512>(c, load_128(data + 32));
    d = fold_128<polynomial, 512>(d, load_128(data + 48));
  }
  a = fold_128<polynomial, 128>(fold_128<polynomial, 128>(fold_128<polynomial, 128>(a, b), c), d);
  for (; size >= 16; data += 16, size -= 16) a = fold_128<polynomial, 128>(a, load_128(data));
  alignas(16) uint8_t folded[16];
  _mm_store_si128(reinterpret_cast<__m128i *>(folded), a);
  // They stand for all bytes so far, with a CRC of zero before them.
  return portable<polynomial>(data, size, portable<polynomial>(folded, sizeof folded, ~0u));
}

// Moves the four 128-bit parts of `state`, and adds `next`.
template <uint32_t polynomial, size_t bits>
[[gnu::target("avx512f,vpclmulqdq")]] inline __m512i fold_512(__m512i state, __m512i next) {
  using Constants = FoldConstants<polynomial, bits>;
  const __m512i constants = _mm512_broadcast_i32x4(_mm_set_epi64x(Constants::high, Constants::low));
  const __m512i low = _mm512_clmulepi64_epi128(state, constants, 0x00),
                high = _mm512_clmulepi64_epi128(state, constants, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // exclusive or of the three
}

// Folds 256 bytes at a time into 256, these into 64, and leaves those and the rest to `smaller`.
template <uint32_t polynomial, Crc smaller>
[[gnu::target("avx512f,vpclmulqdq")]] uint32_t by_vpclmul(const uint8_t *data, size_t size, uint32_t crc) {
  if (size < 512) return smaller(data, size, crc);
  __m512i a = _mm512_xor_si512(_mm512_loadu_si512(data), _mm512_zextsi128_si512(_mm_cvtsi32_si128(int(~crc))));
  __m512i b = _mm512_loadu_si512(data + 64), c = _mm512_loadu_si512(data + 128), d = _mm512_loadu_si512(data + 192);
  for (data += 256, size -= 256; size >= 256; data += 256, size -= 256) {
    a = fold_512<polynomial, 2048>(a, _mm512_loadu_si512(data));
    b = fold_512<polynomial, 2048>(b, _mm512_loadu_si512(data + 64));
    c = fold_512<polynomial, 2048>(c, _mm512_loadu_si512(data + 128));
    d = fold_512<polynomial, 2048>(d, _mm512_loadu_si512(data + 192));
  }
  a = fold_512<polynomial, 512>(fold_512<polynomial, 512>(fold_512<polynomial, 512>(a, b), c), d);
  for (; size >= 64; data += 64, size -= 64) a = fold_512<polynomial, 512>(a, _mm512_loadu_si512(data));
  alignas(64) uint8_t folded[64];
  _mm512_store_si512(folded, a);
  return smaller(data, size, smaller(folded, sizeof folded, ~0u));
}

#endif

// ---- The best form --------------------------------------------------------------------------------------------------

Crc best_crc32c() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
    const bool has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
    return has_512 ? by_vpclmul<kCastagnoli, crc32c_sse42> : crc32c_sse42;
  }
#endif
  return portable<kCastagnoli>;
}

Crc best_crc32_ieee() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul")) {
    const bool has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
    return has_512 ? by_vpclmul<kIeee, by_pclmul<kIeee>> : by_pclmul<kIeee>;
  }
#endif
  return portable<kIeee>;
}

}  // namespace

uint32_t crc32c_portable(const void *data, size_t size, uint32_t crc) {
  return portable<kCastagnoli>(static_cast<const uint8_t *>(data), size, crc);
}

uint32_t crc32_ieee_portable(const void *data, size_t size, uint32_t crc) {
  return portable<kIeee>(static_cast<const uint8_t *>(data), size, crc);
}

uint32_t crc32c(const void *data, size_t size, uint32_t crc) {
  static const Crc best = best_crc32c();
  return best(static_cast<const uint8_t *>(data), size, crc);
}

uint32_t crc32_ieee(const void *data, size_t size, uint32_t crc) {
  static const Crc best = best_crc32_ieee();
  return best(static_cast<const uint8_t *>(data), size, crc);
}

}  // namespace l3
