// Bringing bytes into the cache before they are needed.
#pragma once

#include "cpu/kernels.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

inline void prefetch(const uint8_t *bytes, uint32_t size) {
  for (uint32_t i = 0; i < size; i += kCacheLine) __builtin_prefetch(bytes + i);
}

}  // namespace
}  // namespace l3::generic
