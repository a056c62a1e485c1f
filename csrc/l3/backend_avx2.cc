// TODO.
#include "generic_kernels.h"
#include "fast_encoder.h"

namespace l3 {

const Kernels kAvx2Kernels = {
    "avx2",
    generic::decode_channel<uint8_t>,
    generic::decode_channel<uint16_t>,
    generic::store_tile<uint8_t>,
    generic::store_tile<uint16_t>,
    generic::encode_tile<uint8_t>,
    generic::encode_tile<uint16_t>,
    generic::copy_rows,
};

}  // namespace l3
