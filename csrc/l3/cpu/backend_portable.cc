// The back end for any machine.
#include "cpu/generic_decoder.h"
#include "cpu/generic_encoder.h"

namespace l3 {

const Kernels kPortableKernels = {
    "portable",
    generic::decode_channel<uint8_t>,
    generic::decode_channel<uint16_t>,
    generic::store_tile<uint8_t>,
    generic::store_tile<uint16_t>,
    generic::encode_tile<uint8_t>,
    generic::encode_tile<uint16_t>,
    generic::copy_rows,
    nullptr,
};

}  // namespace l3
