// Decodes L3 files on the CPU, one call a file; calls may come from any number of threads.
#pragma once

#include "batch_size.h"
#include "common.h"

namespace dali_l3 {

class Decoder : public Component<nvimgcodecDecoderDesc_t> {
 public:
  explicit Decoder(const nvimgcodecFrameworkDesc_t *framework);

 private:
  static nvimgcodecStatus_t Create(void *instance, nvimgcodecDecoder_t *decoder,
                                   const nvimgcodecExecutionParams_t *exec_params, const char *options) noexcept;
  static nvimgcodecStatus_t Destroy(nvimgcodecDecoder_t decoder) noexcept;
  static nvimgcodecProcessingStatus_t CanDecode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t *image,
                                                const nvimgcodecCodeStreamDesc_t *code_stream,
                                                const nvimgcodecDecodeParams_t *params, int thread_idx) noexcept;
  static nvimgcodecStatus_t Decode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t *image,
                                   const nvimgcodecCodeStreamDesc_t *code_stream,
                                   const nvimgcodecDecodeParams_t *params, int thread_idx) noexcept;

  BatchSize batch_size_;
};

}  // namespace dali_l3
