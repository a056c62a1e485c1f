// Bytes of a file, whether it is open or in memory, and the integers in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

namespace dali_l3::loader {

/** Gives the bytes of a file from an offset on; fewer than asked for only at the file's end. */
using ReadAt = std::function<size_t(uint64_t offset, std::span<uint8_t> bytes)>;

/** Reads from memory, which must outlive it. */
inline ReadAt read_at(std::span<const uint8_t> file) {
  return [file](uint64_t offset, std::span<uint8_t> bytes) {
    const auto rest = file.subspan(std::min<uint64_t>(offset, file.size()));
    const size_t size = std::min(rest.size(), bytes.size());
    std::copy_n(rest.begin(), size, bytes.begin());
    return size;
  };
}

/** An integer of up to eight bytes, the least significant first. */
inline uint64_t little_endian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

/** The same, the most significant byte first. */
inline uint64_t big_endian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (const uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

}  // namespace dali_l3::loader
