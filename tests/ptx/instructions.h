// What PTX instructions compute that C++ has no operator for.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptx {

constexpr uint64_t kUnwritten = 0xBADBADBADBADBAD1;     // what registers hold before they are written
constexpr uint64_t kConstantText = 0x7E47000000000000;  // the address of text that kernels name and do not read

// Shifts by the type's bits and more shift everything out.
template <typename T>
T shift_left(T a, uint32_t count) {
  return count < 8 * sizeof(T) ? T(a << count) : T(0);
}

template <typename T>
T shift_right(T a, uint32_t count) {
  if (count < 8 * sizeof(T)) return T(a >> count);
  return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
}

// Towards zero; what does not fit becomes the nearest that does, NaN zero.
template <typename To, typename From>
To truncate(From a) {
  if (std::isnan(a)) return 0;
  const From limit = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (a >= limit) return std::numeric_limits<To>::max();
  if (a < (std::is_signed_v<To> ? -limit : From(0))) return std::numeric_limits<To>::min();
  return To(a);
}

// The low `length` bits of `a` in place of those of `b` from `position` on.
template <typename T>
T insert_field(T a, T b, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  position &= 255, length &= 255;
  if (position >= kBits) return b;
  const T ones = length < kBits ? T(shift_left(T(1), length) - 1) : T(~T(0)), mask = shift_left(ones, position);
  return T((b & ~mask) | (shift_left(a, position) & mask));
}

inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t selector = selectors >> 4 * i & 15, byte = uint32_t(bytes >> 8 * (selector & 7)) & 255;
    const bool repeats_sign = selector >= 8;
    result |= (repeats_sign ? (byte >> 7) * 255 : byte) << 8 * i;
  }
  return result;
}

inline uint32_t wrap_shift(uint32_t count) { return count & 31; }
inline uint32_t clamp_shift(uint32_t count) { return count < 32 ? count : 32; }

// 32 of the 64 bits whose low half is `a`.
inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t count) {
  return uint32_t((uint64_t(b) << 32 | a) >> count);
}
inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t count) {
  return uint32_t((uint64_t(b) << 32 | a) << count >> 32);
}

// Half-precision numbers: a * b + c, rounded once.
inline uint16_t multiply_add_half(uint16_t a, uint16_t b, uint16_t c) {
  const auto number = [](uint16_t half) { return double(std::bit_cast<_Float16>(half)); };
  const double product = number(a) * number(b), sum = product + number(c);  // the product is exact
  if (std::isnan(sum)) return 0x7FFF;
  // If the sum is not, it is made odd, which keeps the rounding that follows from taking it for a tie.
  const double rest = std::isinf(sum)                                         ? 0
                      : std::isless(std::fabs(product), std::fabs(number(c))) ? number(c) - sum + product
                                                                              : product - sum + number(c);
  double odd = sum;
  if (rest != 0 && std::bit_cast<uint64_t>(sum) % 2 == 0)
    odd = std::nextafter(sum, std::copysign(std::numeric_limits<double>::infinity(), rest));
  return std::bit_cast<uint16_t>(_Float16(odd));
}
inline uint32_t multiply_add_halves(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t high = multiply_add_half(uint16_t(a >> 16), uint16_t(b >> 16), uint16_t(c >> 16));
  return high << 16 | multiply_add_half(uint16_t(a), uint16_t(b), uint16_t(c));
}

// The sum of c and the products of bytes; of the 16-bit halves of `a` with the low two bytes of `b`.
inline uint32_t dot_4(uint32_t a, uint32_t b, uint32_t c) {
  for (uint32_t shift = 0; shift < 32; shift += 8) c += (a >> shift & 255) * (b >> shift & 255);
  return c;
}
inline uint32_t dot_2(uint32_t a, uint32_t b, uint32_t c) {
  return c + (a & 0xFFFF) * (b & 255) + (a >> 16) * (b >> 8 & 255);
}

}  // namespace ptx
