// Lanes on a GPU: what a thread does on its own, and is the same however teams move (lockstep/lanes.h).
#pragma once

#include "lockstep/lanes.h"

namespace l3 {

struct ThreadLanes {
  static constexpr uint32_t kCount = 16;  // half a warp
  using Number = uint32_t;

  static L3_DEVICE Number index() { return threadIdx.x % kCount; }
  static L3_DEVICE Number select(Number condition, Number if_true, Number if_false) {
    return condition ? if_true : if_false;
  }
  template <typename Function, typename... Numbers>
  static L3_DEVICE Number apply(Function function, Numbers... numbers) {
    return function(numbers...);
  }
  template <typename Body>
  static L3_DEVICE void for_each_lane(Body body) {
    body(index());
  }
  static L3_DEVICE Number count_bits(Number a) { return uint32_t(__popc(a)); }

  static L3_DEVICE Number load_16(const uint8_t *bytes, Number position) {
    return bytes[position] | uint32_t(bytes[position + 1]) << 8;
  }

  template <typename Sample>
  static L3_DEVICE Number load(const Sample *samples, Number position, Number condition) {
    return condition ? samples[position] : 0;
  }

  template <typename Sample>
  static L3_DEVICE void store(Sample *samples, Number position, Number value, Number condition = 1) {
    if (condition) samples[position] = Sample(value);
  }
};

}  // namespace l3
