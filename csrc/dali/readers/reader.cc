#include "reader.h"

#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dali/pipeline/operator/checkpointing/op_checkpoint.h"
#include "interrupt.h"
#include "reader_statistics.h"

namespace dali_l3 {
namespace {

using dali::CPUBackend;

// What a checkpoint holds: all that the next batch follows from, besides the arguments.
struct State {
  int64_t seed = 0;
  int64_t position = 0;  // number of the next batch
};

// Samples that are read ahead by default. A batch is scheduled only when DALI asks for another: were it but one batch
// ahead, the disk would be idle whenever all of that had come before.
constexpr int kSamplesAhead = 64;

void Warn(const std::string &message) { DALI_WARN(message); }

loader::OnError ParseOnError(const std::string &name) {
  if (name == "raise") return loader::OnError::raise;
  if (name == "skip") return loader::OnError::skip;
  if (name == "substitute") return loader::OnError::substitute;
  throw std::invalid_argument("on_error is \"" + name + R"(", but must be "raise", "skip" or "substitute")");
}

loader::Check ParseCheck(const std::string &name) {
  if (name == "none") return loader::Check::none;
  if (name == "headers") return loader::Check::headers;
  if (name == "content") return loader::Check::content;
  throw std::invalid_argument("check is \"" + name + R"(", but must be "none", "headers" or "content")");
}

// Outputs memory that the engine owns too.
void Share(dali::TensorList<CPUBackend> &output, int sample, const loader::FileBytes &file, const std::string &path) {
  // Consumers take a file's bytes for constant; only DALI's types do not say so.
  std::shared_ptr<void> data = std::const_pointer_cast<uint8_t>(file.data);
  output.SetSample(sample, std::move(data), file.size, false, dali::TensorShape<>{static_cast<int64_t>(file.size)},
                   DALI_UINT8, dali::CPU_ONLY_DEVICE_ID, dali::AccessOrder::host());
  output.SetSourceInfo(sample, path);
}

}  // namespace

std::vector<loader::FileFormat> FormatsOf(const loader::Catalogue &catalogue) {
  std::vector<loader::FileFormat> formats;
  formats.reserve(catalogue.entries.size());
  for (const loader::Entry &entry : catalogue.entries) formats.push_back(entry.format);
  return formats;
}

int CompanionOutputs(const dali::OpSpec &spec) {
  std::vector<std::string> companions;
  spec.TryGetRepeatedArgument(companions, "companions");
  return static_cast<int>(companions.size());
}

Reader::Reader(const dali::OpSpec &spec)
    : Operator(spec),
      checkpointing_(spec.GetArgument<bool>("checkpointing")),
      seed_(spec.GetArgument<int64_t>("seed")) {
  if (spec.GetArgument<bool>("skip_cached_images"))
    throw std::invalid_argument(
        "skip_cached_images is not supported: this reader does not know of the decoder's cache");
}

void Reader::Init() {
  if (!spec_.GetArgument<bool>("lazy_init")) engine();
}

loader::CatalogueOptions Reader::MakeCatalogueOptions() const {
  loader::CatalogueOptions options;
  if (std::string root; spec_.TryGetArgument(root, "file_root")) options.file_root = std::move(root);
  if (std::string list; spec_.TryGetArgument(list, "file_list")) options.file_list = std::move(list);
  if (std::vector<std::string> files; spec_.TryGetRepeatedArgument(files, "files")) options.files = std::move(files);
  if (std::vector<int> labels; spec_.TryGetRepeatedArgument(labels, "labels")) options.labels = std::move(labels);
  spec_.TryGetRepeatedArgument(options.file_filters, "file_filters");
  spec_.TryGetRepeatedArgument(options.dir_filters, "dir_filters");
  options.case_sensitive_filter = spec_.GetArgument<bool>("case_sensitive_filter");
  spec_.TryGetRepeatedArgument(options.companions, "companions");
  spec_.TryGetRepeatedArgument(options.missing_companions, "missing_companions");
  options.on_error = ParseOnError(spec_.GetArgument<std::string>("on_error"));
  // Listing reads no file as a whole: what is wrong behind a header is found when the file is read.
  options.check_headers = ParseCheck(spec_.GetArgument<std::string>("check")) != loader::Check::none;
  options.strict = spec_.GetArgument<bool>("strict");
  options.threads = spec_.GetArgument<int>("read_threads");
  options.sniff = options.on_error != loader::OnError::raise;  // bad files are left out only if somebody looks at them
  return options;
}

loader::EngineOptions Reader::MakeEngineOptions() const {
  loader::EngineOptions options;
  options.reading.mode =
      spec_.GetArgument<bool>("use_o_direct") ? loader::ReadMode::direct : loader::ReadMode::buffered;
  options.reading.check = ParseCheck(spec_.GetArgument<std::string>("check"));
  options.read_threads = spec_.GetArgument<int>("read_threads");
  if (!spec_.TryGetArgument(options.batches_ahead, "prefetch_queue_depth"))
    options.batches_ahead = (kSamplesAhead + max_batch_size_ - 1) / max_batch_size_;
  if (options.batches_ahead < 0) throw std::invalid_argument("prefetch_queue_depth must not be negative");
  options.on_error = ParseOnError(spec_.GetArgument<std::string>("on_error"));
  const bool has_substitute = spec_.TryGetArgument(options.substitute, "substitute");
  if (has_substitute != (options.on_error == loader::OnError::substitute))
    throw std::invalid_argument(
        R"(on_error="substitute" needs the argument substitute, a path, which is of no use otherwise)");
  if (has_substitute && CompanionOutputs(spec_) > 0)
    throw std::invalid_argument(
        R"(on_error="substitute" cannot be used with companions: the substitute has none. Use "skip")");
  return options;
}

loader::ShardOptions Reader::MakeShardOptions() const {
  loader::ShardOptions options;
  options.shard_id = spec_.GetArgument<int>("shard_id");
  options.num_shards = spec_.GetArgument<int>("num_shards");
  options.stick_to_shard = spec_.GetArgument<bool>("stick_to_shard");
  options.pad_last_batch = spec_.GetArgument<bool>("pad_last_batch");
  options.batch_size = max_batch_size_;
  return options;
}

loader::Engine &Reader::engine() const {
  std::lock_guard lock(engine_mutex_);
  if (engine_) return *engine_;
  const loader::EngineOptions options =
      MakeEngineOptions();  // first, since listing takes longer than to find fault with them
  loader::Catalogue catalogue;
  {
    const InterruptGuard guard;
    loader::CatalogueOptions listing = MakeCatalogueOptions();
    listing.cancelled = guard.interrupted();
    catalogue = loader::list_dataset(listing);
  }
  for (const std::string &problem : catalogue.problems) Warn(problem);
  auto order = MakeOrder(catalogue);
  engine_ = std::make_unique<loader::Engine>(std::move(catalogue), std::move(order), options, Warn);
  return *engine_;
}

std::unique_ptr<loader::SampleOrder> Reader::MakeOrder(const loader::Catalogue &catalogue) const {
  return std::make_unique<loader::SampleOrder>(MakeShardOptions(), catalogue.entries.size(),
                                               MakePlan(catalogue, seed_));
}

dali::ReaderMeta Reader::GetReaderMeta() const {
  const auto size = static_cast<int64_t>(engine().catalogue().entries.size());
  const loader::ShardOptions shards = MakeShardOptions();
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
  const loader::Engine::Batch batch = engine().next_batch();
  const int size = static_cast<int>(batch.size());
  const int files = ws.NumOutput() - 1;
  for (int f = 0; f < files; f++) {
    auto &output = ws.Output<CPUBackend>(f);
    output.Reset();
    output.set_pinned(false);
    output.set_type(DALI_UINT8);
    output.set_sample_dim(1);
    output.SetSize(size);
    for (int i = 0; i < size; i++) Share(output, i, batch[i]->files[f], batch[i]->path);
  }
  auto &labels = ws.Output<CPUBackend>(files);
  labels.Resize(dali::uniform_list_shape<1>(size, {1}), DALI_INT32);
  for (int i = 0; i < size; i++) *labels.mutable_tensor<int>(i) = batch[i]->label;
}

void Reader::SaveState(dali::OpCheckpoint &checkpoint, dali::AccessOrder /*order*/) {
  checkpoint.MutableCheckpointState() = State{seed_, engine().position()};
}

void Reader::RestoreState(const dali::OpCheckpoint &checkpoint) {
  const auto [seed, position] = checkpoint.CheckpointState<State>();
  loader::Engine &engine = this->engine();
  // A pipeline without a seed draws another every time.
  if (std::exchange(seed_, seed) != seed) engine.set_order(MakeOrder(engine.catalogue()));
  engine.seek(position);
}

std::string Reader::SerializeCheckpoint(const dali::OpCheckpoint &checkpoint) const {
  const auto [seed, position] = checkpoint.CheckpointState<State>();
  return std::to_string(seed) + " " + std::to_string(position);
}

void Reader::DeserializeCheckpoint(dali::OpCheckpoint &checkpoint, const std::string &data) const {
  State state;
  const char *const end = data.data() + data.size();
  const auto seed = std::from_chars(data.data(), end, state.seed);
  const bool separated = seed.ec == std::errc() && seed.ptr != end && *seed.ptr == ' ';
  const auto position = std::from_chars(separated ? seed.ptr + 1 : end, end, state.position);
  if (position.ec != std::errc() || position.ptr != end || state.position < 0)
    throw std::invalid_argument("This is not the checkpoint of a reader of dali_l3");
  checkpoint.MutableCheckpointState() = state;
}

std::string Reader::Statistics() const { return loader::to_json(engine().statistics()); }

}  // namespace dali_l3

// DALI's macros paste the schema's name into identifiers and expect to be used inside its namespace.
namespace dali {

// The arguments that both readers have beyond those of readers.file. They inherit these and the outputs' types, not
// their number.
DALI_SCHEMA(dali_l3__ReaderBase)
    .DocStr("Arguments of the readers of dali_l3.")
    .AddParent("readers__File")
    .OutputDType(1,
                 [](const OpSpec &spec) -> std::optional<DALIDataType> {
                   return dali_l3::CompanionOutputs(spec) > 0 ? DALI_UINT8 : DALI_INT32;
                 })
    .AddOptionalArg("file_filters",
                    R"code(A list of glob strings to filter the files in the class folders of `file_root`.

The default is that of ``readers.file``, and ``*.l3``. Ignored with `file_list` and `files`.)code",
                    std::vector<std::string>{"*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff", "*.pnm", "*.ppm",
                                             "*.pgm", "*.pbm", "*.jp2", "*.webp", "*.l3", "*.flac", "*.ogg", "*.wav"})
    .AddOptionalArg<int>("prefetch_queue_depth", R"code(Batches that are being read while one is delivered.

By default as many as hold 64 images, and at least one.)code",
                         nullptr)
    .AddOptionalArg("companions", R"code(Files that belong to each image, such as its mask, as path templates.

Each template stands for one more output, between the image and the label. Paths are relative to `file_root`. ``{dir}`` is the image's
folder, ``{name}`` its name, ``{stem}`` its name without the extension and ``{relpath}`` its path, relative to `file_root`; for instance
``"../masks/{dir}/{stem}.png"``. A field may be edited as in a shell: ``{stem%END}`` removes END at its end, ``{stem#START}`` START at its
start, ``{stem/OLD/NEW}`` replaces the first OLD by NEW and ``{stem//OLD/NEW}`` every OLD. A companion is read, shuffled and held in memory
together with its image.)code",
                    std::vector<std::string>{})
    .AddOptionalArg(
        "missing_companions",
        R"code(What to do about images whose companion does not exist; once for all `companions`, or for each.

* ``"error"``: the sample is bad; see `on_error`.
* ``"empty"``: the output of that sample has no bytes.
* a path, relative to `file_root`: that file takes its place.

How many images have none, and which, is reported when the pipeline is built.)code",
        std::vector<std::string>{dali_l3::loader::kMissingIsBad})
    .AddOptionalArg(
        "on_error",
        R"code(What to do about files that are missing, empty or unreadable, of no known image format, or found
damaged by `check`.

* ``"raise"``: an error that names the file.
* ``"skip"``: a good sample of the same format, with its own label, takes the place of a bad one.
* ``"substitute"``: the file `substitute`, with the label of the bad one.

With the latter two all files are looked at when the pipeline is built; the bad ones are left out and reported. What goes bad later, or is
only found then, is replaced and reported, and the length of the epoch stays.)code",
        "raise")
    .AddOptionalArg<std::string>(
        "substitute", R"code(Path of the file that takes the place of bad ones with ``on_error="substitute"``.

It has no companions, so `companions` rule it out.)code",
        nullptr)
    .AddOptionalArg("check",
                    R"code(How closely images, and companions that are images, are looked at. What does not pass is bad.

* ``"none"``: not at all, beyond what other arguments need.
* ``"headers"``: whether L3, PNG, JPEG, BMP, TIFF and WebP files hold what a decoder needs before the pixels, and are as long as that says;
  when the pipeline is built, and each time that a file is read from disk.
* ``"content"``: that, and each time that a file is read from disk all checksums of L3 and PNG files, that a JPEG file has its end, and that
  a TIFF file has all its strips or tiles. An L3 file that passes decodes.)code",
                    "none")
    .AddOptionalArg(
        "strict",
        R"code(Whether hidden folders, class folders without files, links to nothing or to folders and files listed
twice are errors. By default they are reported, except the last.)code",
        false)
    .AddOptionalArg("read_threads", R"code(Threads that read files.)code", 8);

}  // namespace dali
