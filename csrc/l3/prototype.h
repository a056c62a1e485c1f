// Files of the published prototype ("LLL."; docs/format.md, "Prototype files").
#pragma once

#include "l3/l3.h"

namespace l3 {

bool is_prototype(const uint8_t *data, size_t size);
l3_status peek_prototype(const uint8_t *data, size_t size, l3_info *info, l3_error *error);

// Sets stream->offsets to the table of patch sizes and stream->payload to the patches' data, after checking the sizes' sum.
l3_status open_prototype(l3_stream *stream, l3_error *error);

// Decodes a tile to 64 x 64 interleaved RGB pixels.
l3_status decode_prototype_tile(const l3_stream &stream, uint32_t tile, uint8_t *pixels, l3_error *error);

}  // namespace l3
