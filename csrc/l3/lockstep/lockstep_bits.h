// Words, fields of bits and octets read by a team of lanes, each at its own position in a tile's bytes.
#pragma once

#include "format/bytes.h"
#include "lockstep/lanes.h"

namespace l3::lockstep {

// Four bytes at each lane's own position (below 2^29); `bytes` is aligned to four. Reads the two words in which they
// lie.
template <WordLanes Team>
L3_DEVICE typename Team::Number load_unaligned(const uint8_t *bytes, const typename Team::Number &position) {
  typename Team::Number words[2];
  const typename Team::Number bit = position * 8;
  Team::template load_words_of_bit<2>(bytes, bit, words);
  return Team::funnel_shift(words[0], words[1], bit);
}

// `width` (at most 8) bits at each lane's own bit position from a byte position.
template <Lanes Team>
L3_DEVICE typename Team::Number read_bits(const uint8_t *bytes, const typename Team::Number &byte,
                                          const typename Team::Number &bit, const typename Team::Number &width) {
  using Number = typename Team::Number;
  const Number two_bytes = Team::load_16(bytes, byte + (bit >> 3));
  return (two_bytes >> (bit & 7)) & ((Number(1) << width) - 1);
}

// Value `k` of a packed octet of `width` bits, which are no more than a sample has.
template <Lanes Team, typename Sample>
L3_DEVICE typename Team::Number read_octet_value(const uint8_t *bytes, const typename Team::Number &octet,
                                                 const typename Team::Number &width, const typename Team::Number &k) {
  using Number = typename Team::Number;
  if constexpr (sizeof(Sample) == 1) {
    return read_bits<Team>(bytes, octet, width * k, width);
  } else {  // widths above 8 split into a byte and the rest
    const Number low_width = (Number(8) < width) * 8, high_width = width - low_width;
    const Number low = read_bits<Team>(bytes, octet, k * 8, low_width);
    return read_bits<Team>(bytes, octet + low_width, high_width * k, high_width) << low_width | low;
  }
}

}  // namespace l3::lockstep
