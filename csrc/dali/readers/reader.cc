#include "reader.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bridges.h"
#include "bucket_objects.h"
#include "dali/pipeline/operator/checkpointing/op_checkpoint.h"
#include "integer_arguments.h"
#include "interrupt.h"
#include "loader/cancellation.h"
#include "loader/dataset/catalogue_file.h"
#include "loader/dataset/printable.h"
#include "loader/input/uri.h"
#include "reader_statistics.h"

namespace dali_l3 {
namespace {

using dali::CPUBackend;

void Warn(const std::string &message) { DALI_WARN(message); }

// Calls `call`. DALI makes Python errors of the messages of its errors, which only text can be.
template <typename Call>
auto WithPrintableErrors(Call call) {
  try {
    return call();
  } catch (const std::invalid_argument &error) {
    throw std::invalid_argument(loader::printable(error.what()));
  } catch (const std::runtime_error &error) {
    throw std::runtime_error(loader::printable(error.what()));
  }
}

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

// Outputs the images all at once if they lie one right behind the other. Where DALI wants them so, as outputs of the
// pipeline, it need not copy them then.
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

int CompanionOutputs(const dali::OpSpec &spec) {
  if (std::vector<std::string> ext; spec.TryGetRepeatedArgument(ext, "ext") && !ext.empty())
    return static_cast<int>(ext.size()) - 1;
  std::vector<std::string> companions, companion_files, files;
  spec.TryGetRepeatedArgument(companions, "companions");
  spec.TryGetRepeatedArgument(companion_files, "companion_files");
  if (companion_files.empty()) return static_cast<int>(companions.size());
  spec.TryGetRepeatedArgument(files, "files");  // what does not fit together is refused when the dataset is listed
  return static_cast<int>(companion_files.size() / std::max<size_t>(files.size(), 1));
}

// That of the first companions, or of the labels.
std::optional<dali::DALIDataType> SecondOutputType(const dali::OpSpec &spec) {
  const ReaderOutputs outputs(spec);
  if (outputs.companions > 0) return DALI_UINT8;
  return outputs.label_columns > 0 ? DALI_FLOAT : DALI_INT32;
}

}  // namespace

ReaderOutputs::ReaderOutputs(const dali::OpSpec &spec) {
  if (std::string catalogue; spec.TryGetArgument(catalogue, "catalogue")) {
    const loader::CatalogueFacts facts = WithPrintableErrors([&] { return loader::read_catalogue_facts(catalogue); });
    companions = facts.companions;
    has_labels = facts.has_labels;
    label_columns = facts.label_columns;
    return;
  }
  companions = CompanionOutputs(spec);
  // Labels in archives are an output where somebody has said what they are.
  has_labels = !spec.ArgumentDefined("paths") || spec.ArgumentDefined("label_ext");
  label_columns = IntArgument(spec, "label_columns");
}

int Outputs(const dali::OpSpec &spec) {
  const ReaderOutputs outputs(spec);
  return 1 + outputs.companions + outputs.has_labels;
}

loader::ShardOptions ShardArguments(const dali::OpSpec &spec) {
  loader::ShardOptions shards;
  shards.shard_id = IntArgument(spec, "shard_id");
  shards.num_shards = IntArgument(spec, "num_shards");
  shards.stick_to_shard = spec.GetArgument<bool>("stick_to_shard");
  shards.pad_last_batch = spec.GetArgument<bool>("pad_last_batch");
  shards.batch_size = spec.GetArgument<int>("max_batch_size");
  return shards;
}

loader::WeightingArguments WeightingArguments(const dali::OpSpec &spec) {
  loader::WeightingArguments arguments;
  if (std::vector<float> weights; spec.TryGetRepeatedArgument(weights, "weights"))
    arguments.weights = std::move(weights);
  if (std::vector<float> proportions; spec.TryGetRepeatedArgument(proportions, "class_proportions"))
    arguments.class_proportions = std::move(proportions);
  arguments.class_balanced = spec.GetArgument<bool>("class_balanced");
  if (spec.ArgumentDefined("epoch_size")) arguments.epoch_size = spec.GetArgument<int64_t>("epoch_size");
  const ReaderOutputs outputs(spec);
  arguments.labels_are_classes = outputs.has_labels && outputs.label_columns == 0;
  return arguments;
}

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
  loader::ReadingArguments arguments;
  arguments.use_o_direct = spec_.GetArgument<bool>("use_o_direct");
  arguments.check = spec_.GetArgument<std::string>("check");
  arguments.on_error = spec_.GetArgument<std::string>("on_error");
  if (std::string path; spec_.TryGetArgument(path, "substitute")) arguments.substitute = std::move(path);
  arguments.companions = outputs_.companions;
  arguments.equal_sizes = spec_.GetArgument<bool>("equal_sizes");
  arguments.strict = spec_.GetArgument<bool>("strict");
  arguments.read_threads = IntArgument(spec_, "read_threads");
  if (spec_.ArgumentDefined("prefetch_queue_depth"))
    arguments.prefetch_queue_depth = IntArgument(spec_, "prefetch_queue_depth");
  arguments.batch_size = max_batch_size_;
  return arguments;
}

loader::CatalogueOptions Reader::ListingOptions() const {
  loader::CatalogueOptions options = loader::listing_options(ReadArguments());
  options.sniff |= sampling_.needs_formats;
  options.sizes = sampling_.needs_sizes;
  if (std::string path; spec_.TryGetArgument(path, "catalogue")) {
    RefuseListingArguments();
    options.catalogue = std::move(path);
  } else {
    AddListingArguments(options);
  }
  if (spec_.ArgumentDefined("subset_indices"))
    options.subset.indices = spec_.GetRepeatedArgument<int64_t>("subset_indices");
  if (std::vector<std::string> files; spec_.TryGetRepeatedArgument(files, "subset_files"))
    options.subset.files = std::move(files);
  if (std::vector<float> range; spec_.TryGetRepeatedArgument(range, "subset_range"))
    options.subset.range = std::move(range);
  options.subset.seed = spec_.GetArgument<int64_t>("subset_seed");
  options.weights = sampling_.weighting.weights;
  return options;
}

// Where the samples are.
void Reader::AddListingArguments(loader::CatalogueOptions &options) const {
  if (std::string root; spec_.TryGetArgument(root, "file_root")) options.file_root = std::move(root);
  if (std::string list; spec_.TryGetArgument(list, "file_list")) options.file_list = std::move(list);
  if (std::vector<std::string> files; spec_.TryGetRepeatedArgument(files, "files")) options.files = std::move(files);
  if (spec_.ArgumentDefined("labels")) options.labels = IntArguments(spec_, "labels");
  spec_.TryGetRepeatedArgument(options.file_filters, "file_filters");
  spec_.TryGetRepeatedArgument(options.dir_filters, "dir_filters");
  options.case_sensitive_filter = spec_.GetArgument<bool>("case_sensitive_filter");
  if (std::vector<float> values; spec_.TryGetRepeatedArgument(values, "label_values"))
    options.label_values = std::move(values);
  options.label_columns = outputs_.label_columns;
  spec_.TryGetRepeatedArgument(options.companions, "companions");
  if (std::vector<std::string> paths; spec_.TryGetRepeatedArgument(paths, "companion_files"))
    options.companion_files = std::move(paths);
  spec_.TryGetRepeatedArgument(options.missing_companions, "missing_companions");
  options.archives = ArchiveArguments();
}

void Reader::RefuseListingArguments() const {
  for (const char *argument : {"file_root",
                               "file_list",
                               "files",
                               "labels",
                               "label_values",
                               "label_columns",
                               "file_filters",
                               "dir_filters",
                               "case_sensitive_filter",
                               "companions",
                               "companion_files",
                               "missing_companions",
                               "paths",
                               "index_paths",
                               "ext",
                               "missing_component_behavior",
                               "case_sensitive_extensions",
                               "label_ext",
                               "label_field",
                               "strict"})
    if (spec_.ArgumentDefined(argument))
      throw std::invalid_argument(
          std::string("The argument ") + argument +
          " cannot be used with catalogue, which says itself which samples there are: to change "
          "them, make it anew with dali-l3 index");
}

std::optional<loader::ArchiveOptions> Reader::ArchiveArguments() const {
  if (!spec_.ArgumentDefined("paths")) {
    for (const char *argument :
         {"index_paths", "ext", "missing_component_behavior", "case_sensitive_extensions", "label_ext", "label_field"})
      if (spec_.ArgumentDefined(argument))
        throw std::invalid_argument(std::string("The argument ") + argument + " needs the argument paths");
    return std::nullopt;
  }
  loader::ArchiveOptions options;
  spec_.TryGetRepeatedArgument(options.paths, "paths");
  if (std::vector<std::string> paths; spec_.TryGetRepeatedArgument(paths, "index_paths"))
    options.index_paths = std::move(paths);
  spec_.TryGetRepeatedArgument(options.ext, "ext");
  options.missing_component_behavior = spec_.GetArgument<std::string>("missing_component_behavior");
  options.case_sensitive_extensions = spec_.GetArgument<bool>("case_sensitive_extensions");
  if (std::string ext; spec_.TryGetArgument(ext, "label_ext")) options.label_ext = std::move(ext);
  if (std::string field; spec_.TryGetArgument(field, "label_field")) options.label_field = std::move(field);
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

// DALI's macros paste the schema's name into identifiers and expect to be used inside its namespace.
namespace dali {

DALI_SCHEMA(dali_l3__ReaderOutputs) << dali_l3::OutputDType(1, dali_l3::SecondOutputType);

// The arguments that both readers have beyond those of readers.file. They inherit these and the outputs' types, not
// their number.
DALI_SCHEMA(dali_l3__ReaderBase)
    .DocStr("Arguments of the readers of dali_l3.")
    .AddParent("dali_l3__ReaderOutputs")
    .AddParent("readers__File")
    .AddOptionalArg("file_filters",
                    R"code(A list of glob strings to filter the files in the class folders of `file_root`.

The default is that of ``readers.file``, and ``*.l3``. Ignored with `file_list` and `files`.)code",
                    dali_l3::loader::kImageFilters)
    .AddOptionalArg<int>("prefetch_queue_depth", R"code(Batches that are being read while one is delivered.

By default as many as hold 64 images, and at least one.)code",
                         nullptr)
    .AddOptionalArg<int64_t>("shuffle_after_epoch_seed",
                             R"code(Seed of the shuffling that `shuffle_after_epoch` does, as an offset to it.)code",
                             nullptr)
    .AddOptionalArg("companions", R"code(Files that belong to each image, such as its mask, as path templates.

Each template stands for one more output, between the image and the label. Paths are relative to `file_root`. ``{dir}`` is the image's
folder, ``{name}`` its name, ``{stem}`` its name without the extension and ``{relpath}`` its path, relative to `file_root`; for instance
``"../masks/{dir}/{stem}.png"``. A field may be edited as in a shell: ``{stem%END}`` removes END at its end, ``{stem#START}`` START at its
start, ``{stem/OLD/NEW}`` replaces the first OLD by NEW and ``{stem//OLD/NEW}`` every OLD. A companion is read, shuffled and held in memory
together with its image.)code",
                    std::vector<std::string>{})
    .AddOptionalArg<std::vector<std::string>>(
        "companion_files", R"code(Paths of the companions of each of the `files`, in the place of `companions`.

All companions of the first file, then those of the second, and so on.)code",
        nullptr)
    .AddOptionalArg<std::vector<std::string>>(
        "paths", R"code(Tar archives ("shards" of webdataset) that hold the samples, in the place of `file_root`.

Each is a path, a pattern such as ``"train-*.tar"``, a range such as ``"train-{000..015}.tar"``, or a text file whose name ends with
``.txt`` that lists these. The outputs are the components of `ext`, in this order, and the labels if `label_ext` is given.)code",
        nullptr)
    .AddOptionalArg<std::string>(
        "catalogue",
        R"code(Path of a catalogue, as ``dali-l3 index -o train.l3cat`` writes it, in the place of `file_root` and of all other
arguments that say which samples there are.

The reader maps it and looks at no file before it reads it. The outputs are those of the arguments that it was made with. A file that is
not as the catalogue says is bad when it is read; see `on_error`.)code",
        nullptr)
    .AddOptionalArg<std::vector<std::string>>(
        "index_paths",
        R"code(The indices of the archives in `paths`, one for each, as ``dali-l3 index`` or DALI's ``wds2idx`` writes them.

By default the file beside each archive, with ``.idx`` in the place of ``.tar``. Where there is none, it is made and kept there or, if that
is not possible, in the user's cache.)code",
        nullptr)
    .AddOptionalArg<std::vector<std::string>>(
        "ext",
        R"code(Extensions of the files of a sample in `paths`: first that of the image, then one for each companion.

The extension of a file is what is behind the first dot of its name; files that have the rest of the name in common make a sample.
Alternatives are separated by semicolons: ``["jpg;png", "seg.png"]``.)code",
        nullptr)
    .AddOptionalArg("missing_component_behavior",
                    R"code(What to do about samples in `paths` that lack a component of `ext`.

* ``"empty"``: the output of a companion has no bytes. A sample without its image is bad; see `on_error`.
* ``"skip"``: the sample is left out, also if it lacks its label.
* ``"error"``: the sample is bad.)code",
                    dali_l3::loader::kMissingIsEmpty)
    .AddOptionalArg("case_sensitive_extensions",
                    R"code(Whether upper and lower case differ in `ext` and `label_ext`.)code", true)
    .AddOptionalArg<std::string>(
        "label_ext",
        R"code(Extension of the file with the label of each sample in `paths`, such as ``"cls"``.

It holds an integer, or `label_columns` numbers, as text, or as JSON with `label_field`. It is read when the pipeline is built.)code",
        nullptr)
    .AddOptionalArg<std::string>("label_field",
                                 R"code(Where the label is in JSON: a key, or keys with dots between.)code", nullptr)
    .AddOptionalArg("label_columns", R"code(How many numbers a label has, to be delivered as float32.

They are in `label_values`, at the end of each line of `file_list`, or in the files of `label_ext`. By default, labels are integers.)code",
                    0)
    .AddOptionalArg<std::vector<float>>(
        "label_values",
        R"code(The numbers of the labels of the `files`: all of the first file, then those of the second, and so on.

Needs `label_columns`.)code",
        nullptr)
    .AddOptionalArg(
        "missing_companions",
        R"code(What to do about images whose companion does not exist; once for all `companions`, or for each.

* ``"error"``: the sample is bad; see `on_error`.
* ``"empty"``: the output of that sample has no bytes.
* a path, relative to `file_root`: that file takes its place.

How many images have none, and which, is reported when the pipeline is built.)code",
        std::vector<std::string>{dali_l3::loader::kMissingIsBad})
    .AddOptionalArg<std::vector<int>>(
        "subset_indices", R"code(Which samples to read, as indices into the order in which the dataset is listed.)code",
        nullptr)
    .AddOptionalArg<std::vector<std::string>>("subset_files",
                                              R"code(Which samples to read, as paths, relative to `file_root`.)code",
                                              nullptr)
    .AddOptionalArg<std::vector<float>>("subset_range",
                                        R"code(Which part of the samples to read: its begin and its end, from 0 to 1.

The part is cut from a random order that depends on `subset_seed` and the labels, not on `seed`, and holds the labels in proportion. Ranges
that do not overlap have no sample in common.)code",
                                        nullptr)
    .AddOptionalArg("subset_seed", R"code(Seed of the order that `subset_range` is cut from.)code", int64_t{0})
    .AddOptionalArg<std::vector<float>>("weights",
                                        R"code(How often each sample is drawn in an epoch, compared with the others.

One number for each sample, in the order in which the dataset is listed, before a subset is taken and bad files are left out. Of a sample
with the share `s` of the sum of weights, every epoch holds the floor or the ceiling of ``s * epoch_size`` draws; what is rounded off takes
turns, so that many epochs together are exact.)code",
                                        nullptr)
    .AddOptionalArg<std::vector<float>>("class_proportions", R"code(The proportion of each class in an epoch, by label.

The counts are exact as with `weights`. The samples of a class take turns.)code",
                                        nullptr)
    .AddOptionalArg("class_balanced", R"code(Whether all classes have equal proportions in an epoch.)code", false)
    .AddOptionalArg<int64_t>("epoch_size",
                             R"code(Samples of an epoch over all shards. By default as many as there are.)code",
                             nullptr)
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
    .AddOptionalArg(
        "on_mismatch",
        R"code(What to do about a checkpoint that was made with other files, or with other arguments that the
order follows from.

* ``"raise"``: an error that says what differs.
* ``"redistribute"``: another batch size, `num_shards`, `stick_to_shard`, `pad_last_batch` or `cache_size` is no error. What all shards
  have left of the epoch, having delivered equally many batches, is dealt to the shards that there are now, each sample once. All of them
  go on from the checkpoint of shard 0, with the seed that it was made with. Later epochs are those of the arguments.
* ``"ignore"``: the reader goes on with the batch of that number. Samples may be repeated or left out.)code",
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
        "equal_sizes",
        R"code(Whether companions must have the height and width of their image. A sample where they differ is bad.

Looks at the headers of L3, PNG, JPEG, BMP, TIFF, WebP, PNM and NPY files each time that a sample is read from disk, and at the size as it
is stored, before a rotation by EXIF. Files of other formats are not compared.)code",
        false)
    .AddOptionalArg(
        "strict",
        R"code(Whether hidden folders, class folders without files, links to nothing or to folders and files listed
twice are errors. By default they are reported, except the last.)code",
        false)
    .AddOptionalArg("read_threads", R"code(Threads that read files, at most 1024.)code", 8);

}  // namespace dali
