// What the framework asks of a decoder, in the codec core's terms.
#pragma once

#include "common.h"
#include "l3/l3.h"

namespace dali_l3 {

struct DecodeRequest {
  l3_file file;
  l3_rect region;
  l3_output output;
};

// Whether a request could be met, by what it says of file and image alone.
nvimgcodecProcessingStatus_t CheckRequest(const nvimgcodecImageInfo_t &request,
                                          const nvimgcodecCodeStreamDesc_t *code_stream);

// Reads the file's header and the request, whose buffer must be of kind `kind`. `bytes` are the file's. Throws
// std::runtime_error with the reason when the file is broken or does not fit the request.
DecodeRequest ParseRequest(const nvimgcodecImageInfo_t &image, const nvimgcodecCodeStreamDesc_t *code_stream,
                           const StreamBytes &bytes, nvimgcodecImageBufferKind_t kind);

}  // namespace dali_l3
