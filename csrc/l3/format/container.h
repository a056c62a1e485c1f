// The container: header, tables and where they stand in the file (docs/format.md, "Container").
#pragma once

#include "l3/l3.h"

namespace l3 {

constexpr uint8_t kSignature[8] = {0x89, 'L', '3', 'I', '\r', '\n', 0x1A, '\n'};
constexpr uint8_t kVersionMajor = 1, kVersionMinor = 0;
constexpr uint32_t kTileExponent = 6;
static_assert(1 << kTileExponent == L3_TILE);
constexpr uint32_t kTrailerSize = 16;
constexpr uint64_t kMaxPayload = UINT32_MAX & ~3u;

// Positions from the start of the file, in bytes.
struct Layout {
  uint64_t offsets, checksums, metadata, payload, end;
};
Layout layout_of(const l3_info &info, uint32_t header_size = L3_HEADER_SIZE);

// Refuses shapes that the format cannot hold. Sets tiles_x and tiles_y.
l3_status check_shape(l3_info *info, l3_error *error);

// What the header of a file that is not the prototype's says, and the file's parts: l3_peek and l3_open for these.
l3_status peek_container(const uint8_t *bytes, size_t size, l3_info *info, l3_error *error);
l3_status open_container(l3_file *file, l3_error *error);

// Writes the header of a finished file, whose tables, metadata and payload are in place. `info.has_checksums` must
// match the tables.
void write_header(const l3_info &info, uint8_t *file);

constexpr uint32_t aligned4(uint32_t size) { return (size + 3) & ~3u; }

}  // namespace l3
