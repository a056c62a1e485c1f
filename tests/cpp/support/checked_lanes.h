// Lanes that fail the test where a load or a store of words is not aligned to its size: a CPU does not mind, a GPU
// stops.
#pragma once

#include "lockstep/host_lanes.h"
#include "testing.h"

namespace l3 {

struct CheckedLanes : HostLanes {
  template <uint32_t count>
  static void load_words(const uint8_t *bytes, const Number &position, Number (&words)[count]) {
    check_alignment<count == 4 ? 16 : 4>(bytes, position, 1);
    HostLanes::load_words(bytes, position, words);
  }
  static void load_pair(const uint8_t *bytes, const Number &position, Number (&words)[2]) {
    check_alignment<8>(bytes, position, 1);
    HostLanes::load_pair(bytes, position, words);
  }
  template <uint32_t count>
  static void load_words_of_bit(const uint8_t *bytes, const Number &bit, Number (&words)[count]) {
    load_words(bytes, bit >> 5 << 2, words);
  }
  template <uint32_t count>
  static void store_words(uint8_t *bytes, const Number &position, const Number (&words)[count],
                          const Number &condition = 1) {
    check_alignment<count == 4 ? 16 : count == 2 ? 8 : 4>(bytes, position, condition);
    HostLanes::store_words(bytes, position, words, condition);
  }

 private:
  template <uintptr_t alignment>
  static void check_alignment(const uint8_t *bytes, const Number &position, const Number &condition) {
    for (uint32_t i = 0; i < kCount; i++)
      CHECK(!condition.lane[i] || reinterpret_cast<uintptr_t>(bytes + position.lane[i]) % alignment == 0);
  }
};
static_assert(WordLanes<CheckedLanes>);

}  // namespace l3
