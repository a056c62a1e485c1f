// Which codes of a channel's groups are worth a place in its palette.
#pragma once

#include <array>
#include <bit>

#include "format/fast_tile.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

template <typename Sample>
using Histogram = std::array<uint32_t, code_count(8 * sizeof(Sample))>;

// Counts `size` codes, a multiple of 4. Neighbours are counted apart: an addition need not wait for the one before.
template <typename Sample>
Histogram<Sample> count_codes(const uint8_t *codes, uint32_t size) {
  Histogram<Sample> parts[4] = {};
  for (uint32_t i = 0; i < size; i += 4)
    for (uint32_t part = 0; part < 4; part++) parts[part][codes[i + part]]++;
  for (uint32_t code = 0; code < parts[0].size(); code++)
    parts[0][code] += parts[1][code] + parts[2][code] + parts[3][code];
  return parts[0];
}

// A set of codes, as a bit mask, that can stand for all groups of a channel; and the bytes of their octets.
struct CodeSet {
  uint32_t codes;
  uint32_t bytes;
};

// The code of least width in `set` that can hold groups of code `code`: itself, or any wider one.
inline uint32_t cover_of(uint32_t set, uint32_t code) {
  if (set >> code & 1) return code;
  const uint32_t wider = set & ~uint32_t(low_bits(2 * code_width(code) + 1));
  return uint32_t(std::countr_zero(wider));
}

// Code sets of at most 2^b codes for b = 0, 1, …, found by taking away, from all codes that occur, the one whose groups
// cost least elsewhere.
template <typename Sample>
std::array<CodeSet, 6> choose_code_sets(Histogram<Sample> histogram) {
  constexpr uint32_t kMaxBits = max_index_bits(8 * sizeof(Sample));
  uint32_t set = 0, bytes = 0;
  for (uint32_t code = 0; code < histogram.size(); code++) {
    if (!histogram[code]) continue;
    set |= 1u << code;
    bytes += histogram[code] * code_width(code);
  }
  if (!set) set = 1;
  std::array<CodeSet, 6> sets{};
  for (int bits = int(kMaxBits); bits >= 0; bits--) {
    while (std::popcount(set) > 1 << bits) {
      const uint32_t widest = code_width(31 - uint32_t(std::countl_zero(set)));
      // Two codes of the greatest width can only be joined in the next width.
      uint32_t best_code = 0, best_cover = 0, best_cost = UINT32_MAX;
      for (uint32_t rest = set; rest; rest &= rest - 1) {
        const uint32_t code = uint32_t(std::countr_zero(rest));
        if (code_width(code) == widest) break;
        const uint32_t cover = cover_of(set & ~(1u << code), code),
                       cost = histogram[code] * (code_width(cover) - code_width(code));
        if (cost < best_cost) best_code = code, best_cover = cover, best_cost = cost;
      }
      const uint32_t narrow_top = 2 * widest - 1, wide_top = 2 * widest;
      if ((set >> narrow_top & 3) == 3 && histogram[narrow_top] + histogram[wide_top] < best_cost) {
        set &= ~(3u << narrow_top);
        const uint32_t joined = wide_top + 1;
        set |= 1u << joined;
        histogram[joined] = histogram[narrow_top] + histogram[wide_top];
        bytes += histogram[joined];
      } else {
        set &= ~(1u << best_code);
        histogram[best_cover] += histogram[best_code];
        bytes += best_cost;
      }
    }
    sets[size_t(bits)] = {set, bytes};
  }
  return sets;
}

}  // namespace
}  // namespace l3::generic
