// What the groups of a `fast` channel choose from: codes, and palettes of them (docs/format.md, "Profile 2").
#pragma once

#include "format/host_device.h"

namespace l3 {

constexpr uint32_t max_index_bits(uint32_t bits) { return bits == 8 ? 4 : 5; }
constexpr uint32_t code_count(uint32_t bits) { return 2 * bits; }

// A code's field width in bits, and the number to add to its fields, modulo the sample's range.
constexpr uint32_t code_width(uint32_t code) { return (code + 1) / 2; }
constexpr uint32_t code_minimum(uint32_t code) {
  return code == 0 ? 0 : (code % 2 ? 0u : 1u) - (1u << (code_width(code) - 1));
}

// Bits of a palette's entry, a code. Entries follow each other from the lowest bits up.
constexpr uint32_t palette_entry_bits(uint32_t bits) { return bits == 8 ? 4 : 8; }

// Indices of the most bits are codes themselves, without a palette.
constexpr bool has_palette(uint32_t index_bits, uint32_t bits) { return index_bits < max_index_bits(bits); }

// Bytes.
constexpr uint32_t palette_size(uint32_t index_bits, uint32_t bits) {
  return has_palette(index_bits, bits) ? ((palette_entry_bits(bits) << index_bits) + 7) / 8 : 0;
}

// What is wrong with a palette, or null.
L3_HOST_DEVICE const char *check_palette(const uint8_t *palette, uint32_t index_bits, uint32_t bits) {
  // Of 8-bit samples all nibbles are codes; only the one that a palette of one entry leaves must be 0.
  if (bits == 8 && index_bits > 0) return nullptr;
  for (uint32_t i = 0; i < palette_size(index_bits, bits); i++)
    if (palette[i] >= code_count(bits)) return "an unknown code in the palette";
  return nullptr;
}

// The code that an index stands for.
constexpr uint32_t code_of_index(const uint8_t *palette, uint32_t index, uint32_t index_bits, uint32_t bits) {
  if (!has_palette(index_bits, bits)) return index;
  const uint32_t entry_bits = palette_entry_bits(bits), position = index * entry_bits;
  return palette[position / 8] >> position % 8 & ((1u << entry_bits) - 1);
}

// Writes the palette of these codes, one for each index; returns the position after it.
constexpr uint8_t *write_palette(const uint8_t *codes, uint32_t index_bits, uint32_t bits, uint8_t *out) {
  const uint32_t size = palette_size(index_bits, bits), entry_bits = palette_entry_bits(bits);
  for (uint32_t i = 0; i < size; i++) out[i] = 0;
  for (uint32_t index = 0; size && index < 1u << index_bits; index++)
    out[index * entry_bits / 8] |= uint8_t(codes[index] << index * entry_bits % 8);
  return out + size;
}

}  // namespace l3
