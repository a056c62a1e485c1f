// Lanes on a GPU whose control flow is that of the whole warp: both teams take part in every operation.
#pragma once

#include "thread_lanes.h"

namespace l3 {

struct WarpLanes : ThreadLanes {
  static constexpr uint32_t kAll = 0xFFFFFFFF;

  static L3_DEVICE Number from_left(Number a) { return __shfl_up_sync(kAll, a, 1, kCount); }
  static L3_DEVICE Number from_right(Number a) { return __shfl_down_sync(kAll, a, 1, kCount); }
  static L3_DEVICE Number broadcast(Number a, uint32_t lane) { return __shfl_sync(kAll, a, int(lane), kCount); }
  static L3_DEVICE Number keep(Number a) {
    // A shuffle from the lane itself: the compiler takes its result as it is.
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, 0x1f, -1;" : "+r"(a) : "r"(threadIdx.x % 32));
    return a;
  }
  static L3_DEVICE bool any(Number condition) { return __any_sync(kAll, condition); }
  static L3_DEVICE void sync() { __syncwarp(); }

  static L3_DEVICE Number prefix_sum(Number a) {
    // The shuffle's predicate says whether its source lane is in the team, which spares a comparison a step. The first
    // step multiplies, since a sum under a predicate must take the place of `a`, of which the caller may need a copy.
    // Volatile: the shuffles stay where all lanes meet.
    asm volatile(
        "{ .reg .pred p; .reg .u32 q;"
        "shfl.sync.up.b32 q, %0, 1, 0x1000, -1; mad.lo.u32 %0, q, %1, %0;"
        "shfl.sync.up.b32 q|p, %0, 2, 0x1000, -1; @p add.u32 %0, %0, q;"
        "shfl.sync.up.b32 q|p, %0, 4, 0x1000, -1; @p add.u32 %0, %0, q;"
        "shfl.sync.up.b32 q|p, %0, 8, 0x1000, -1; @p add.u32 %0, %0, q; }"
        : "+r"(a)
        : "r"(uint32_t(index() > 0)));
    return a;
  }

  static L3_DEVICE Number permute_bytes(Number a, Number b, Number selector) {
    // __byte_perm() would mask the selector.
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(a) : "r"(a), "r"(b), "r"(selector));
    return a;
  }
  static L3_DEVICE Number repeat_signs(Number a) {
    asm("prmt.b32 %0, %0, %0, 0xBA98;" : "+r"(a));
    return a;
  }
  static L3_DEVICE Number funnel_shift(Number low, Number high, Number shift) {
    return __funnelshift_r(low, high, shift);
  }
  static L3_DEVICE Number funnel_shift_clamped(Number low, Number high, Number shift) {
    return __funnelshift_rc(low, high, shift);
  }
  static L3_DEVICE Number dot_bytes(Number a, Number b, Number sum) { return __dp4a(a, b, sum); }
  static L3_DEVICE Number multiply_add_halves(Number a, Number b, Number c) {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(a) : "r"(a), "r"(b), "r"(c));
    return a;
  }

  template <uint32_t count>
  static L3_DEVICE void load_words(const uint8_t *bytes, Number position, Number (&words)[count]) {
    if constexpr (count == 4) {
      const uint4 loaded = *reinterpret_cast<const uint4 *>(bytes + position);
      words[0] = loaded.x, words[1] = loaded.y, words[2] = loaded.z, words[3] = loaded.w;
    } else {
      L3_UNROLL
      for (uint32_t k = 0; k < count; k++) words[k] = *reinterpret_cast<const uint32_t *>(bytes + position + 4 * k);
    }
  }

  static L3_DEVICE void load_pair(const uint8_t *bytes, Number position, Number (&words)[2]) {
    const uint2 loaded = *reinterpret_cast<const uint2 *>(bytes + position);
    words[0] = loaded.x, words[1] = loaded.y;
  }

  template <uint32_t count>
  static L3_DEVICE void load_words_of_bit(const uint8_t *bytes, Number bit, Number (&words)[count]) {
    // If the compiler saw the shift, it would mask a position in bytes and add it in two steps, where a multiply-add is
    // enough for the number of a word.
    uint32_t word;
    asm("shr.u32 %0, %1, 5;" : "=r"(word) : "r"(bit));
    L3_UNROLL
    for (uint32_t k = 0; k < count; k++) words[k] = reinterpret_cast<const uint32_t *>(bytes)[uint64_t(word) + k];
  }

  template <uint32_t count>
  static L3_DEVICE void store_words(uint8_t *bytes, Number position, const Number (&words)[count],
                                    Number condition = 1) {
    if (!condition) return;
    if constexpr (count == 4) {
      *reinterpret_cast<uint4 *>(bytes + position) = make_uint4(words[0], words[1], words[2], words[3]);
    } else if constexpr (count == 2) {
      *reinterpret_cast<uint2 *>(bytes + position) = make_uint2(words[0], words[1]);
    } else {
      L3_UNROLL
      for (uint32_t k = 0; k < count; k++) *reinterpret_cast<uint32_t *>(bytes + position + 4 * k) = words[k];
    }
  }
};
static_assert(WordLanes<WarpLanes>);

}  // namespace l3
