// Unaligned little-endian access to bytes. Every supported host is little-endian, so these compile to single moves.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "format/host_device.h"

namespace l3 {

static_assert(std::endian::native == std::endian::little, "the codec reads and writes its integers in host order");

template <typename T>
L3_HOST_DEVICE T load(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <typename T>
L3_HOST_DEVICE void store(uint8_t *bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

}  // namespace l3
