// The back end for any machine.
#include "cpu/generic_kernels.h"

namespace l3 {

const Kernels kPortableKernels = {
    .name = "portable",
    .supported = [] { return true; },
    .of_8_bits = generic::kSampleKernels<uint8_t>,
    .of_16_bits = generic::kSampleKernels<uint16_t>,
    .copy_rows = generic::copy_rows,
    .copy_rows_uncached = nullptr,
};

}  // namespace l3
