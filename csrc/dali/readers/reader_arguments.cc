#include "reader_arguments.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "integer_arguments.h"
#include "loader/dataset/catalogue_file.h"
#include "printable_errors.h"

namespace dali_l3 {
namespace {

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

constexpr const char *kArchiveArguments[] = {
    "index_paths", "ext", "missing_component_behavior", "case_sensitive_extensions", "label_ext", "label_field"};

constexpr const char *kSourceArguments[] = {"file_root",    "file_list",       "files",
                                            "labels",       "label_values",    "label_columns",
                                            "file_filters", "dir_filters",     "case_sensitive_filter",
                                            "companions",   "companion_files", "missing_companions",
                                            "paths",        "strict"};

std::optional<loader::ArchiveOptions> ArchiveArguments(const dali::OpSpec &spec) {
  if (!spec.ArgumentDefined("paths")) {
    for (const char *argument : kArchiveArguments)
      if (spec.ArgumentDefined(argument))
        throw std::invalid_argument(std::string("The argument ") + argument + " needs the argument paths");
    return std::nullopt;
  }
  loader::ArchiveOptions options;
  spec.TryGetRepeatedArgument(options.paths, "paths");
  if (std::vector<std::string> paths; spec.TryGetRepeatedArgument(paths, "index_paths"))
    options.index_paths = std::move(paths);
  spec.TryGetRepeatedArgument(options.ext, "ext");
  options.missing_component_behavior = spec.GetArgument<std::string>("missing_component_behavior");
  options.case_sensitive_extensions = spec.GetArgument<bool>("case_sensitive_extensions");
  if (std::string ext; spec.TryGetArgument(ext, "label_ext")) options.label_ext = std::move(ext);
  if (std::string field; spec.TryGetArgument(field, "label_field")) options.label_field = std::move(field);
  return options;
}

// Where the samples are, without a catalogue.
void AddSourceArguments(const dali::OpSpec &spec, const ReaderOutputs &outputs, loader::CatalogueOptions &options) {
  if (std::string root; spec.TryGetArgument(root, "file_root")) options.file_root = std::move(root);
  if (std::string list; spec.TryGetArgument(list, "file_list")) options.file_list = std::move(list);
  if (std::vector<std::string> files; spec.TryGetRepeatedArgument(files, "files")) options.files = std::move(files);
  if (spec.ArgumentDefined("labels")) options.labels = IntArguments(spec, "labels");
  spec.TryGetRepeatedArgument(options.file_filters, "file_filters");
  spec.TryGetRepeatedArgument(options.dir_filters, "dir_filters");
  options.case_sensitive_filter = spec.GetArgument<bool>("case_sensitive_filter");
  if (std::vector<float> values; spec.TryGetRepeatedArgument(values, "label_values"))
    options.label_values = std::move(values);
  options.label_columns = outputs.label_columns;
  spec.TryGetRepeatedArgument(options.companions, "companions");
  if (std::vector<std::string> paths; spec.TryGetRepeatedArgument(paths, "companion_files"))
    options.companion_files = std::move(paths);
  spec.TryGetRepeatedArgument(options.missing_companions, "missing_companions");
  options.archives = ArchiveArguments(spec);
}

void RefuseSourceArgument(const dali::OpSpec &spec, const char *argument) {
  if (spec.ArgumentDefined(argument))
    throw std::invalid_argument(std::string("The argument ") + argument +
                                " cannot be used with catalogue, which says itself which samples there are: to change "
                                "them, make it anew with dali-l3 index");
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

loader::ReadingArguments ReadingArguments(const dali::OpSpec &spec, int companions, int batch_size) {
  loader::ReadingArguments arguments;
  arguments.use_o_direct = spec.GetArgument<bool>("use_o_direct");
  arguments.check = spec.GetArgument<std::string>("check");
  arguments.on_error = spec.GetArgument<std::string>("on_error");
  if (std::string path; spec.TryGetArgument(path, "substitute")) arguments.substitute = std::move(path);
  arguments.companions = companions;
  arguments.equal_sizes = spec.GetArgument<bool>("equal_sizes");
  arguments.strict = spec.GetArgument<bool>("strict");
  arguments.read_threads = IntArgument(spec, "read_threads");
  if (spec.ArgumentDefined("prefetch_queue_depth"))
    arguments.prefetch_queue_depth = IntArgument(spec, "prefetch_queue_depth");
  arguments.batch_size = batch_size;
  return arguments;
}

void AddListingArguments(const dali::OpSpec &spec, const ReaderOutputs &outputs, loader::CatalogueOptions &options) {
  if (std::string path; spec.TryGetArgument(path, "catalogue")) {
    for (const char *argument : kSourceArguments) RefuseSourceArgument(spec, argument);
    for (const char *argument : kArchiveArguments) RefuseSourceArgument(spec, argument);
    options.catalogue = std::move(path);
  } else {
    AddSourceArguments(spec, outputs, options);
  }
  if (spec.ArgumentDefined("subset_indices"))
    options.subset.indices = spec.GetRepeatedArgument<int64_t>("subset_indices");
  if (std::vector<std::string> files; spec.TryGetRepeatedArgument(files, "subset_files"))
    options.subset.files = std::move(files);
  if (std::vector<float> range; spec.TryGetRepeatedArgument(range, "subset_range"))
    options.subset.range = std::move(range);
  options.subset.seed = spec.GetArgument<int64_t>("subset_seed");
}

}  // namespace dali_l3
