// What stands in a body for the groups of a channel: indices by their codes, and octets.
#pragma once

#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

#include "cpu/code_sets.h"
#include "cpu/quartered_plane.h"
#include "format/octet.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

// A byte for each code.
template <typename Sample>
struct alignas(16) CodeBytes {
  uint8_t bytes[code_count(8 * sizeof(Sample))];
};

// A byte for each group of a channel, row pair by row pair.
constexpr uint32_t kMaxGroups = L3_TILE / 2 * kQuarter;
using GroupBytes = uint8_t[kMaxGroups];

// The bytes that stand for the codes of the first `count` groups.
template <typename Sample>
inline void look_up(const CodeBytes<Sample> &table, const GroupBytes &codes, uint32_t count, GroupBytes &out) {
  for (uint32_t i = 0; i < count; i += kQuarter) {
#if defined(__SSE4_1__)
    const auto load = [](const uint8_t *bytes) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(bytes)); };
    const __m128i indices = load(codes + i);
    __m128i found = _mm_shuffle_epi8(load(table.bytes), indices);
    if constexpr (sizeof(Sample) == 2)  // bit 4 chooses the half of the table
      found = _mm_blendv_epi8(found, _mm_shuffle_epi8(load(table.bytes + 16), indices), _mm_slli_epi16(indices, 3));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out + i), found);
#else
    for (uint32_t g = 0; g < kQuarter; g++) out[i + g] = table.bytes[codes[i + g]];
#endif
  }
}

// What is written for the groups of each code.
template <typename Sample>
struct Symbols {
  CodeBytes<Sample> index, width, minimum_low, minimum_high;

  // `palette` holds the codes of the indices, as a set; in the order of the codes, unless it is absent.
  Symbols(uint32_t palette, uint32_t index_bits) {
    constexpr uint32_t bits = 8 * sizeof(Sample);
    for (uint32_t tight = 0; tight < code_count(bits); tight++) {
      const uint32_t code = cover_of(palette, tight) % code_count(bits);  // codes that do not occur may have none
      const uint32_t minimum = code_minimum(code);
      index.bytes[tight] = uint8_t(has_palette(index_bits, bits) ? popcount(palette & low_bits(code)) : code);
      width.bytes[tight] = uint8_t(code_width(code));
      minimum_low.bytes[tight] = uint8_t(minimum);
      minimum_high.bytes[tight] = uint8_t(minimum >> 8);
    }
  }
};

// Byte k of every group of a channel.
using GroupFields = uint8_t[kGroup][kMaxGroups];

// Packs the octets of `count` groups from fields of `widths` bits, at most 8.
inline void pack_octets(const GroupFields &fields, const uint8_t *widths, uint32_t count, uint64_t *__restrict octets) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t width = widths[i];
    const uint16_t factor = uint16_t(1u << width);
    const auto two = [&](uint32_t k) { return uint16_t(fields[k][i] | fields[k + 1][i] * factor); };
    const auto four = [&](uint32_t k) { return two(k) | uint32_t(two(k + 2)) << 2 * width; };
    octets[i] = four(0) | uint64_t(four(4)) << 4 * width;
  }
}

// The octets of a channel: of 8 bits, or of 16 bits their low bytes, and the bits above.
template <typename Sample>
class Octets {
 public:
  // Of `count` groups, whole row pairs. The residuals of each stand one after the other, in the quarters of the upper
  // row and of the lower.
  Octets(const Sample *residuals, const GroupBytes &codes, uint32_t count, const Symbols<Sample> &symbols) {
    look_up(symbols.width, codes, count, widths_);
    GroupBytes minima, high_minima;
    look_up(symbols.minimum_low, codes, count, minima);
    if constexpr (kWide) look_up(symbols.minimum_high, codes, count, high_minima);
    alignas(64) GroupFields fields, high_fields;
    for (uint32_t first = 0; first < count; first += kQuarter)
      for (uint32_t k = 0; k < kGroup; k++, residuals += kQuarter)
        for (uint32_t g = 0; g < kQuarter; g++) {
          const uint32_t i = first + g;
          if constexpr (kWide) {
            const Sample field = Sample(residuals[g] - (minima[i] | high_minima[i] << 8));
            fields[k][i] = uint8_t(field);
            high_fields[k][i] = uint8_t(field >> 8);
          } else {
            fields[k][i] = uint8_t(residuals[g] - minima[i]);
          }
        }
    if constexpr (kWide) {
      GroupBytes high_widths;
      for (uint32_t i = 0; i < count; i++) {
        low_widths_[i] = std::min(widths_[i], uint8_t(8));
        high_widths[i] = uint8_t(widths_[i] - low_widths_[i]);
      }
      pack_octets(fields, low_widths_, count, low_);
      pack_octets(high_fields, high_widths, count, high_);
    } else {
      pack_octets(fields, widths_, count, low_);
    }
  }

  // Writes those of groups [begin, end); returns the position after them, past which up to eight bytes are written.
  uint8_t *write(uint32_t begin, uint32_t end, uint8_t *out) const {
    for (uint32_t i = begin; i < end; i++) {
      store(out, low_[i]);
      if constexpr (kWide) store(out + low_widths_[i], high_[i]);
      out += widths_[i];
    }
    return out;
  }

 private:
  static constexpr bool kWide = sizeof(Sample) == 2;

  GroupBytes widths_, low_widths_;
  uint64_t low_[kMaxGroups], high_[kMaxGroups];
};

}  // namespace
}  // namespace l3::generic
