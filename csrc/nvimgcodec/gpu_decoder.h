// Decodes batches of L3 files on the GPU.
#pragma once

#include "common.h"

namespace dali_l3 {

// The descriptor points to the decoder: it stays where it is while it is registered.
class GpuDecoder {
 public:
  explicit GpuDecoder(const nvimgcodecFrameworkDesc_t *framework);
  GpuDecoder(const GpuDecoder &) = delete;
  GpuDecoder &operator=(const GpuDecoder &) = delete;
  const nvimgcodecDecoderDesc_t *descriptor() const { return &descriptor_; }

 private:
  static nvimgcodecStatus_t Create(void *instance, nvimgcodecDecoder_t *decoder, const nvimgcodecExecutionParams_t *exec_params,
                                   const char *options) noexcept;

  Log log_;
  nvimgcodecDecoderDesc_t descriptor_;
};

}  // namespace dali_l3
