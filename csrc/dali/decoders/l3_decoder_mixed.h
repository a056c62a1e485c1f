// The operator decoders.l3 for the GPU: encoded files in host memory, images in device memory.
#pragma once

#include <memory>
#include <vector>

#include "bridges.h"
#include "dali/pipeline/operator/checkpointing/stateless_operator.h"
#include "encoded_batch.h"
#include "l3/l3_cuda.h"

namespace dali_l3 {

class L3DecoderMixed : public dali::StatelessOperator<dali::MixedBackend> {
 public:
  explicit L3DecoderMixed(const dali::OpSpec &spec);

 protected:
  bool SetupImpl(std::vector<dali::OutputDesc> &outputs, const dali::Workspace &ws) override;
  void RunImpl(dali::Workspace &ws) override;

 private:
  struct Release {
    int device_id;
    void operator()(l3_cuda_decoder *decoder) const;
  };

  // Enqueues the decoding of all samples that can be decoded; `batch_` learns which cannot.
  void Decode(dali::Workspace &ws, dali::TensorList<dali::GPUBackend> &output);

  EncodedBatch batch_;
  int device_id_;
  Threads threads_;
  std::unique_ptr<l3_cuda_decoder, Release> decoder_;  // made for the first batch

  // Of the current batch; members, so that their memory is not allocated anew for each.
  std::vector<l3_cuda_image> images_;
  std::vector<int> numbers_;  // of the images in the batch
  std::vector<l3_error> errors_;
  dali::TensorList<dali::CPUBackend> valid_;
};

}  // namespace dali_l3
