// A stand-in for the decoder of the published prototype (Bae et al., "L3: Accelerator-Friendly Lossless Image Format
// for High-Resolution, High-Throughput DNN Training", ECCV 2022), as far as it decides the speed: its bit stream, and
// its mapping to the GPU.
//
// A block of 64 threads decodes a patch of one channel, a thread a column, row after row; a launch decodes an image;
// input and output are allocated, copied and freed image by image.
#pragma once

#include "device.h"
#include "images.h"

namespace benchmark {

// A prototype file (docs/format.md, "Prototype files") of the image's part that multiples of 64 pixels cover. Rows that
// the prototype's own encoder would lose, those whose residuals span more than 127, get 8 bits a value.
struct PrototypeImage {
  explicit PrototypeImage(const Image &image);

  uint32_t width, height;  // pixels
  Bytes file;
  std::vector<uint32_t> offsets;  // of the patches, from the payload's start
  Bytes payload;                  // the patches' data, and bytes that may be read after them

  size_t pixel_bytes() const { return size_t{3} * width * height; }
};

// Enqueues the decoding of an image whose offsets and payload are in device memory, to interleaved RGB.
void launch_published(const PrototypeImage &image, const uint32_t *offsets, const uint8_t *payload, uint8_t *out,
                      cudaStream_t stream);

// Decodes an image as the prototype does, from host memory to host memory.
void decode_as_published(const PrototypeImage &image, uint8_t *out, const Stream &stream);

}  // namespace benchmark
