// CRC-32C (Castagnoli), the format's checksum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace l3 {

// The CRC-32C of `size` bytes; `crc` continues an earlier one. Uses the processor's instruction where there is one.
uint32_t crc32c(const void *data, size_t size, uint32_t crc = 0);

// The table-driven form, for machines without the instruction and as the oracle of the fast one.
uint32_t crc32c_portable(const void *data, size_t size, uint32_t crc = 0);

}  // namespace l3
