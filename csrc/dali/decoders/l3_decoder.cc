// decoders.l3: schema, and the division of a batch's tiles among DALI's threads.

#include "l3_decoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace dali_l3 {
namespace {

using dali::CPUBackend;

// Tiles in a piece: some 100 microseconds of work, so that taking a piece costs nothing beside it and one image still
// occupies all threads.
constexpr uint32_t kTilesPerPiece = 64;

}  // namespace

L3Decoder::L3Decoder(const dali::OpSpec &spec) : StatelessOperator(spec), batch_(spec) {}

bool L3Decoder::SetupImpl(std::vector<dali::OutputDesc> &outputs, const dali::Workspace &ws) {
  batch_.Parse(spec_, ws, outputs);
  return true;
}

void L3Decoder::RunImpl(dali::Workspace &ws) {
  auto &output = ws.Output<CPUBackend>(0);
  output.SetLayout("HWC");
  Decode(ws, output);
  for (const auto &[sample, failure] : failures_) batch_.Fail(ws, sample, failure.error);
  batch_.WarnOfBroken(ws);

  const auto &samples = batch_.samples();
  for (int i = 0; i < static_cast<int>(samples.size()); i++) {
    if (!samples[i].problem.empty()) std::memset(output.raw_mutable_tensor(i), 0, BytesOf(output, i));
    if (ws.NumOutput() > 1) *ws.Output<CPUBackend>(1).mutable_tensor<bool>(i) = samples[i].problem.empty();
  }
}

void L3Decoder::Decode(dali::Workspace &ws, dali::TensorList<CPUBackend> &output) {
  const bool bypass_cache = output.nbytes() >= L3_BYPASS_CACHE_SIZE;
  pieces_.clear();
  failures_.clear();
  for (int i = 0; i < static_cast<int>(batch_.samples().size()); i++) {
    const auto &[file, roi, problem] = batch_.samples()[i];
    const uint32_t tiles = problem.empty() ? l3_region_tile_count(&file, &roi) : 0;
    for (uint32_t first = 0; first < tiles; first += kTilesPerPiece) {
      pieces_.push_back({i, first, std::min(kTilesPerPiece, tiles - first)});
    }
  }

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
  const auto &[file, roi, problem] = batch_.samples()[piece.sample];
  l3_output destination = batch_.Output(piece.sample, output.raw_mutable_tensor(piece.sample));
  destination.bypass_cache = bypass_cache;
  const uint32_t options = batch_.verify() ? L3_VERIFY : 0;
  l3_error error;
  if (l3_decode_tiles(&file, &roi, &destination, options, piece.first_tile, piece.tiles, &error) == L3_OK) return;

  std::lock_guard lock(failures_mutex_);
  const auto [failure, is_first] = failures_.try_emplace(piece.sample, Failure{piece.first_tile, error});
  if (!is_first && piece.first_tile < failure->second.first_tile) failure->second = {piece.first_tile, error};
}

}  // namespace dali_l3

// DALI's macros paste the schema's name into identifiers and expect to be used inside its namespace.
namespace dali {

DALI_REGISTER_OPERATOR(decoders__L3, dali_l3::L3Decoder, CPU);

DALI_SCHEMA(decoders__L3)
    .DocStr(R"code(Decodes L3 images.

The output is in *HWC* layout; two-dimensional images become ``HxWx1``. With the "cpu" device, threads share the tiles of all images of a
batch, so that a batch of one large image keeps all of them busy. With the "mixed" device, a batch is copied to the GPU and decoded there as
one; threads check and gather its bytes.

A region of interest can be given by the arguments of :meth:`nvidia.dali.fn.decoders.image_crop` or by those of
:meth:`nvidia.dali.fn.decoders.image_slice`, but not by both. Only the tiles that it touches are read. It must not be empty and must lie
inside the image.

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
    .OutputNDim(0, 3)
    .OutputLayout(0, "HWC")
    .OutputNDim(1, 0)
    .OutputDType(1, DALI_BOOL);

}  // namespace dali
