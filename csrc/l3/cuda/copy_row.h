// Copying a row of bytes to the output with a team of 16 lanes: 16 bytes a lane where whole ones lie inside the row,
// single bytes at its ends.
#pragma once

#include "lockstep/lockstep_bits.h"

namespace l3 {

constexpr uint32_t kChunk = 16;  // bytes, the widest store

// The chunk at each lane's own position: by one load if all lanes' are `aligned`, else put together from the words in
// which it lies.
template <WordLanes Team>
L3_DEVICE void load_chunk(const uint8_t *bytes, const typename Team::Number &position, bool aligned,
                          typename Team::Number (&words)[4]) {
  if (aligned) return Team::template load_words<4>(bytes, position, words);
  typename Team::Number around[5];
  const typename Team::Number bit = position * 8;
  Team::template load_words_of_bit<5>(bytes, bit, around);
  L3_UNROLL
  for (uint32_t k = 0; k < 4; k++) words[k] = Team::funnel_shift(around[k], around[k + 1], bit);
}

// Copies a byte where `condition` is set.
template <WordLanes Team>
L3_DEVICE void copy_byte(const uint8_t *from, uint8_t *to, const typename Team::Number &position,
                         const typename Team::Number &condition) {
  const typename Team::Number at = Team::select(condition, position, 0);
  Team::store(to, at, Team::load_16(from, at) & 255, condition);
}

// Copies `size` bytes from position `begin` of `in`, which is aligned to four, to `out`, which need not be aligned.
// Reads at most four bytes past them.
template <WordLanes Team>
L3_DEVICE void copy_row(const uint8_t *in, uint32_t begin, uint8_t *out, uint32_t size) {
  using Number = typename Team::Number;
  const Number lane = Team::index();
  const uint32_t to_chunk = (0 - uint32_t(reinterpret_cast<uintptr_t>(out))) % kChunk,
                 head = to_chunk < size ? to_chunk : size;
  const uint32_t chunks = (size - head) / kChunk, tail = head + chunks * kChunk;
  copy_byte<Team>(in + begin, out, lane, lane < head);
  copy_byte<Team>(in + begin, out, lane + tail, lane + tail < size);
  const bool aligned = (reinterpret_cast<uintptr_t>(in) + begin + head) % kChunk == 0;
  L3_NO_UNROLL
  for (uint32_t first = 0; first < chunks; first += Team::kCount) {
    const Number chunk = lane + first, inside = chunk < chunks,
                 position = Team::select(inside, chunk, 0) * kChunk + head;
    Number words[4];
    load_chunk<Team>(in, position + begin, aligned, words);
    Team::template store_words<4>(out, position, words, inside);
  }
}

}  // namespace l3
