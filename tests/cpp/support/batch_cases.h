// Images to decode in batches: some part of some file, to memory of some alignment, converted or not.
#pragma once

#include "images.h"

namespace l3 {

// A file, and what is wanted of it.
struct Wanted {
  const Bytes *file;
  l3_rect region;
  l3_color color;
  l3_sample sample;
  uint32_t gap, offset;  // between rows, and from an address that is aligned to 16; in samples
};

// A wanted image with its memory, in which everything but the pixels must stay as it is.
struct Destination {
  explicit Destination(const Wanted &wanted);

  // With the pixels in `at`, a copy of the memory or the memory itself.
  l3_output output(void *at) const;
  l3_output output() { return output(memory.data()); }

  l3_file file;
  Wanted wanted;
  size_t row_stride;
  std::vector<uint64_t> memory;
};

// The file's image, whole and unchanged.
Wanted whole(const Bytes &file);

// Some part of the file, converted or not, to memory of some alignment.
Wanted some(Random &random, const Bytes &file);

Bytes some_file(Random &random, bool checksums = true);

// The file with some bits of its payload flipped.
Bytes damaged(Random &random, Bytes file);

}  // namespace l3
