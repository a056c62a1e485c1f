// Codes of 8-bit samples for the back ends that look bytes up by shuffling.
#pragma once

#include <immintrin.h>

#include <array>

#include "format/bytes.h"
#include "format/octet.h"
#include "format/palette.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

// A table for _mm_shuffle_epi8, indexed by code.
using CodeTable = std::array<uint8_t, code_count(8)>;
template <typename Function>
constexpr CodeTable code_table(Function function) {
  CodeTable table{};
  for (uint32_t code = 0; code < table.size(); code++) table[code] = uint8_t(function(code));
  return table;
}
inline __m128i load_table(const CodeTable &table) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i *>(table.data()));
}

constexpr CodeTable kWidths = code_table(code_width), kMinima = code_table(code_minimum);
constexpr CodeTable kCodes = code_table([](uint32_t code) { return code; });

// The codes of a channel's indices, as such a table.
inline __m128i load_palette(const uint8_t *palette, uint32_t index_bits) {
  if (!has_palette(index_bits, 8)) return load_table(kCodes);
  return _mm_cvtsi64_si128(int64_t(spread_octet(load<uint64_t>(palette), palette_entry_bits(8))));
}

}  // namespace
}  // namespace l3::generic
