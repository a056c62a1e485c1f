// What the operators decoders.l3 for the CPU and for the GPU share: their arguments, and the parsing of a batch by them.
#pragma once

#include <string>
#include <vector>

#include "dali/pipeline/operator/operator.h"
#include "l3/l3.h"
#include "roi.h"

namespace dali_l3 {

class EncodedBatch {
 public:
  struct Sample {
    l3_stream stream;
    l3_rect roi;
  };

  // Reads the operator's arguments. Throws std::invalid_argument when they cannot be used.
  explicit EncodedBatch(const dali::OpSpec &spec);

  // Reads the headers of the files that are a workspace's first input, and describes the output. Throws with the file's name and the reason
  // when one cannot be decoded.
  void Parse(const dali::OpSpec &spec, const dali::Workspace &ws, std::vector<dali::OutputDesc> &outputs);

  const std::vector<Sample> &samples() const { return samples_; }
  bool verify() const { return verify_; }

  // What to decode sample `i` to, given the memory of the output.
  l3_output Output(int i, void *data) const;

 private:
  RoiArguments roi_;
  dali::DALIDataType dtype_;
  l3_color color_;
  l3_sample sample_type_;
  bool verify_;
  std::vector<Sample> samples_;  // of the current batch; a member, so that its memory is not allocated anew for each
};

// Throws what users see when a sample of a batch cannot be decoded.
[[noreturn]] void FailSample(const dali::TensorList<dali::CPUBackend> &input, int sample, const std::string &reason);

}  // namespace dali_l3
