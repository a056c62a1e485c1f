#include "dataset/catalogue.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <future>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "checks/file_check.h"
#include "dataset/companions.h"
#include "dataset/counted.h"
#include "dataset/discovery.h"
#include "dataset/file_list.h"
#include "input/arena.h"
#include "input/file_reading.h"
#include "input/open_file.h"
#include "input/read_pool.h"

namespace dali_l3::loader {
namespace {

// Bad files that an error shows, and that a warning shows each.
constexpr size_t kShown = 20;

// Entries that a thread looks at in one go.
constexpr size_t kStretch = 256;

void check_arguments(const CatalogueOptions &options) {
  const auto require = [](bool condition, const char *message) {
    if (!condition) throw std::runtime_error(message);
  };
  require(options.file_root || options.file_list || options.files,
          "One of the arguments file_root, file_list and files is needed");
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
  if (options.file_root) require_local(*options.file_root);
  if (options.file_list) require_local(*options.file_list);
}

std::string root_of(const CatalogueOptions &options) {
  if (options.file_root) return *options.file_root;
  const size_t slash = options.file_list ? options.file_list->rfind('/') : std::string::npos;
  return slash == std::string::npos ? "" : options.file_list->substr(0, slash);
}

void add_entry(Catalogue &catalogue, std::string path, int label) {
  require_local(path);
  Entry &entry = catalogue.entries.emplace_back();
  entry.file.path = std::move(path);
  entry.label = label;
}

DiscoveryOptions discovery_options(const CatalogueOptions &options) {
  return {options.file_filters, options.dir_filters, options.case_sensitive_filter};
}

void list_files(const CatalogueOptions &options, Catalogue &catalogue) {
  if (options.files) {
    for (size_t i = 0; i < options.files->size(); i++)
      add_entry(catalogue, (*options.files)[i], options.labels ? (*options.labels)[i] : static_cast<int>(i));
    if (options.label_values) catalogue.label_values = *options.label_values;
  } else if (options.file_list && options.label_columns > 0) {
    auto [paths, values] = read_file_list(*options.file_list, options.label_columns);
    for (size_t i = 0; i < paths.size(); i++) add_entry(catalogue, std::move(paths[i]), static_cast<int>(i));
    catalogue.label_values = std::move(values);
  } else if (options.file_list) {
    for (auto &[path, label] : read_file_list(*options.file_list)) add_entry(catalogue, std::move(path), label);
  } else {
    Discovery found = discover(catalogue.root, discovery_options(options));
    for (DiscoveredFile &file : found.files) add_entry(catalogue, std::move(file.path), file.label);
    catalogue.problems = std::move(found.problems);
  }
}

void add_weights(const std::vector<float> &weights, std::vector<Entry> &entries) {
  if (weights.size() != entries.size())
    throw std::runtime_error("The argument weights has " + counted(weights.size(), "number") +
                             ", but the dataset has " + counted(entries.size(), "sample"));
  for (size_t i = 0; i < entries.size(); i++) entries[i].weight = weights[i];
}

// What to do where companion `c` does not exist.
const std::string &if_missing(const CatalogueOptions &options, size_t c) {
  return options.missing_companions[options.missing_companions.size() == 1 ? 0 : c];
}

void add_companions(const CatalogueOptions &options, Catalogue &catalogue) {
  const size_t count = companion_count(options);
  if (options.companion_files) {
    auto path = options.companion_files->begin();
    for (Entry &entry : catalogue.entries)
      for (size_t c = 0; c < count; c++) {
        require_local(*path);
        entry.companions.push_back({*path++});
      }
  }
  for (const std::string &text : options.companions) {
    require_local(text);
    const PathTemplate path(text);
    for (Entry &entry : catalogue.entries) entry.companions.push_back({path.path_for(entry.file.path)});
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
  for (const Entry &entry : catalogue.entries)
    if (!seen.insert(entry.file.path).second)
      problems.push_back(full_path(catalogue.root, entry.file.path) + " is listed twice");
  if (!problems.empty())
    throw std::runtime_error("The dataset has " + counted(problems.size(), "problem") + ":" + shown(problems));
}

// Finds out a file's size and, if it is to be sniffed, its format. Throws what is wrong with it.
FileFormat look_at_file(const std::string &path, bool sniffs, bool checks_header, File &file) {
  const OpenFile open(path);
  file.size = open.size();
  check_size(path, file.size);
  if (!sniffs) return FileFormat::unknown;
  const auto read = [&](uint64_t offset, std::span<uint8_t> bytes) { return open.read_at(offset, bytes); };
  uint8_t bytes[std::max(kSniffedBytes, kLfsBytes)];
  const std::span<const uint8_t> head(bytes, read(0, bytes));
  refuse_lfs_pointer(path, head);
  if (checks_header) refuse_garbage(path, head);
  const FileFormat format = sniff(head);
  if (checks_header) check_header(path, format, file.size, read);
  return format;
}

bool is_missing(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

// What takes the place of missing companions must not be missing, whether it is needed or not: it may be a name
// misspelt.
void check_replacements(const CatalogueOptions &options, const std::string &root) {
  for (const std::string &replacement : options.missing_companions) {
    if (replacement == kMissingIsBad || replacement == kMissingIsEmpty) continue;
    if (const std::string path = full_path(root, replacement); is_missing(path))
      throw std::runtime_error("missing_companions is \"" + replacement +
                               "\", but must be \"error\", \"empty\" or the path of a file, and there is no " + path);
  }
}

// Finds out the size of companion `c` of an image, whose path is empty if a list has none, or puts what it may be
// replaced by in its place. Throws what is wrong with it.
void look_at_companion(const CatalogueOptions &options, const std::string &root, size_t c, Entry &entry) {
  File &companion = entry.companions[c];
  const std::string &replacement = if_missing(options, c);
  if (replacement == kMissingIsBad && companion.path.empty())
    fail_file(full_path(root, entry.file.path), "the path of its companion " + std::to_string(c) + " is empty");
  if (replacement != kMissingIsBad && (companion.path.empty() || is_missing(full_path(root, companion.path)))) {
    companion = {replacement == kMissingIsEmpty ? "" : replacement};
    if (companion.path.empty()) return;
  }
  look_at_file(full_path(root, companion.path), options.check_headers, options.check_headers, companion);
}

// What is wrong with an entry's files; empty if nothing is.
std::string look_at(const CatalogueOptions &options, const std::string &root, Entry &entry) {
  const bool checks = options.check_headers, sniffs = options.sniff || checks;
  try {
    if (sniffs || options.sizes) {
      const std::string path = full_path(root, entry.file.path);
      entry.format = look_at_file(path, sniffs, checks, entry.file);
      if (sniffs && entry.format == FileFormat::unknown) fail_file(path, "of no known image format");
    }
    for (size_t c = 0; c < entry.companions.size(); c++) look_at_companion(options, root, c, entry);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "";
}

// What is wrong with each entry, found by many threads.
std::vector<std::string> look_at_all(const CatalogueOptions &options, Catalogue &catalogue) {
  std::vector<Entry> &entries = catalogue.entries;
  std::vector<std::string> problems(entries.size());
  ReadPool pool(options.threads);
  std::vector<std::future<void>> stretches;
  for (size_t first = 0; first < entries.size(); first += kStretch) {
    stretches.push_back(pool.submit([&, first] {
      for (size_t i = first; i < std::min(first + kStretch, entries.size()); i++) {
        if (options.cancelled && *options.cancelled) return;
        problems[i] = look_at(options, catalogue.root, entries[i]);
      }
    }));
  }
  for (auto &stretch : stretches) stretch.get();
  if (options.cancelled && *options.cancelled) throw std::runtime_error("The listing of the dataset was interrupted");
  return problems;
}

std::string nothing_found(const std::string &root) { return "No files found" + (root.empty() ? "" : " in " + root); }

// Reports how many images lack a companion that may be missing, and which.
void report_missing_companions(const CatalogueOptions &options, Catalogue &catalogue) {
  for (size_t c = 0; c < companion_count(options); c++) {
    const std::string &replacement = if_missing(options, c);
    if (replacement == kMissingIsBad) continue;
    const std::string path = replacement == kMissingIsEmpty ? "" : replacement;
    std::vector<std::string> lacking;
    for (const Entry &entry : catalogue.entries)
      if (entry.companions[c].path == path) lacking.push_back(full_path(catalogue.root, entry.file.path));
    if (lacking.empty()) continue;
    catalogue.problems.push_back(std::to_string(lacking.size()) + " of " + counted(catalogue.entries.size(), "sample") +
                                 (lacking.size() == 1 ? " has" : " have") + " no companion " +
                                 (options.companion_files ? std::to_string(c) : options.companions[c]) + ":" +
                                 shown(lacking) + "\n" +
                                 (path.empty() ? "Their output is empty" : path + " takes its place"));
  }
}

// Leaves out the entries that something is wrong with, or throws.
void remove_bad(const CatalogueOptions &options, const std::vector<std::string> &problems, Catalogue &catalogue) {
  std::vector<std::string> bad;
  std::vector<Entry> good;
  for (size_t i = 0; i < problems.size(); i++) {
    if (problems[i].empty())
      good.push_back(std::move(catalogue.entries[i]));
    else
      bad.push_back(problems[i]);
  }
  catalogue.entries = std::move(good);
  if (bad.empty()) return;
  const std::string text = std::to_string(bad.size()) + " of " + counted(problems.size(), "sample") +
                           (bad.size() == 1 ? " has bad files:" : " have bad files:") + shown(bad);
  if (options.on_error == OnError::raise) throw std::runtime_error(text);
  if (catalogue.entries.empty()) throw std::runtime_error(nothing_found(catalogue.root) + " that can be used: " + text);
  catalogue.problems.push_back(text + "\nThey are left out");
}

}  // namespace

std::vector<FileFormat> formats_of(const Catalogue &catalogue) {
  std::vector<FileFormat> formats;
  formats.reserve(catalogue.entries.size());
  for (const Entry &entry : catalogue.entries) formats.push_back(entry.format);
  return formats;
}

uint64_t memory_of(const Entry &entry) {
  uint64_t bytes = whole_pages(entry.file.size);
  for (const File &companion : entry.companions) bytes += whole_pages(companion.size);
  return bytes;
}

size_t companion_count(const CatalogueOptions &options) {
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

std::string full_path(const std::string &root, const std::string &path) {
  return root.empty() || path.starts_with('/') ? path : root + (root.ends_with('/') ? "" : "/") + path;
}

void require_local(const std::string &path) {
  const size_t end = path.find("://");  // of the scheme
  const auto in_scheme = [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '-' || c == '.'; };
  if (end == std::string::npos || end == 0 || !std::all_of(path.begin(), path.begin() + end, in_scheme)) return;
  throw std::runtime_error(path + " is a URI: only paths of files in local or mounted file systems can be read");
}

Catalogue list_dataset(const CatalogueOptions &options) {
  check_arguments(options);
  Catalogue catalogue;
  catalogue.root = root_of(options);
  check_replacements(options, catalogue.root);
  list_files(options, catalogue);
  if (options.strict) check_strictly(catalogue);
  add_companions(options, catalogue);
  if (options.weights) add_weights(*options.weights, catalogue.entries);
  select(options.subset, options.label_columns == 0, catalogue.entries);
  if (options.sniff || options.sizes || options.check_headers || companion_count(options) > 0)
    remove_bad(options, look_at_all(options, catalogue), catalogue);
  report_missing_companions(options, catalogue);
  if (catalogue.entries.empty())
    throw std::runtime_error(nothing_found(catalogue.root) +
                             explain_nothing(catalogue.root, discovery_options(options)));
  return catalogue;
}

}  // namespace dali_l3::loader
