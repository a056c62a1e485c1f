// Arguments and headers of a batch.

#include "encoded_batch.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string_view>

#include "bridges.h"
#include "loader/dataset/file_format.h"
#include "loader/dataset/printable.h"

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
  throw std::invalid_argument(
      make_string("`output_type` must be RGB, BGR, GRAY, YCbCr or ANY_DATA, not ", static_cast<int>(type)));
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
    case DALI_FLOAT16: return L3_SAMPLE_F16;
    default:
      throw std::invalid_argument(
          make_string("`dtype` must be UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT or FLOAT16, not ", type));
  }
}

bool ParseOnError(const dali::OpSpec &spec) {
  const auto on_error = spec.GetArgument<std::string>("on_error");
  if (on_error != "raise" && on_error != "zeros")
    throw std::invalid_argument("`on_error` must be \"raise\" or \"zeros\", not \"" + on_error + "\"");
  return on_error == "zeros";
}

std::string NameOf(const dali::TensorList<CPUBackend> &input, int sample) {
  const auto &source = input.GetMeta(sample).GetSourceInfo();
  return source.empty() ? "unnamed" : loader::printable(source);
}

[[noreturn]] void FailSample(const dali::TensorList<CPUBackend> &input, int sample, const std::string &reason) {
  throw std::runtime_error(
      make_string("Failed to decode sample #", sample, " (", NameOf(input, sample), "): ", reason));
}

// What is wrong with a file that does not open. Where DALI's own decoder takes such files, it says so.
std::string Problem(std::span<const uint8_t> file, const l3_error &error) {
  static constexpr std::string_view kOthers[] = {"PNG", "JPEG", "JPEG 2000", "TIFF", "WebP", "BMP", "PNM"};
  if (error.status != L3_ERROR_SIGNATURE) return error.message;
  const char *const name = loader::sniffed_name(file);
  if (!name || std::ranges::find(kOthers, name) == std::end(kOthers)) return error.message;
  return make_string("not an L3 file but ", name, ": use ", kImageDecoder, ", which decodes both");
}

l3_info OnePixel() {
  l3_info info = {};
  info.width = info.height = info.channels = 1;
  info.bits = 8;
  return info;
}

// Whether a broken file tells the size that its image had. A header alone may claim anything: it is believed as far as
// the file is long enough for the image's table of tiles.
bool HasPlausibleHeader(const uint8_t *data, size_t size, l3_info *info) {
  return l3_peek(data, size, info, nullptr) == L3_OK && uint64_t{info->tiles_x} * info->tiles_y * 4 <= size;
}

}  // namespace

int ImageDimensions(const dali::OpSpec &spec) { return spec.ArgumentDefined("windows") ? 4 : 3; }

dali::TensorLayout ImageLayout(const dali::OpSpec &spec) { return spec.ArgumentDefined("windows") ? "FHWC" : "HWC"; }

int ValidityOutputs(const dali::OpSpec &spec) { return ParseOnError(spec) ? 1 : 0; }

EncodedBatch::EncodedBatch(const dali::OpSpec &spec)
    : roi_(spec),
      dtype_(spec.GetArgument<dali::DALIDataType>("dtype")),
      narrows_unasked_(!spec.HasArgument("dtype")),
      color_(ToColor(spec.GetArgument<dali::DALIImageType>("output_type"))),
      sample_type_(ToSample(dtype_)),
      verify_(spec.GetArgument<bool>("verify")),
      zeros_(ParseOnError(spec)) {}

void EncodedBatch::Parse(const dali::OpSpec &spec, const dali::Workspace &ws, std::vector<dali::OutputDesc> &outputs) {
  const auto &input = ws.Input<CPUBackend>(0);
  const int batch_size = input.num_samples();
  if (input.type() != DALI_UINT8) {
    throw std::invalid_argument(
        make_string("The input must hold the bytes of encoded files as uint8, not ", input.type()));
  }
  roi_.Acquire(spec, ws, batch_size);
  samples_.resize(batch_size);
  for (int i = 0; i < batch_size; i++) Open(input, i);
  if (narrows_unasked_) WarnOfNarrowing(input);

  // A broken file that does not tell its size counts as an image like the others, which suits the operators that
  // follow.
  const auto good =
      std::find_if(samples_.begin(), samples_.end(), [](const Sample &sample) { return sample.problem.empty(); });
  const l3_info usual = good == samples_.end() ? OnePixel() : good->file.info;
  for (Sample &sample : samples_)
    if (sample.file.info.width == 0) sample.file.info = usual;

  outputs.resize(1 + ValidityOutputs(spec));
  outputs[0].type = dtype_;
  FindRegions(input);
  outputs[0].shape.resize(batch_size, ImageDimensions(spec));
  for (int i = 0; i < batch_size; i++) {
    const Sample &sample = samples_[i];
    const dali::TensorShape<3> image(sample.height, sample.width, l3_output_channels(&sample.file.info, color_));
    if (roi_.has_windows())
      outputs[0].shape.set_tensor_shape(i, shape_cat(static_cast<int64_t>(sample.regions.size()), image));
    else
      outputs[0].shape.set_tensor_shape(i, image);
  }
  if (zeros_) outputs[1] = {dali::uniform_list_shape(batch_size, dali::TensorShape<0>()), DALI_BOOL};
}

void EncodedBatch::Open(const dali::TensorList<CPUBackend> &input, int i) {
  auto &[file, regions, height, width, problem] = samples_[i];
  const uint8_t *const data = input.tensor<uint8_t>(i);
  const auto size = dali::volume(input.tensor_shape_span(i));
  l3_error error;
  problem.clear();
  if (l3_open(data, size, &file, &error) == L3_OK) return;
  problem = Problem({data, static_cast<size_t>(size)}, error);
  if (!zeros_) FailSample(input, i, problem);
  file = {};
  if (!HasPlausibleHeader(data, size, &file.info)) file.info = {};  // of width 0
}

void EncodedBatch::WarnOfNarrowing(const dali::TensorList<CPUBackend> &input) {
  const auto deep =
      std::find_if(samples_.begin(), samples_.end(), [](const Sample &sample) { return sample.file.info.bits == 16; });
  if (deep == samples_.end()) return;
  narrows_unasked_ = false;
  DALI_WARN("decoders.l3: ", NameOf(input, static_cast<int>(deep - samples_.begin())),
            " has 16 bits, of which dtype=UINT8, the default, keeps 8. Give dtype=types.UINT16 to keep all, or "
            "dtype=types.UINT8 to keep this from being said");
}

void EncodedBatch::FindRegions(const dali::TensorList<CPUBackend> &input) {
  for (int i = 0; i < static_cast<int>(samples_.size()); i++) samples_[i].regions = Regions(input, i);
  // Samples without windows count as having some of the size of the first that there is.
  const auto some = std::find_if(samples_.begin(), samples_.end(), [](const Sample &s) { return !s.regions.empty(); });
  const l3_rect usual = some == samples_.end() ? l3_rect{} : some->regions[0];
  for (Sample &sample : samples_) {
    const l3_rect &region = sample.regions.empty() ? usual : sample.regions[0];
    sample.height = region.height;
    sample.width = region.width;
  }
}

std::vector<l3_rect> EncodedBatch::Regions(const dali::TensorList<CPUBackend> &input, int i) const {
  const Sample &sample = samples_[i];
  try {
    return roi_.Regions(i, sample.file.info.height, sample.file.info.width);
  } catch (const std::invalid_argument &e) {
    if (sample.problem.empty()) FailSample(input, i, e.what());
  }
  return roi_.RegionsOfNoImage(i);
}

l3_output EncodedBatch::Output(int i, void *data) const {
  const Sample &sample = samples_[i];
  const l3_info &info = sample.file.info;
  l3_output output = {};
  output.data = data;
  output.row_stride =
      size_t{sample.width} * l3_output_channels(&info, color_) * l3_output_sample_size(&info, sample_type_);
  output.color = color_;
  output.sample = sample_type_;
  return output;
}

void EncodedBatch::Fail(const dali::Workspace &ws, int i, const l3_error &error) {
  // All else that can be wrong with a tile is not the file's fault.
  const bool is_broken = error.status == L3_ERROR_CORRUPT || error.status == L3_ERROR_CHECKSUM;
  if (!zeros_ || !is_broken) FailSample(ws.Input<CPUBackend>(0), i, error.message);
  samples_[i].problem = error.message;
}

void EncodedBatch::WarnOfBroken(const dali::Workspace &ws) {
  for (int i = 0; i < static_cast<int>(samples_.size()); i++) {
    if (samples_[i].problem.empty()) continue;
    const std::string text = NameOf(ws.Input<CPUBackend>(0), i) + ": " + samples_[i].problem;
    if (reported_.insert(text).second) DALI_WARN("decoders.l3 gives zeros for ", text);
  }
}

}  // namespace dali_l3
