#include "dataset/catalogue.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "dataset/catalogue_file.h"
#include "dataset/companions.h"
#include "dataset/counted.h"
#include "dataset/discovery.h"
#include "dataset/file_list.h"
#include "dataset/inspection.h"
#include "input/file_reading.h"
#include "input/uri.h"

namespace dali_l3::loader {
namespace {

// Bad files that an error shows, and that a warning shows each.
constexpr size_t kShown = 20;

void require(bool condition, const char *message) {
  if (!condition) throw std::runtime_error(message);
}

void check_archive_arguments(const CatalogueOptions &options) {
  require(!options.file_root && !options.file_list && !options.files,
          "The argument paths, of archives, excludes file_root, file_list and files");
  require(!options.labels && !options.label_values,
          "The labels of archives are in these: label_ext says where. labels and label_values are for files");
  require(
      options.companions.empty() && !options.companion_files,
      "The companions in archives are named by ext, behind the image. companions and companion_files are for files");
  require(options.missing_companions == std::vector<std::string>{kMissingIsBad},
          "The argument missing_companions is for files, missing_component_behavior for archives");
  require(!options.archives->label_field || options.archives->label_ext,
          "The argument label_field needs the argument label_ext, the extension of files in JSON");
  require(options.label_columns >= 0, "The argument label_columns must not be negative");
  require(options.label_columns == 0 || options.archives->label_ext,
          "The argument label_columns goes with label_ext, where labels are in archives");
}

void check_arguments(const CatalogueOptions &options) {
  require(options.file_root || options.file_list || options.files || options.archives,
          "One of the arguments file_root, file_list, files, paths and catalogue is needed");
  if (options.archives) return check_archive_arguments(options);
  require(!(options.file_list && options.files), "The arguments file_list and files exclude each other");
  require(!options.labels || options.files, "The argument labels needs the argument files");
  require(!options.label_values || options.files, "The argument label_values needs the argument files");
  require(!(options.labels && options.label_values), "The arguments labels and label_values exclude each other");
  require(options.label_columns >= 0, "The argument label_columns must not be negative");
  require((options.label_columns > 0) == (options.label_values || (options.file_list && options.label_columns > 0)),
          "The argument label_columns goes with label_values or file_list");
  require(companion_count(options) > 0 || options.missing_companions == CatalogueOptions{}.missing_companions,
          "The argument missing_companions needs companions or companion_files");
  require(options.missing_companions.size() == 1 || options.missing_companions.size() == companion_count(options),
          "The argument missing_companions needs one value, or as many as there are companions");
  require(std::ranges::none_of(options.missing_companions, &std::string::empty),
          "The argument missing_companions has an empty value: give \"error\", \"empty\" or a path");
  require(options.file_list || options.files || !options.file_root->empty(), "The argument file_root is empty");
  require(!options.file_list || !options.file_list->empty(), "The argument file_list is empty");
  require(!options.files || !options.files->empty(), "The argument files is an empty list");
  require(!options.file_filters.empty(), "The argument file_filters is an empty list");
  require(!options.dir_filters.empty(), "The argument dir_filters is an empty list");
  if (options.labels && options.labels->size() != options.files->size())
    throw std::runtime_error("The argument labels has " + counted(options.labels->size(), "label") +
                             ", the argument files " + counted(options.files->size(), "file"));
  if (options.label_values && options.label_values->size() != options.files->size() * options.label_columns)
    throw std::runtime_error("The argument label_values has " + counted(options.label_values->size(), "number") +
                             ", but " + counted(options.files->size(), "file") + " with " +
                             counted(options.label_columns, "number") + " each were given");
  for (const auto &path : {options.file_root, options.file_list})
    if (path) options.storage->require_readable(*path);
}

std::string root_of(const CatalogueOptions &options) {
  if (options.file_root) return *options.file_root;
  const size_t slash = options.file_list ? options.file_list->rfind('/') : std::string::npos;
  return slash == std::string::npos ? "" : options.file_list->substr(0, slash);
}

void add_entry(const CatalogueOptions &options, Catalogue &catalogue, const std::string &path, int label) {
  options.storage->require_readable(path);
  catalogue.entries.push_back({.file = {.path = path}, .label = label, .companions = {}});
}

DiscoveryOptions discovery_options(const CatalogueOptions &options) {
  return {options.file_filters, options.dir_filters, options.case_sensitive_filter};
}

// Returns where the labels of the entries are, if they are in archives.
std::vector<File> list_files(const CatalogueOptions &options, Catalogue &catalogue) {
  if (options.archives) {
    ArchiveListing listing = list_archives(*options.archives, options.threads, options.cancelled, *options.storage);
    catalogue.root = std::move(listing.root);
    catalogue.archives = std::move(listing.archives);
    catalogue.entries = std::move(listing.entries);
    catalogue.problems = std::move(listing.problems);
    return std::move(listing.label_files);
  }
  if (options.files) {
    for (size_t i = 0; i < options.files->size(); i++)
      add_entry(options, catalogue, (*options.files)[i], options.labels ? (*options.labels)[i] : static_cast<int>(i));
    if (options.label_values) catalogue.label_values.own() = *options.label_values;
  } else if (options.file_list && options.label_columns > 0) {
    auto [paths, values] = read_file_list(*options.file_list, options.label_columns, *options.storage);
    for (size_t i = 0; i < paths.size(); i++) add_entry(options, catalogue, paths[i], static_cast<int>(i));
    catalogue.label_values.own() = std::move(values);
  } else if (options.file_list) {
    for (const auto &[path, label] : read_file_list(*options.file_list, *options.storage))
      add_entry(options, catalogue, path, label);
  } else {
    Discovery found = is_uri(catalogue.root)
                          ? discover(options.storage->list(catalogue.root), discovery_options(options))
                          : discover(catalogue.root, discovery_options(options));
    catalogue.entries = std::move(found.files);
    catalogue.problems = std::move(found.problems);
  }
  return {};
}

void add_weights(const std::vector<float> &weights, Entries &entries) {
  if (weights.size() != entries.size())
    throw std::runtime_error("The argument weights has " + counted(weights.size(), "number") +
                             ", but the dataset has " + counted(entries.size(), "sample"));
  for (size_t i = 0; i < entries.size(); i++) entries.set_weight(i, weights[i]);
}

void add_companions(const CatalogueOptions &options, Catalogue &catalogue) {
  const size_t count = companion_count(options);
  if (options.companion_files) {
    auto path = options.companion_files->begin();
    for (size_t i = 0; i < catalogue.entries.size(); i++)
      for (size_t c = 1; c <= count; c++) {
        options.storage->require_readable(*path);
        catalogue.entries.push_companion(c, {*path++});
      }
  }
  for (size_t c = 0; c < options.companions.size(); c++) {
    options.storage->require_readable(options.companions[c]);
    const PathTemplate path(options.companions[c]);
    for (size_t i = 0; i < catalogue.entries.size(); i++)
      catalogue.entries.push_companion(c + 1, {path.path_for(catalogue.entries.file(i, 0).path)});
  }
}

std::string shown(const std::vector<std::string> &lines) {
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), kShown); i++) text += "\n  " + lines[i];
  return lines.size() > kShown ? text + "\n  …" : text;
}

void check_strictly(const Catalogue &catalogue) {
  std::vector<std::string> problems = catalogue.problems;
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < catalogue.entries.size(); i++)
    if (const File file = catalogue.entries.file(i, 0); !seen.insert(name_of(catalogue.archives, file)).second)
      problems.push_back(full_name(catalogue, file) + " is listed twice");
  if (!problems.empty())
    throw std::runtime_error("The dataset has " + counted(problems.size(), "problem") + ":" + shown(problems));
}

std::string nothing_found(const std::string &root) { return "No files found" + (root.empty() ? "" : " in " + root); }

std::string companion_name(const CatalogueOptions &options, size_t c) {
  if (options.archives) return options.archives->ext[c + 1];
  return options.companion_files ? std::to_string(c) : options.companions[c];
}

// Reports how many images lack a companion that may be missing, and which.
void report_missing_companions(const CatalogueOptions &options, Catalogue &catalogue) {
  for (size_t c = 0; c < companion_count(options); c++) {
    const std::string &replacement = if_missing(options, c);
    if (replacement == kMissingIsBad) continue;
    const std::string path = replacement == kMissingIsEmpty ? "" : replacement;
    std::vector<std::string> lacking;
    for (size_t i = 0; i < catalogue.entries.size(); i++)
      if (catalogue.entries.file(i, c + 1).path == path)
        lacking.push_back(full_name(catalogue, catalogue.entries.file(i, 0)));
    if (lacking.empty()) continue;
    catalogue.problems.push_back(std::to_string(lacking.size()) + " of " + counted(catalogue.entries.size(), "sample") +
                                 (lacking.size() == 1 ? " has" : " have") + " no companion " +
                                 companion_name(options, c) + ":" + shown(lacking) + "\n" +
                                 (path.empty() ? "Their output is empty" : path + " takes its place"));
  }
}

// Leaves out the entries that something is wrong with, or throws.
void remove_bad(const CatalogueOptions &options, const std::map<size_t, std::string> &problems, Catalogue &catalogue) {
  if (problems.empty()) return;
  const size_t all = catalogue.entries.size();
  std::vector<bool> good(all, true);
  std::vector<std::string> bad;
  for (const auto &[i, problem] : problems) {
    good[i] = false;
    bad.push_back(problem);
  }
  catalogue.entries.keep(good);
  const std::string text = std::to_string(bad.size()) + " of " + counted(all, "sample") +
                           (bad.size() == 1 ? " has bad files:" : " have bad files:") + shown(bad);
  if (options.on_error == OnError::raise) throw std::runtime_error(text);
  if (catalogue.entries.empty()) throw std::runtime_error(nothing_found(catalogue.root) + " that can be used: " + text);
  catalogue.problems.push_back(text + "\nThey are left out");
}

// What a catalogue's file lists.
Catalogue listed_before(const CatalogueOptions &options) {
  require(!options.file_root && !options.file_list && !options.files && !options.archives && !options.labels &&
              !options.label_values && options.label_columns == 0 && options.companions.empty() &&
              !options.companion_files,
          "The argument catalogue excludes all that say which samples there are: the catalogue does");
  Catalogue catalogue = open_catalogue(*options.catalogue).catalogue;
  if (options.weights) add_weights(*options.weights, catalogue.entries);
  select(options.subset, catalogue.label_columns == 0, catalogue.entries, catalogue.archives);
  return catalogue;
}

}  // namespace

std::vector<FileFormat> formats_of(const Catalogue &catalogue) {
  std::vector<FileFormat> formats;
  formats.reserve(catalogue.entries.size());
  for (size_t i = 0; i < catalogue.entries.size(); i++) formats.push_back(catalogue.entries.format(i));
  return formats;
}

size_t companion_count(const CatalogueOptions &options) {
  if (options.archives) return options.archives->ext.empty() ? 0 : options.archives->ext.size() - 1;
  if (!options.companion_files) return options.companions.size();
  if (!options.companions.empty())
    throw std::runtime_error("The arguments companions and companion_files exclude each other");
  if (!options.files) throw std::runtime_error("The argument companion_files needs the argument files");
  const size_t paths = options.companion_files->size(), files = options.files->size();
  if (files == 0 || paths % files != 0)
    throw std::runtime_error("The argument companion_files has " + counted(paths, "path") +
                             ", which is no multiple of the " + counted(files, "file"));
  return paths / files;
}

std::string full_name(const Catalogue &catalogue, const File &file) {
  if (!file.is_member()) return full_path(catalogue.root, file.path);
  return member_path(full_path(catalogue.root, catalogue.archives[file.archive]), file.path);
}

std::string stored_path(const Catalogue &catalogue, const File &file) {
  return full_path(catalogue.root, file.is_member() ? catalogue.archives[file.archive] : file.path);
}

std::string full_path(const std::string &root, const std::string &path) {
  if (root.empty() || path.starts_with('/') || is_uri(path)) return path;
  std::string full = root + (root.ends_with('/') ? "" : "/") + path;
  if (path.find("..") == std::string::npos || !is_uri(root)) return full;
  const size_t bucket = full.find("://") + 3;
  return full.substr(0, bucket) + std::filesystem::path(full.substr(bucket)).lexically_normal().string();
}

Catalogue list_dataset(const CatalogueOptions &options) {
  if (options.catalogue) return listed_before(options);
  check_arguments(options);
  Catalogue catalogue;
  catalogue.label_columns = options.label_columns;
  catalogue.root = root_of(options);
  check_replacements(options, catalogue.root);
  Inspection inspection(options, catalogue, list_files(options, catalogue));
  if (options.strict) check_strictly(catalogue);
  add_companions(options, catalogue);
  if (options.weights) add_weights(*options.weights, catalogue.entries);
  const bool by_label = options.label_columns == 0;
  if (options.subset.range && by_label) inspection.read_labels();  // a part holds them in proportion
  select(options.subset, by_label, catalogue.entries, catalogue.archives);
  if (options.sniff || options.sizes || options.check_headers || options.archives || companion_count(options) > 0)
    remove_bad(options, inspection.look_at_all(), catalogue);
  report_missing_companions(options, catalogue);
  catalogue.entries.shrink();
  if (catalogue.entries.empty() && options.file_list)
    throw std::runtime_error("file_list " + *options.file_list + " lists no files");
  if (catalogue.entries.empty())
    throw std::runtime_error(nothing_found(catalogue.root) +
                             explain_nothing(catalogue.root, discovery_options(options)));
  return catalogue;
}

}  // namespace dali_l3::loader
