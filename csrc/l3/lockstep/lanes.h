// What lock-step code is written over: a team of lanes that move in step. On a GPU a lane is a thread, a number one of
// its registers and an exchange between lanes a shuffle; on the host a number is an array that operations walk lane by
// lane (host_lanes.h).
#pragma once

#include <concepts>
#include <cstdint>

#include "format/host_device.h"

namespace l3 {

// An unsigned 32-bit number a lane. Comparisons give 1 or 0.
template <typename Number>
concept LaneNumber = std::convertible_to<uint32_t, Number> && requires(const Number &a, const Number &b) {
  Number(a + b), Number(a - b), Number(a * b), Number(a << b), Number(a >> b);
  Number(a & b), Number(a | b), Number(a ^ b), Number(~a);
  Number(a < b), Number(a == b);
};

// A team of kCount lanes.
template <typename Team, typename Number = typename Team::Number>
concept Lanes =
    LaneNumber<Number> && requires(const Number &a, const uint8_t *bytes, uint8_t *bytes_out, uint16_t *samples,
                                   uint32_t (*function)(uint32_t, uint32_t), void (*body)(uint32_t), uint32_t lane) {
      { Team::kCount } -> std::convertible_to<uint32_t>;
      // The lane's own number, 0 to kCount - 1.
      { Team::index() } -> std::same_as<Number>;
      // select(condition, if_true, if_false).
      { Team::select(a, a, a) } -> std::same_as<Number>;
      // A function of plain numbers, lane by lane.
      { Team::apply(function, a, a) } -> std::same_as<Number>;
      // What every lane does on its own, given its number.
      Team::for_each_lane(body);
      // The number of the lane before, and of the lane after; the outermost lane keeps its own.
      { Team::from_left(a) } -> std::same_as<Number>;
      { Team::from_right(a) } -> std::same_as<Number>;
      // The sum over this lane and all before it.
      { Team::prefix_sum(a) } -> std::same_as<Number>;
      // One lane's number, for all. On a GPU it is a register like any other, on the host a plain one.
      { Team::broadcast(a, lane) } -> std::same_as<uint32_t>;
      // How many bits are set.
      { Team::count_bits(a) } -> std::same_as<Number>;
      // load_16(bytes, position): two bytes at each lane's own position.
      { Team::load_16(bytes, a) } -> std::same_as<Number>;
      // load(samples, position, condition), store(samples, position, value): a sample of any type at each lane's own
      // position. Loaded where the condition is set, else 0; stored with a condition, where that is set.
      { Team::load(bytes, a, a) } -> std::same_as<Number>;
      { Team::load(samples, a, a) } -> std::same_as<Number>;
      Team::store(bytes_out, a, a);
      Team::store(samples, a, a, a);
    };

// A team whose lanes move words too, and whose control flow is that of all teams that move in step with it.
template <typename Team, typename Number = typename Team::Number>
concept WordLanes = Lanes<Team> && requires(const Number &a, const uint8_t *bytes, uint8_t *out, Number (&pair)[2],
                                            Number (&words)[4]) {
  // load_words(bytes, position, words): as many words as `words` has from each lane's own position, which is a
  // multiple of four, or of sixteen for four words. store_words(bytes, position, words): the reverse, of two
  // words to a multiple of eight; with a condition, where that is set. load_words_of_bit(bytes, bit, words): from the
  // word on that holds each lane's own bit; `bytes` is aligned to four. load_pair(bytes, position, words): two, from a
  // multiple of eight.
  Team::load_words(bytes, a, words);
  Team::load_words_of_bit(bytes, a, words);
  Team::load_pair(bytes, a, pair);
  Team::store_words(out, a, words);
  Team::store_words(out, a, words, a);
  // funnel_shift(low, high, shift): the low word of (high:low) shifted right by `shift` bits, modulo 32; clamped:
  // by at most 32.
  { Team::funnel_shift(a, a, a) } -> std::same_as<Number>;
  { Team::funnel_shift_clamped(a, a, a) } -> std::same_as<Number>;
  // permute_bytes(a, b, selector): four bytes chosen from the eight of a (0 to 3) and b (4 to 7): those that the
  // four nibbles of `selector` name, the lowest first; a nibble above 7 gives any byte.
  { Team::permute_bytes(a, a, a) } -> std::same_as<Number>;
  // repeat_signs(a): 0xFF in each byte whose highest bit is set, else 0.
  { Team::repeat_signs(a) } -> std::same_as<Number>;
  // dot_bytes(a, b, sum): the sum of the products of a's and b's bytes, added to `sum`.
  { Team::dot_bytes(a, a, a) } -> std::same_as<Number>;
  // multiply_add_halves(a, b, c): a * b + c in each 16-bit half, which holds a half-precision number, rounded once, to
  // nearest. An integer below 2048 is such a number too, itself times 2^-24; what results from integers a and c and any
  // factor b is rounded to an integer again, if it is below 2048.
  { Team::multiply_add_halves(a, a, a) } -> std::same_as<Number>;
  // The same number, as one that comes from elsewhere: a compiler may compute a number anew wherever it is used, to
  // spare a register, which costs more in a loop.
  { Team::keep(a) } -> std::same_as<Number>;
  // Whether the condition holds in any lane, of this team or of another that moves in step with it: for skipping
  // work that no lane needs, which must not change the result.
  { Team::any(a) } -> std::same_as<bool>;
  // Waits until what the team's lanes have stored can be loaded by them.
  Team::sync();
};

}  // namespace l3
