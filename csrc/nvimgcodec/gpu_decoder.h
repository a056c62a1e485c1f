// Decodes batches of L3 files on the GPU.
#pragma once

#include "common.h"

namespace dali_l3 {

class GpuDecoder : public Component<nvimgcodecDecoderDesc_t> {
 public:
  explicit GpuDecoder(const nvimgcodecFrameworkDesc_t *framework);

 private:
  static nvimgcodecStatus_t Create(void *instance, nvimgcodecDecoder_t *decoder,
                                   const nvimgcodecExecutionParams_t *exec_params, const char *options) noexcept;
};

}  // namespace dali_l3
