// What the operators decoders.l3 for the CPU and for the GPU share: their arguments, the parsing of a batch by them,
// and what is done about samples that cannot be decoded.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "dali/pipeline/operator/operator.h"
#include "l3/l3.h"
#include "roi.h"

namespace dali_l3 {

// What the images of a decoder are: HWC, or with `windows` FHWC, as sequences are elsewhere in DALI.
int ImageDimensions(const dali::OpSpec &spec);
dali::TensorLayout ImageLayout(const dali::OpSpec &spec);

// The outputs that a decoder has beside the images: which samples are valid, with on_error="zeros".
int ValidityOutputs(const dali::OpSpec &spec);

// Bytes of a sample's elements.
template <typename Backend>
size_t BytesOf(const dali::TensorList<Backend> &list, int sample) {
  return static_cast<size_t>(dali::volume(list.tensor_shape_span(sample))) * list.type_info().size();
}

class EncodedBatch {
 public:
  struct Sample {
    l3_file file;                  // as parsed; for one whose header or tables cannot be read, what it counts as
    std::vector<l3_rect> regions;  // one, or with `windows` any number
    uint32_t height, width;        // of each region, pixels
    std::string problem;           // why the sample becomes zeros; empty for one that is decoded

    // Bytes from a region to the next in an output.
    size_t RegionStride(const l3_output &output) const { return height * output.row_stride; }
  };

  // Reads the operator's arguments. Throws std::invalid_argument when they cannot be used.
  explicit EncodedBatch(const dali::OpSpec &spec);

  // Reads the headers of the files that are a workspace's first input, and describes the outputs. Throws with the
  // file's name and the reason when one cannot be decoded, unless those become zeros, or when a region is not inside
  // its image.
  void Parse(const dali::OpSpec &spec, const dali::Workspace &ws, std::vector<dali::OutputDesc> &outputs);

  const std::vector<Sample> &samples() const { return samples_; }
  bool verify() const { return verify_; }
  bool zeros() const { return zeros_; }

  // What to decode sample `i` to, given the memory of the output. Its regions lie one behind the other.
  l3_output Output(int i, void *data) const;

  // What is wrong with the tiles of sample `i`: it becomes zeros, or this throws with the file's name and the reason.
  void Fail(const dali::Workspace &ws, int i, const l3_error &error);

  // Reports the samples that become zeros, each file once.
  void WarnOfBroken(const dali::Workspace &ws);

 private:
  void Open(const dali::TensorList<dali::CPUBackend> &input, int i);
  void WarnOfNarrowing(const dali::TensorList<dali::CPUBackend> &input);
  void FindRegions(const dali::TensorList<dali::CPUBackend> &input);
  std::vector<l3_rect> Regions(const dali::TensorList<dali::CPUBackend> &input, int i) const;

  RoiArguments roi_;
  dali::DALIDataType dtype_;
  bool narrows_unasked_;  // and has not warned of that yet
  l3_color color_;
  l3_sample sample_type_;
  bool verify_;
  bool zeros_;
  std::vector<Sample> samples_;  // of the current batch; a member, so that its memory is not allocated anew for each
  std::unordered_set<std::string> reported_;
};

}  // namespace dali_l3
