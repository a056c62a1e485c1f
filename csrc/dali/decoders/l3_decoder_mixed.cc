// Batches go to the device whole: one copy, one launch for each kind of tile, on the stream that DALI names.

#include "l3_decoder_mixed.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>

#include "dali/core/device_guard.h"

namespace dali_l3 {
namespace {

using dali::make_string;

// An l3_parallel_for whose context is Threads.
void ParallelFor(void *context, size_t count, void (*body)(void *argument, size_t index), void *argument) {
  auto &threads = *static_cast<Threads *>(context);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(argument, i);
  };
  threads.Run(static_cast<int>(std::min<size_t>(threads.Count(), count)), std::ref(work));
}

}  // namespace

void L3DecoderMixed::Release::operator()(l3_cuda_decoder *decoder) const {
  dali::DeviceGuard guard(device_id);
  l3_cuda_destroy(decoder);
}

L3DecoderMixed::L3DecoderMixed(const dali::OpSpec &spec)
    : StatelessOperator(spec),
      batch_(spec),
      device_id_(spec.GetArgument<int>("device_id")),
      threads_(num_threads_),
      decoder_(nullptr, Release{device_id_}) {
  valid_.set_pinned(false);  // so that a copy to the device has read it when it returns
}

bool L3DecoderMixed::SetupImpl(std::vector<dali::OutputDesc> &outputs, const dali::Workspace &ws) {
  batch_.Parse(spec_, ws, outputs);
  return true;
}

void L3DecoderMixed::RunImpl(dali::Workspace &ws) {
  auto &output = ws.Output<dali::GPUBackend>(0);
  output.SetLayout(ImageLayout(spec_));
  dali::DeviceGuard guard(device_id_);
  Decode(ws, output);
  batch_.WarnOfBroken(ws);

  const auto &samples = batch_.samples();
  for (int i = 0; i < static_cast<int>(samples.size()); i++) {
    if (samples[i].problem.empty()) continue;
    l3_error error;
    if (l3_cuda_clear(output.raw_mutable_tensor(i), BytesOf(output, i), ws.stream(), &error) != L3_OK)
      throw std::runtime_error(make_string("decoders.l3: ", error.message));
  }
  if (ws.NumOutput() == 1) return;
  valid_.Resize(dali::uniform_list_shape(static_cast<int>(samples.size()), dali::TensorShape<0>()), DALI_BOOL);
  for (int i = 0; i < static_cast<int>(samples.size()); i++)
    *valid_.mutable_tensor<bool>(i) = samples[i].problem.empty();
  ws.Output<dali::GPUBackend>(1).Copy(valid_, ws.stream());
}

void L3DecoderMixed::Decode(dali::Workspace &ws, dali::TensorList<dali::GPUBackend> &output) {
  l3_error error;
  if (!decoder_) {
    l3_cuda_decoder *decoder;
    if (l3_cuda_create(&decoder, &error) != L3_OK)
      throw std::runtime_error(make_string("decoders.l3: ", error.message));
    decoder_.reset(decoder);
  }

  const auto &samples = batch_.samples();
  images_.clear();
  numbers_.clear();
  for (int i = 0; i < static_cast<int>(samples.size()); i++) {
    const auto &sample = samples[i];
    if (!sample.problem.empty()) continue;
    l3_output destination = batch_.Output(i, output.raw_mutable_tensor(i));
    for (const l3_rect &region : sample.regions) {  // each as an image of its own
      images_.push_back({sample.file, region, destination});
      numbers_.push_back(i);
      destination.data = static_cast<uint8_t *>(destination.data) + sample.RegionStride(destination);
    }
  }
  l3_cuda_options options = {};
  options.verify = batch_.verify();
  options.parallel = ParallelFor;
  options.parallel_context = &threads_;
  errors_.resize(images_.size());
  if (batch_.zeros()) options.errors = errors_.data();
  size_t failed;
  const auto status =
      l3_cuda_decode(decoder_.get(), images_.data(), images_.size(), &options, ws.stream(), &failed, &error);
  if (status != L3_OK && failed < images_.size()) batch_.Fail(ws, numbers_[failed], error);
  if (status != L3_OK) throw std::runtime_error(make_string("decoders.l3: ", error.message));
  for (size_t i = 0; options.errors && i < images_.size(); i++)
    if (errors_[i].status != L3_OK) batch_.Fail(ws, numbers_[i], errors_[i]);
}

}  // namespace dali_l3

namespace dali {

DALI_REGISTER_OPERATOR(decoders__L3, dali_l3::L3DecoderMixed, Mixed);

}  // namespace dali
