// decoders.l3: schema, and the division of a batch's tiles among DALI's threads.

#include "l3_decoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "bridges.h"

namespace dali_l3 {
namespace {

using dali::CPUBackend;

// Tiles in a piece: some 100 microseconds of work, so that taking a piece costs nothing beside it and one image still
// occupies all threads.
constexpr size_t kTilesPerPiece = 64;

}  // namespace

L3Decoder::L3Decoder(const dali::OpSpec &spec) : StatelessOperator(spec), batch_(spec) {}

bool L3Decoder::SetupImpl(std::vector<dali::OutputDesc> &outputs, const dali::Workspace &ws) {
  batch_.Parse(spec_, ws, outputs);
  return true;
}

void L3Decoder::RunImpl(dali::Workspace &ws) {
  auto &output = ws.Output<CPUBackend>(0);
  output.SetLayout(ImageLayout(spec_));
  Decode(ws, output);
  for (const auto &[sample, failure] : failures_) batch_.Fail(ws, sample, failure.error);
  batch_.WarnOfBroken(ws);

  const auto &samples = batch_.samples();
  for (int i = 0; i < static_cast<int>(samples.size()); i++) {
    if (!samples[i].problem.empty()) std::memset(output.raw_mutable_tensor(i), 0, BytesOf(output, i));
    if (ws.NumOutput() > 1) *ws.Output<CPUBackend>(1).mutable_tensor<bool>(i) = samples[i].problem.empty();
  }
}

void L3Decoder::PlanPieces() {
  tiles_.clear();
  pieces_.clear();
  for (int i = 0; i < static_cast<int>(batch_.samples().size()); i++) {
    const auto &sample = batch_.samples()[i];
    if (!sample.problem.empty()) continue;
    const auto list = [&](l3_region_tile *tiles) {
      return l3_list_region_tiles(&sample.file, sample.regions.data(), sample.regions.size(), tiles);
    };
    size_t first = tiles_.size();
    tiles_.resize(first + list(nullptr));
    list(tiles_.data() + first);
    while (first < tiles_.size()) {
      size_t end = std::min(first + kTilesPerPiece, tiles_.size());
      while (end < tiles_.size() && tiles_[end].tile == tiles_[end - 1].tile) end++;  // it is decoded once
      pieces_.push_back({i, first, end - first});
      first = end;
    }
  }
}

void L3Decoder::Decode(dali::Workspace &ws, dali::TensorList<CPUBackend> &output) {
  const bool bypass_cache = output.nbytes() >= L3_BYPASS_CACHE_SIZE;
  failures_.clear();
  PlanPieces();

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
}

void L3Decoder::DecodePiece(const Piece &piece, dali::TensorList<CPUBackend> &output, bool bypass_cache) {
  const auto &sample = batch_.samples()[piece.sample];
  l3_output destination = batch_.Output(piece.sample, output.raw_mutable_tensor(piece.sample));
  destination.bypass_cache = bypass_cache;
  const uint32_t options = batch_.verify() ? L3_VERIFY : 0;
  l3_error error;
  if (l3_decode_region_tiles(&sample.file, sample.regions.data(), &destination, sample.RegionStride(destination),
                             options, &tiles_[piece.first_tile], piece.tiles, &error) == L3_OK)
    return;

  std::lock_guard lock(failures_mutex_);
  const auto [failure, is_first] = failures_.try_emplace(piece.sample, Failure{piece.first_tile, error});
  if (!is_first && piece.first_tile < failure->second.first_tile) failure->second = {piece.first_tile, error};
}

}  // namespace dali_l3

// DALI's macros paste the schema's name into identifiers and expect to be used inside its namespace.
namespace dali {

DALI_REGISTER_OPERATOR(decoders__L3, dali_l3::L3Decoder, CPU);

DALI_SCHEMA(dali_l3__DecoderOutputs) << dali_l3::OutputNDim(0, dali_l3::ImageDimensions)
                                     << dali_l3::OutputLayout(0, dali_l3::ImageLayout) << dali_l3::OutputNDim(1, 0)
                                     << dali_l3::OutputDType(1, DALI_BOOL);

DALI_SCHEMA(decoders__L3)
    .DocStr(R"code(Decodes L3 images.

The output is in *HWC* layout, or with `windows` in *FHWC*; two-dimensional images become ``HxWx1``. With the "cpu" device, threads share
the tiles of all images of a batch, so that a batch of one large image keeps all of them busy. With the "mixed" device, a batch is copied to
the GPU and decoded there as one; threads check and gather its bytes.

A region of interest can be given by the arguments of :meth:`nvidia.dali.fn.decoders.image_crop` or by those of
:meth:`nvidia.dali.fn.decoders.image_slice`, and several regions by `windows`, but only in one of these ways. Only the tiles that they touch
are read. A region must not be empty and must lie inside the image.

Colors and samples are converted as :meth:`nvidia.dali.fn.decoders.image` converts the same pixels stored as PNG.)code")
    .NumInput(1, 3)
    .NumOutput(1)
    .AdditionalOutputsFn(dali_l3::ValidityOutputs)
    .InputDox(0, "data", "1D TensorList of uint8", "Encoded files.")
    .InputDox(
        1, "anchor", "1D TensorList of float or int",
        R"code(Start of the region along the axes that `axes` or `axis_names` names. Integers are pixels; floats are relative to the
image unless `normalized_anchor` is False.)code")
    .InputDox(
        2, "shape", "1D TensorList of float or int",
        R"code(Size of the region along the same axes, of the same type. Floats are relative to the image unless `normalized_shape` is
False.)code")
    .InputDevice(1, 3, InputDevice::CPU)
    .AddOptionalArg<std::vector<int>>(
        "windows",
        R"code(Several regions of each image, as rows of *y*, *x*, *height* and *width* in pixels: a tensor of int32 or int64 of the shape
``(N, 4)``, or a list of integers, four for each region, that all samples share.

The output is in *FHWC* layout, a frame for each region. The regions of a sample must be of one size; their number may differ from sample to
sample, and may be 0. A tile that several regions touch is decoded once on the CPU, and once for each on the GPU.)code",
        nullptr, true)
    .AddOptionalArg("output_type",
                    R"code(The color space of the output image.

Gray is repeated for RGB and BGR, alpha is dropped for all but ANY_DATA, which keeps the channels of the file. YCbCr follows
ITU-R BT.601.)code",
                    DALI_RGB)
    .AddOptionalTypeArg("dtype",
                        R"code(Output data type of the image.

Values are scaled to the range of the type: with UINT8, 65535 of a 16-bit image becomes 255; with UINT16 it stays what it is; with FLOAT and
FLOAT16 it becomes 1.0.)code",
                        DALI_UINT8)
    .AddOptionalArg(
        "verify",
        R"code(Checks the checksums of the tiles that are decoded, in all profiles, where the file has them. Without it damage in a
file may go unnoticed.)code",
        true)
    .AddOptionalArg("on_error", R"code(What to do about files that cannot be decoded.

* ``"raise"``: an error that names the file.
* ``"zeros"``: the sample becomes zeros, which is reported once for each file, and a second output, a scalar of type bool for each sample,
  says which samples are valid. Zeros have the shape that the image would have had. A file that does not even tell that counts as an image
  like the first good one of the batch, or as one pixel. A region that is not inside a good image is an error all the same.)code",
                    "raise")
    .AddParent("CropAttr")
    .AddParent("SliceAttr")
    .AddParent("dali_l3__DecoderOutputs");

}  // namespace dali
