// The kernels in plain C++.
#pragma once

#include "cpu/generic_decoder.h"
#include "cpu/generic_encoder.h"
#include "cpu/generic_label_map.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

template <typename Sample>
constexpr SampleKernels<Sample> kSampleKernels = {
    .decode_channel = decode_channel<Sample>,
    .decode_label_map = decode_label_map<Sample>,
    .store_tile = store_tile<Sample>,
    .encode_tile = encode_tile<Sample>,
};

}  // namespace
}  // namespace l3::generic
