// Checksums of what a checkpoint compares and does not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "l3/format/crc32.h"

namespace dali_l3::loader {

/** The CRC-32 of what is added. */
class Checksum {
 public:
  void add(const void *data, size_t size) { crc_ = l3::crc32_ieee(data, size, crc_); }
  std::string text() const {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%08x", crc_);
    return digits;
  }

 private:
  uint32_t crc_ = 0;
};

}  // namespace dali_l3::loader
