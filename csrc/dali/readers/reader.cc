#include "reader.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bucket_objects.h"
#include "dali/pipeline/operator/checkpointing/op_checkpoint.h"
#include "interrupt.h"
#include "loader/cancellation.h"
#include "loader/input/uri.h"
#include "printable_errors.h"
#include "reader_statistics.h"

namespace dali_l3 {
namespace {

using dali::CPUBackend;

void Warn(const std::string &message) { DALI_WARN(message); }

// Outputs a file of a sample, whose memory the engine owns too.
void Share(dali::TensorList<CPUBackend> &output, int i, const loader::Engine::Delivered &sample,
           const loader::FileBytes &file, const std::string &name) {
  static uint8_t nothing;  // DALI wants memory of empty tensors, too
  // Consumers take a file's bytes for constant; only DALI's types do not say so.
  std::shared_ptr<void> data(sample.files, file.block ? file.block.get() : &nothing);
  output.SetSample(i, std::move(data), file.size(), false, dali::TensorShape<>{static_cast<int64_t>(file.size())},
                   DALI_UINT8, dali::CPU_ONLY_DEVICE_ID, dali::AccessOrder::host());
  output.SetSourceInfo(i, name);
}

// Outputs the images all at once if they lie one right behind the other, for less CPU time than one by one. Where DALI
// wants them so, as outputs of the pipeline, it need not copy them.
bool ShareWhole(dali::TensorList<CPUBackend> &output, const loader::Engine::Batch &batch) {
  dali::TensorListShape<> shape(static_cast<int>(batch.size()), 1);
  auto owners = std::make_shared<std::vector<std::shared_ptr<const loader::Sample>>>();
  owners->reserve(batch.size());
  uint8_t *const begin = batch.front().files->image.block.get(), *end = begin;
  for (const loader::Engine::Delivered &sample : batch) {
    const loader::FileBytes &image = sample.files->image;
    if (image.block.get() != end) return false;
    shape.tensor_shape_span(static_cast<int>(owners->size()))[0] = static_cast<int64_t>(image.size());
    owners->push_back(sample.files);
    end += image.size();
  }
  output.ShareData(std::shared_ptr<void>(std::move(owners), begin), static_cast<size_t>(end - begin), false, shape,
                   DALI_UINT8, dali::CPU_ONLY_DEVICE_ID, dali::AccessOrder::host());
  for (size_t i = 0; i < batch.size(); i++) output.SetSourceInfo(static_cast<int>(i), batch[i].name);
  return true;
}

}  // namespace

Reader::Reader(const dali::OpSpec &spec, loader::Sampling sampling)
    : Operator(spec),
      sampling_(std::move(sampling)),
      outputs_(spec),
      on_mismatch_(loader::parse_on_mismatch(spec.GetArgument<std::string>("on_mismatch"))) {
  if (spec.GetArgument<bool>("skip_cached_images"))
    throw std::invalid_argument(
        "skip_cached_images is not supported: this reader does not know of the decoder's cache");
  for (const std::string &warning : sampling_.warnings) Warn(warning);
  if (!spec.GetArgument<bool>("lazy_init")) engine();
}

loader::ReadingArguments Reader::ReadArguments() const {
  return ReadingArguments(spec_, outputs_.companions, max_batch_size_);
}

loader::CatalogueOptions Reader::ListingOptions() const {
  loader::CatalogueOptions options = loader::listing_options(ReadArguments());
  options.sniff |= sampling_.needs_formats;
  options.sizes = sampling_.needs_sizes;
  options.weights = sampling_.weighting.weights;
  AddListingArguments(spec_, outputs_, options);
  return options;
}

int64_t Reader::Seed() const { return spec_.GetArgument<int64_t>("seed"); }

loader::Engine &Reader::engine() const {
  std::lock_guard lock(engine_mutex_);
  if (!engine_) engine_ = WithPrintableErrors([this] { return MakeEngine(); });
  return *engine_;
}

std::unique_ptr<loader::Engine> Reader::MakeEngine() const {
  // First, since listing takes longer than to find fault with them.
  loader::EngineOptions options = loader::engine_options(ReadArguments(), sampling_.cache_bytes);
  const InterruptGuard guard;
  storage_ = std::make_shared<loader::Storage>(BucketObjects(), guard.interrupted());
  options.reading.storage = storage_;
  const loader::CancellationScope scope(*guard.interrupted());
  loader::CatalogueOptions listing = ListingOptions();
  listing.cancelled = guard.interrupted();
  listing.storage = storage_;
  loader::Catalogue catalogue = loader::list_dataset(listing);
  const std::string first = loader::stored_path(catalogue, catalogue.entries.file(0, 0));
  storage_->require_readable(first);  // what a catalogue lists has not been looked at
  in_buckets_ = loader::is_uri(first);
  for (const std::string &problem : catalogue.problems) Warn(problem);
  auto order = std::make_unique<loader::SampleOrder>(sampling_.shards, sampling_.epoch_size(catalogue),
                                                     sampling_.make_plan(catalogue, Seed(), sampling_.shards));
  return std::make_unique<loader::Engine>(std::move(catalogue), std::move(order), options, Warn);
}

dali::ReaderMeta Reader::GetReaderMeta() const {
  const int64_t size = sampling_.epoch_size(engine().catalogue());
  const loader::ShardOptions &shards = sampling_.shards;
  dali::ReaderMeta meta;
  meta.epoch_size = size;
  meta.epoch_size_padded = loader::padded_epoch_size(shards, size);
  meta.number_of_shards = shards.num_shards;
  meta.shard_id = shards.shard_id;
  meta.pad_last_batch = shards.pad_last_batch;
  meta.stick_to_shard = shards.stick_to_shard;
  AnnounceReader(*this);
  return meta;
}

bool Reader::SetupImpl(std::vector<dali::OutputDesc> & /*outputs*/, const dali::Workspace & /*ws*/) {
  return false;  // the outputs' memory is the engine's
}

void Reader::RunImpl(dali::Workspace &ws) {
  loader::Engine &reading = engine();
  // Files in file systems are not waited for so long that anybody would interrupt it.
  std::optional<InterruptGuard> guard;
  if (in_buckets_ || storage_->counts().requests > 0) guard.emplace();
  const loader::Engine::Batch batch = WithPrintableErrors([&] { return reading.next_batch(); });
  const int size = static_cast<int>(batch.size());
  const int files = 1 + outputs_.companions;
  std::vector<dali::TensorList<CPUBackend> *> outputs;  // found once: it takes DALI longer than to set a sample
  for (int f = 0; f < files; f++) {
    auto &output = ws.Output<CPUBackend>(f);
    output.Reset();
    output.set_pinned(false);
    output.set_type(DALI_UINT8);
    output.set_sample_dim(1);
    output.SetSize(size);
    outputs.push_back(&output);
  }
  const bool is_whole = ShareWhole(*outputs.front(), batch);
  for (int i = 0; i < size; i++) {
    const loader::Engine::Delivered &sample = batch[i];
    auto output = outputs.begin();
    if (!is_whole) Share(**output, i, sample, sample.files->image, sample.name);
    output++;
    auto name = sample.companion_names.begin();
    for (const loader::FileBytes &companion : sample.files->companions)
      Share(**output++, i, sample, companion, *name++);
  }
  if (!outputs_.has_labels) return;
  auto &labels = ws.Output<CPUBackend>(files);
  if (const int columns = outputs_.label_columns; columns > 0) {
    labels.Resize(dali::uniform_list_shape<1>(size, {columns}), DALI_FLOAT);
    const std::span<const float> values = engine().catalogue().label_values.values();
    for (int i = 0; i < size; i++)
      std::copy_n(values.begin() + int64_t{batch[i].label} * columns, columns, labels.mutable_tensor<float>(i));
  } else {
    labels.Resize(dali::uniform_list_shape<1>(size, {1}), DALI_INT32);
    for (int i = 0; i < size; i++) *labels.mutable_tensor<int>(i) = batch[i].label;
  }
}

loader::Checkpoint &Reader::Origin() const {
  if (!origin_) origin_ = loader::first_checkpoint(sampling_, engine().catalogue(), Seed());
  return *origin_;
}

void Reader::SaveState(dali::OpCheckpoint &checkpoint, dali::AccessOrder /*order*/) {
  loader::Checkpoint state = Origin();
  state.stages.back().batches = engine().position();
  checkpoint.MutableCheckpointState() = std::move(state);
}

void Reader::RestoreState(const dali::OpCheckpoint &checkpoint) {
  const auto &saved = checkpoint.CheckpointState<loader::Checkpoint>();
  loader::Checkpoint &origin = Origin();
  loader::Checkpoint resumed = loader::resume(saved, origin, on_mismatch_, Warn);
  const int64_t batch = resumed.stages.back().batches;
  const InterruptGuard guard;
  const loader::CancellationScope scope(*guard.interrupted());
  // A pipeline without a seed draws another every time.
  if (resumed.seed != origin.seed || resumed.stages.size() > 1)
    engine().set_order(loader::make_order(resumed, sampling_, engine().catalogue()), batch);
  else
    engine().seek(batch);
  origin = std::move(resumed);
}

std::string Reader::SerializeCheckpoint(const dali::OpCheckpoint &checkpoint) const {
  return loader::write_checkpoint(checkpoint.CheckpointState<loader::Checkpoint>());
}

void Reader::DeserializeCheckpoint(dali::OpCheckpoint &checkpoint, const std::string &data) const {
  checkpoint.MutableCheckpointState() = loader::parse_checkpoint(data);
}

std::string Reader::Statistics() const { return loader::to_json(engine().statistics()); }

}  // namespace dali_l3
