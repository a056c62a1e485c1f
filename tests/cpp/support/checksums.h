// Making a damaged file's checksums right again, so that what lies behind them is tested.
#pragma once

#include <cstddef>
#include <cstdint>

namespace l3 {

// Sets the checksums of the tiles, the tables, the metadata and the header as far as these lie within the bytes. What
// claims to be the header is believed; bytes that are no L3 file are left alone.
void repair_checksums(uint8_t *file, size_t size);

// Sets the header's checksum alone.
void repair_header_checksum(uint8_t *file, size_t size);

}  // namespace l3
