// Whether the decoder for the GPU gives what the one for the CPU does.
#pragma once

#include "images.h"

namespace benchmark {

// Decodes images of every profile, depth and number of channels, label maps and a prototype file among them, whole and
// in part, unchanged and converted, to rows and addresses of every alignment, in batches that grow and shrink, on two
// streams; and has a broken file refused. `image` lends the pixels. Returns how many images were decoded. Throws
// std::runtime_error where a byte differs from the CPU's, or one beside the pixels was touched.
size_t check_decoder(const Image &image);

}  // namespace benchmark
