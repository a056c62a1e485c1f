/* Decoding batches of L3 images on a CUDA device: one copy and one launch per kind of tile for a whole batch.
 *
 * Headers, tables and tiles are validated on the host before anything is launched: a file that l3_decode refuses is
 * refused here, with the same status and message. On request, the host also checks the tile checksums of files that
 * have them, while it gathers the bytes.
 */
#ifndef L3_L3_CUDA_H_
#define L3_L3_CUDA_H_

#include "l3/l3.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The same type as cudaStream_t. */
typedef struct CUstream_st *l3_cuda_stream;

/** An image of a batch. */
typedef struct l3_cuda_image {
  l3_file file;     /**< from l3_open; its bytes are read during the call only */
  l3_rect region;   /**< inside the image; the whole image is {0, 0, width, height} */
  l3_output output; /**< data is device memory; row_stride, at most 1 GiB, and data are aligned to a sample;
                       bypass_cache is ignored */
} l3_cuda_image;

/**
 * Calls body(argument, i) for i in 0..count-1, in any order, possibly from several threads, and returns when all are
 * done. `body` does not throw.
 */
typedef void (*l3_parallel_for)(void *context, size_t count, void (*body)(void *argument, size_t index),
                                void *argument);

/** How to decode a batch. */
typedef struct l3_cuda_options {
  uint32_t verify;          /**< 1: check the checksums of the tiles that are decoded */
  l3_parallel_for parallel; /**< gathers the images' bytes; NULL: one after the other on the calling thread */
  void *parallel_context;
  l3_error *errors; /**< NULL: a broken image fails the batch. Else one error per image: what is wrong with its tiles.
                       Broken images are left out, their outputs stay untouched, and the others are decoded */
} l3_cuda_options;

/** A decoder for a device. */
typedef struct l3_cuda_decoder l3_cuda_decoder;

/**
 * A decoder for the current device. It owns two pinned and two device buffers that grow with the largest batch seen
 * and are used in turn, so that a batch can be gathered while the one before is being copied; nothing is allocated in
 * steady state. A decoder serves one thread at a time. L3_ERROR_UNSUPPORTED: there is no device, or none that this
 * build can use.
 */
L3_API l3_status l3_cuda_create(l3_cuda_decoder **decoder, l3_error *error);

/** Waits for the decoder's work and releases it. NULL is allowed. */
L3_API void l3_cuda_destroy(l3_cuda_decoder *decoder);

/**
 * Enqueues the decoding of `count` images on `stream`, which is one of the decoder's device, and returns without
 * waiting for it. On failure ``*failed`` is the number of the image at fault, and nothing was enqueued; or it is
 * `count`, and what the outputs will hold is undefined.
 */
L3_API l3_status l3_cuda_decode(l3_cuda_decoder *decoder, const l3_cuda_image *images, size_t count,
                                const l3_cuda_options *options, l3_cuda_stream stream, size_t *failed, l3_error *error);

/** The number of this thread's current device, and its change: cudaGetDevice and cudaSetDevice of the decoder's
 * runtime. */
L3_API l3_status l3_cuda_get_device(int *device, l3_error *error);
L3_API l3_status l3_cuda_set_device(int device, l3_error *error);

/** Enqueues on `stream`, which is one of the current device, the setting of `size` bytes of device memory to zero. */
L3_API l3_status l3_cuda_clear(void *data, size_t size, l3_cuda_stream stream, l3_error *error);

#ifdef __cplusplus
}
#endif
#endif /* L3_L3_CUDA_H_ */
