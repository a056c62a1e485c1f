// A team of lanes that move in step, for code that is to run on a GPU and, for tests, on a CPU.
//
// Lock-step code is written over a type `Lanes` that offers a number per lane (`Lanes::Number`, with the usual operators) and the operations
// below. On a GPU a Number is one register of each thread of a half warp, and the operations are shuffles; here it is an array that every
// operation walks lane by lane.
#pragma once

#include <cstdint>

#include "bytes.h"

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
    friend Number operator+(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return x + y; }); }
    friend Number operator-(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return x - y; }); }
    friend Number operator*(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return x * y; }); }
    friend Number operator&(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return x & y; }); }
    friend Number operator|(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return x | y; }); }
    friend Number operator<<(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return x << y; }); }
    friend Number operator>>(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return x >> y; }); }
    // Comparisons give 1 or 0.
    friend Number operator<(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return uint32_t(x < y); }); }
    friend Number operator==(const Number &a, const Number &b) { return each(a, b, [](uint32_t x, uint32_t y) { return uint32_t(x == y); }); }
  };

  // The lane's own number, 0 to kCount - 1.
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

  // The number of the lane before; the first lane keeps its own.
  static Number from_left(const Number &a) {
    Number result = a;
    for (uint32_t i = 1; i < kCount; i++) result.lane[i] = a.lane[i - 1];
    return result;
  }

  // The number of the lane after; the last lane keeps its own.
  static Number from_right(const Number &a) {
    Number result = a;
    for (uint32_t i = 0; i + 1 < kCount; i++) result.lane[i] = a.lane[i + 1];
    return result;
  }

  // The sum over this lane and all before it.
  static Number prefix_sum(const Number &a) {
    Number result = a;
    for (uint32_t i = 1; i < kCount; i++) result.lane[i] += result.lane[i - 1];
    return result;
  }

  // One lane's number, for all. On a GPU it is a register like any other, on the host a plain one.
  static uint32_t broadcast(const Number &a, uint32_t lane) { return a.lane[lane]; }

  // Two bytes at each lane's own position.
  static Number load_16(const uint8_t *bytes, const Number &position) {
    Number result;
    for (uint32_t i = 0; i < kCount; i++) result.lane[i] = load<uint16_t>(bytes + position.lane[i]);
    return result;
  }

  template <typename Sample>
  static void store(Sample *samples, const Number &position, const Number &value) {
    for (uint32_t i = 0; i < kCount; i++) samples[position.lane[i]] = Sample(value.lane[i]);
  }
};

}  // namespace l3
