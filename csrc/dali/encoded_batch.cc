// Arguments and headers of a batch.

#include "encoded_batch.h"

#include <stdexcept>

namespace dali_l3 {
namespace {

using dali::CPUBackend;
using dali::make_string;

l3_color ToColor(dali::DALIImageType type) {
  switch (type) {
    case dali::DALI_RGB: return L3_COLOR_RGB;
    case dali::DALI_BGR: return L3_COLOR_BGR;
    case dali::DALI_GRAY: return L3_COLOR_GRAY;
    case dali::DALI_YCbCr: return L3_COLOR_YCBCR;
    case dali::DALI_ANY_DATA: return L3_COLOR_NATIVE;
  }
  throw std::invalid_argument(make_string("`output_type` must be RGB, BGR, GRAY, YCbCr or ANY_DATA, not ", static_cast<int>(type)));
}

l3_sample ToSample(dali::DALIDataType type) {
  switch (type) {
    case DALI_UINT8: return L3_SAMPLE_U8;
    case DALI_INT8: return L3_SAMPLE_I8;
    case DALI_UINT16: return L3_SAMPLE_U16;
    case DALI_INT16: return L3_SAMPLE_I16;
    case DALI_UINT32: return L3_SAMPLE_U32;
    case DALI_INT32: return L3_SAMPLE_I32;
    case DALI_FLOAT: return L3_SAMPLE_F32;
    default: throw std::invalid_argument(make_string("`dtype` must be UINT8, INT8, UINT16, INT16, UINT32, INT32 or FLOAT, not ", type));
  }
}

}  // namespace

EncodedBatch::EncodedBatch(const dali::OpSpec &spec)
    : roi_(spec),
      dtype_(spec.GetArgument<dali::DALIDataType>("dtype")),
      color_(ToColor(spec.GetArgument<dali::DALIImageType>("output_type"))),
      sample_type_(ToSample(dtype_)),
      verify_(spec.GetArgument<bool>("verify")) {}

void EncodedBatch::Parse(const dali::OpSpec &spec, const dali::Workspace &ws, std::vector<dali::OutputDesc> &outputs) {
  const auto &input = ws.Input<CPUBackend>(0);
  const int batch_size = input.num_samples();
  if (input.type() != DALI_UINT8) {
    throw std::invalid_argument(make_string("The input must hold the bytes of encoded files as uint8, not ", input.type()));
  }
  roi_.Acquire(spec, ws, batch_size);
  samples_.resize(batch_size);
  outputs.resize(1);
  outputs[0].type = dtype_;
  outputs[0].shape.resize(batch_size, 3);
  for (int i = 0; i < batch_size; i++) {
    auto &[stream, roi] = samples_[i];
    l3_error error;
    const auto size = dali::volume(input.tensor_shape_span(i));
    if (l3_open(input.raw_tensor(i), size, &stream, &error) != L3_OK) FailSample(input, i, error.message);
    try {
      roi = roi_.Region(i, stream.info.height, stream.info.width);
    } catch (const std::invalid_argument &e) {
      FailSample(input, i, e.what());
    }
    outputs[0].shape.set_tensor_shape(i, dali::TensorShape<3>(roi.height, roi.width, l3_output_channels(&stream.info, color_)));
  }
}

l3_output EncodedBatch::Output(int i, void *data) const {
  const auto &[stream, roi] = samples_[i];
  l3_output output = {};
  output.data = data;
  output.row_stride = size_t{roi.width} * l3_output_channels(&stream.info, color_) * l3_output_sample_size(&stream.info, sample_type_);
  output.color = color_;
  output.sample = sample_type_;
  return output;
}

void FailSample(const dali::TensorList<CPUBackend> &input, int sample, const std::string &reason) {
  const auto &source = input.GetMeta(sample).GetSourceInfo();
  throw std::runtime_error(make_string("Failed to decode sample #", sample, " (", source.empty() ? "unnamed" : source, "): ", reason));
}

}  // namespace dali_l3
