// Checksums of 32 bits. Both take bytes of any alignment; `crc` continues an earlier sum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace l3 {

// CRC-32C (Castagnoli), the checksum of L3.
uint32_t crc32c(const void *data, size_t size, uint32_t crc = 0);

// CRC-32 of IEEE 802.3, the checksum of PNG (and of zip, gzip and Ethernet).
uint32_t crc32_ieee(const void *data, size_t size, uint32_t crc = 0);

// The table-driven forms, for machines without the instructions that the others use, and as the oracles of these.
uint32_t crc32c_portable(const void *data, size_t size, uint32_t crc = 0);
uint32_t crc32_ieee_portable(const void *data, size_t size, uint32_t crc = 0);

}  // namespace l3
