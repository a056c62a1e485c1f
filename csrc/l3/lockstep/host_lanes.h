// Lanes on the host, for tests: a number is an array that every operation walks lane by lane.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "format/bytes.h"
#include "lockstep/lanes.h"

namespace l3 {

struct HostLanes {
  static constexpr uint32_t kCount = 16;

  struct Number {
    uint32_t lane[kCount];

    Number() = default;
    Number(uint32_t same) {
      for (uint32_t &value : lane) value = same;
    }
    template <typename Operation>
    static Number each(const Number &a, const Number &b, Operation operation) {
      Number result;
      for (uint32_t i = 0; i < kCount; i++) result.lane[i] = operation(a.lane[i], b.lane[i]);
      return result;
    }
    friend Number operator+(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return x + y; });
    }
    friend Number operator-(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return x - y; });
    }
    friend Number operator*(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return x * y; });
    }
    friend Number operator&(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return x & y; });
    }
    friend Number operator|(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return x | y; });
    }
    friend Number operator^(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return x ^ y; });
    }
    friend Number operator<<(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return x << y; });
    }
    friend Number operator>>(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return x >> y; });
    }
    friend Number operator~(const Number &a) {
      return each(a, a, [](uint32_t x, uint32_t) { return ~x; });
    }
    friend Number operator<(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return uint32_t(x < y); });
    }
    friend Number operator==(const Number &a, const Number &b) {
      return each(a, b, [](uint32_t x, uint32_t y) { return uint32_t(x == y); });
    }
  };

  static Number index() {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) result.lane[i] = i;
    return result;
  }

  static Number select(const Number &condition, const Number &if_true, const Number &if_false) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) result.lane[i] = condition.lane[i] ? if_true.lane[i] : if_false.lane[i];
    return result;
  }

  template <typename Function, typename... Numbers>
  static Number apply(Function function, const Numbers &...numbers) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) result.lane[i] = function(numbers.lane[i]...);
    return result;
  }

  template <typename Body>
  static void for_each_lane(Body body) {
    for (uint32_t i = 0; i < kCount; i++) body(i);
  }

  static Number from_left(const Number &a) {
    Number result = a;
    for (uint32_t i = 1; i < kCount; i++) result.lane[i] = a.lane[i - 1];
    return result;
  }

  static Number from_right(const Number &a) {
    Number result = a;
    for (uint32_t i = 0; i + 1 < kCount; i++) result.lane[i] = a.lane[i + 1];
    return result;
  }

  static Number prefix_sum(const Number &a) {
    Number result = a;
    for (uint32_t i = 1; i < kCount; i++) result.lane[i] += result.lane[i - 1];
    return result;
  }

  static uint32_t broadcast(const Number &a, uint32_t lane) { return a.lane[lane]; }

  static bool any(const Number &condition) {
    for (uint32_t value : condition.lane)
      if (value) return true;
    return false;
  }

  static void sync() {}

  static Number permute_bytes(const Number &a, const Number &b, const Number &selector) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) {
      const uint64_t bytes = a.lane[i] | uint64_t(b.lane[i]) << 32;
      result.lane[i] = 0;
      for (uint32_t k = 0; k < 4; k++)
        result.lane[i] |= uint32_t(bytes >> 8 * (selector.lane[i] >> 4 * k & 7) & 255) << 8 * k;
    }
    return result;
  }

  static Number repeat_signs(const Number &a) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) result.lane[i] = (a.lane[i] >> 7 & 0x01010101) * 255;
    return result;
  }

  static Number funnel_shift(const Number &low, const Number &high, const Number &shift) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++)
      result.lane[i] = uint32_t((low.lane[i] | uint64_t(high.lane[i]) << 32) >> (shift.lane[i] & 31));
    return result;
  }
  static Number funnel_shift_clamped(const Number &low, const Number &high, const Number &shift) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++)
      result.lane[i] =
          uint32_t((low.lane[i] | uint64_t(high.lane[i]) << 32) >> (shift.lane[i] < 32 ? shift.lane[i] : 32));
    return result;
  }

  static Number keep(const Number &a) { return a; }

  static Number dot_bytes(const Number &a, const Number &b, const Number &sum) {
    Number result = sum;
    for (uint32_t i = 0; i < kCount; i++)
      for (uint32_t k = 0; k < 32; k += 8) result.lane[i] += (a.lane[i] >> k & 255) * (b.lane[i] >> k & 255);
    return result;
  }

  static Number multiply_add_halves(const Number &a, const Number &b, const Number &c) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++)
      result.lane[i] = multiply_add_half(a.lane[i] >> 16, b.lane[i] >> 16, c.lane[i] >> 16) << 16 |
                       multiply_add_half(a.lane[i] & 0xFFFF, b.lane[i] & 0xFFFF, c.lane[i] & 0xFFFF);
    return result;
  }

  static Number count_bits(const Number &a) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) result.lane[i] = popcount(a.lane[i]);
    return result;
  }

  static Number load_16(const uint8_t *bytes, const Number &position) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) result.lane[i] = l3::load<uint16_t>(bytes + position.lane[i]);
    return result;
  }

  template <typename Sample>
  static Number load(const Sample *samples, const Number &position, const Number &condition) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) result.lane[i] = condition.lane[i] ? samples[position.lane[i]] : 0;
    return result;
  }

  template <uint32_t count>
  static void load_words(const uint8_t *bytes, const Number &position, Number (&words)[count]) {
    for (uint32_t i = 0; i < kCount; i++)
      for (uint32_t k = 0; k < count; k++) words[k].lane[i] = l3::load<uint32_t>(bytes + position.lane[i] + 4 * k);
  }
  static void load_pair(const uint8_t *bytes, const Number &position, Number (&words)[2]) {
    load_words(bytes, position, words);
  }
  template <uint32_t count>
  static void load_words_of_bit(const uint8_t *bytes, const Number &bit, Number (&words)[count]) {
    load_words(bytes, bit >> 5 << 2, words);
  }
  template <uint32_t count>
  static void store_words(uint8_t *bytes, const Number &position, const Number (&words)[count],
                          const Number &condition = 1) {
    for (uint32_t i = 0; i < kCount; i++)
      for (uint32_t k = 0; k < count; k++)
        if (condition.lane[i]) l3::store(bytes + position.lane[i] + 4 * k, words[k].lane[i]);
  }

  template <typename Sample>
  static void store(Sample *samples, const Number &position, const Number &value, const Number &condition = 1) {
    for (uint32_t i = 0; i < kCount; i++)
      if (condition.lane[i]) samples[position.lane[i]] = Sample(value.lane[i]);
  }

 private:
  // Exact for the numbers that lanes.h speaks of.
  static uint32_t multiply_add_half(uint32_t a, uint32_t b, uint32_t c) {
    static const auto numbers = [] {
      std::vector<float> table(0x10000);
      for (uint32_t bits = 0; bits < table.size(); bits++) table[bits] = float(std::bit_cast<_Float16>(uint16_t(bits)));
      return table;
    }();
    const float sum = numbers[a] * numbers[b] + numbers[c], units = sum * 0x1p24f;
    if (std::fabs(units) < 2048) return uint32_t(std::signbit(units)) << 15 | uint32_t(std::lrint(std::fabs(units)));
    return std::bit_cast<uint16_t>(_Float16(sum));
  }
};
static_assert(WordLanes<HostLanes>);

}  // namespace l3
