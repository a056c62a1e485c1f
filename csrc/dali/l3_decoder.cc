// decoders.l3: schema, parsing of a batch, and the division of its tiles among DALI's threads.

#include "l3_decoder.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace dali_l3 {
namespace {

using dali::CPUBackend;
using dali::make_string;

// Tiles in a piece: some 100 microseconds of work, so that taking a piece costs nothing beside it and one image still occupies all threads.
constexpr uint32_t kTilesPerPiece = 64;

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

// Bytes of a batch's output from which on it is written past the cache: it would be evicted before anyone reads it, and lines that are
// written past the cache need not be read first. About a core's share of a last-level cache. The size that the system reports is wrong on
// many virtual machines, and batches of 6 MB were seen to gain as much as batches of 100.
constexpr size_t kBypassCacheSize = size_t{4} << 20;

}  // namespace

L3Decoder::L3Decoder(const dali::OpSpec &spec)
    : StatelessOperator(spec),
      roi_(spec),
      dtype_(spec.GetArgument<dali::DALIDataType>("dtype")),
      color_(ToColor(spec.GetArgument<dali::DALIImageType>("output_type"))),
      sample_type_(ToSample(dtype_)),
      options_(spec.GetArgument<bool>("verify") ? L3_VERIFY : 0) {}

bool L3Decoder::SetupImpl(std::vector<dali::OutputDesc> &outputs, const dali::Workspace &ws) {
  const auto &input = ws.Input<CPUBackend>(0);
  const int batch_size = input.num_samples();
  if (input.type() != DALI_UINT8) {
    throw std::invalid_argument(make_string("The input must hold the bytes of encoded files as uint8, not ", input.type()));
  }
  roi_.Acquire(spec_, ws, batch_size);
  samples_.resize(batch_size);
  outputs.resize(1);
  outputs[0].type = dtype_;
  outputs[0].shape.resize(batch_size, 3);
  for (int i = 0; i < batch_size; i++) {
    auto &[stream, roi] = samples_[i];
    l3_error error;
    if (l3_open(input.raw_tensor(i), dali::volume(input.tensor_shape_span(i)), &stream, &error) != L3_OK) Fail(input, i, error.message);
    try {
      roi = roi_.Region(i, stream.info.height, stream.info.width);
    } catch (const std::invalid_argument &e) {
      Fail(input, i, e.what());
    }
    outputs[0].shape.set_tensor_shape(i, dali::TensorShape<3>(roi.height, roi.width, l3_output_channels(&stream.info, color_)));
  }
  return true;
}

void L3Decoder::RunImpl(dali::Workspace &ws) {
  const auto &input = ws.Input<CPUBackend>(0);
  auto &output = ws.Output<CPUBackend>(0);
  output.SetLayout("HWC");
  const bool bypass_cache = output.nbytes() > kBypassCacheSize;

  pieces_.clear();
  for (int i = 0; i < static_cast<int>(samples_.size()); i++) {
    const uint32_t tiles = l3_tile_count(&samples_[i].stream, &samples_[i].roi);
    for (uint32_t first = 0; first < tiles; first += kTilesPerPiece) {
      pieces_.push_back({i, first, std::min(kTilesPerPiece, tiles - first)});
    }
  }

  failed_sample_ = -1;
  std::atomic<size_t> next = 0;
  const auto work = [&](int /*thread*/) {
    for (size_t piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < pieces_.size();) {
      DecodePiece(pieces_[piece], output, bypass_cache);
    }
  };
  auto &threads = ws.GetThreadPool();
  const size_t workers = std::min<size_t>(threads.NumThreads(), pieces_.size());
  for (size_t i = 0; i < workers; i++) threads.AddWork(std::ref(work));
  threads.RunAll();
  if (failed_sample_ >= 0) Fail(input, failed_sample_, failure_.message);
}

void L3Decoder::DecodePiece(const Piece &piece, dali::TensorList<CPUBackend> &output, bool bypass_cache) {
  const auto &[stream, roi] = samples_[piece.sample];
  const size_t pixel_size = size_t{l3_output_channels(&stream.info, color_)} * l3_output_sample_size(&stream.info, sample_type_);
  l3_output destination = {};
  destination.data = output.raw_mutable_tensor(piece.sample);
  destination.row_stride = roi.width * pixel_size;
  destination.color = color_;
  destination.sample = sample_type_;
  destination.bypass_cache = bypass_cache;
  l3_error error;
  if (l3_decode_tiles(&stream, &roi, &destination, options_, piece.first_tile, piece.tile_count, &error) == L3_OK) return;

  std::lock_guard lock(failure_mutex_);
  if (failed_sample_ < 0 || piece.sample < failed_sample_) {
    failed_sample_ = piece.sample;
    failure_ = error;
  }
}

void L3Decoder::Fail(const dali::TensorList<CPUBackend> &input, int sample, const std::string &reason) {
  const auto &source = input.GetMeta(sample).GetSourceInfo();
  throw std::runtime_error(make_string("Failed to decode sample #", sample, " (", source.empty() ? "unnamed" : source, "): ", reason));
}

}  // namespace dali_l3

// DALI's macros paste the schema's name into identifiers and expect to be used inside its namespace.
namespace dali {

DALI_REGISTER_OPERATOR(decoders__L3, dali_l3::L3Decoder, CPU);

DALI_SCHEMA(decoders__L3)
    .DocStr(R"code(Decodes L3 images.

The output is in *HWC* layout; two-dimensional images become ``HxWx1``. Threads share the tiles of all images of a batch, so that a batch of
one large image keeps all of them busy.

A region of interest can be given by the arguments of :meth:`nvidia.dali.fn.decoders.image_crop` or by those of
:meth:`nvidia.dali.fn.decoders.image_slice`, but not by both. Only the tiles that it touches are read. It must not be empty and must lie
inside the image.

Colors and samples are converted as :meth:`nvidia.dali.fn.decoders.image` converts the same pixels stored as PNG.)code")
    .NumInput(1, 3)
    .NumOutput(1)
    .InputDox(0, "data", "1D TensorList of uint8", "Encoded files.")
    .InputDox(1, "anchor", "1D TensorList of float or int",
              R"code(Start of the region along the axes that `axes` or `axis_names` names. Integers are pixels; floats are relative to the
image unless `normalized_anchor` is False.)code")
    .InputDox(2, "shape", "1D TensorList of float or int",
              R"code(Size of the region along the same axes, of the same type. Floats are relative to the image unless `normalized_shape` is
False.)code")
    .InputDevice(1, 3, InputDevice::CPU)
    .AddOptionalArg("output_type",
                    R"code(The color space of the output image.

Gray is repeated for RGB and BGR, alpha is dropped for all but ANY_DATA, which keeps the channels of the file. YCbCr follows
ITU-R BT.601.)code",
                    DALI_RGB)
    .AddOptionalTypeArg("dtype",
                        R"code(Output data type of the image.

Values are scaled to the range of the type: with UINT8, 65535 of a 16-bit image becomes 255; with UINT16 it stays what it is; with FLOAT it
becomes 1.0.)code",
                        DALI_UINT8)
    .AddOptionalArg("verify",
                    R"code(Checks the checksums of the tiles that are decoded, where the file has them. Without it damage in a file may go
unnoticed.)code",
                    true)
    .AddParent("CropAttr")
    .AddParent("SliceAttr")
    .OutputNDim(0, 3)
    .OutputLayout(0, "HWC");

}  // namespace dali
