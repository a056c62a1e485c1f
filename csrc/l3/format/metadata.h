// Metadata: entries of a key and a value between the tables and the payload (docs/format.md, "Metadata").
#pragma once

#include "l3/l3.h"

namespace l3 {

// Refuses entries that the format cannot hold, and sets *area_size to the bytes that the others take.
// L3_ERROR_ARGUMENT: keys of other sizes than 1 to 255 bytes, not in UTF-8, or there twice. L3_ERROR_LIMIT: more than
// L3_MAX_METADATA bytes in all.
l3_status check_metadata(const l3_metadata *entries, size_t count, uint32_t *area_size, l3_error *error);

// Writes entries that have been checked.
void write_metadata(const l3_metadata *entries, size_t count, uint8_t *area);

// Refuses areas that are not a sequence of sound entries whose keys differ.
l3_status check_metadata_area(const uint8_t *area, uint32_t size, l3_error *error);

// Reads the entry at *cursor, which moves to the next one; entry->key is null at the area's end.
l3_status read_metadata_entry(const uint8_t *area, uint32_t size, size_t *cursor, l3_metadata *entry, l3_error *error);

}  // namespace l3
