// nvCOMP's general-purpose decoders on the pixels of the benchmark's images (nvCOMP 6).
#pragma once

#include "device.h"
#include "images.h"

namespace benchmark {

struct NvcompFigures {
  std::string algorithm;
  std::string
      data;  // "pixels", or "differences": of each sample from that of the pixel to the left, which nothing undoes
  double bytes_in, bytes_out, seconds;
};

// Compresses a batch of 32 images in chunks of 64 KiB, nvCOMP's usual size, times their decompression and checks the
// result. Throws std::runtime_error.
std::vector<NvcompFigures> measure_nvcomp(const std::vector<Image> &images, const Stream &stream, double seconds);

}  // namespace benchmark
