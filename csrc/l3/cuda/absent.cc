// The decoder for CUDA devices in a build without it (DALI_L3_CUDA=OFF): what calls it links, and is told so.
#include "format/error.h"
#include "l3/l3_cuda.h"

namespace {

l3_status refuse(l3_error *error) {
  return l3::fail(error, L3_ERROR_UNSUPPORTED, "this build has no decoder for CUDA devices (DALI_L3_CUDA=OFF)");
}

}  // namespace

extern "C" l3_status l3_cuda_create(l3_cuda_decoder **, l3_error *error) { return refuse(error); }

extern "C" void l3_cuda_destroy(l3_cuda_decoder *) {}

extern "C" l3_status l3_cuda_decode(l3_cuda_decoder *, const l3_cuda_image *, size_t, const l3_cuda_options *,
                                    l3_cuda_stream, size_t *, l3_error *error) {
  return refuse(error);
}

extern "C" l3_status l3_cuda_get_device(int *, l3_error *error) { return refuse(error); }

extern "C" l3_status l3_cuda_set_device(int, l3_error *error) { return refuse(error); }

extern "C" l3_status l3_cuda_clear(void *, size_t, l3_cuda_stream, l3_error *error) { return refuse(error); }
