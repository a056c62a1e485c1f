// Encodes images as L3, profile `fast`.
#pragma once

#include "common.h"

namespace dali_l3 {

class Encoder : public Component<nvimgcodecEncoderDesc_t> {
 public:
  explicit Encoder(const nvimgcodecFrameworkDesc_t *framework);

 private:
  static nvimgcodecStatus_t Create(void *instance, nvimgcodecEncoder_t *encoder,
                                   const nvimgcodecExecutionParams_t *exec_params, const char *options) noexcept;
  static nvimgcodecStatus_t Destroy(nvimgcodecEncoder_t encoder) noexcept;
  static nvimgcodecProcessingStatus_t CanEncode(nvimgcodecEncoder_t encoder,
                                                const nvimgcodecCodeStreamDesc_t *code_stream,
                                                const nvimgcodecImageDesc_t *image,
                                                const nvimgcodecEncodeParams_t *params, int thread_idx) noexcept;
  static nvimgcodecStatus_t Encode(nvimgcodecEncoder_t encoder, const nvimgcodecCodeStreamDesc_t *code_stream,
                                   const nvimgcodecImageDesc_t *image, const nvimgcodecEncodeParams_t *params,
                                   int thread_idx) noexcept;
};

}  // namespace dali_l3
