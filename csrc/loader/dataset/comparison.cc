#include "dataset/comparison.h"

#include <map>
#include <stdexcept>

#include "dataset/counted.h"
#include "dataset/inspection.h"
#include "input/storage.h"
#include "input/uri.h"

namespace dali_l3::loader {
namespace {

// Options with which everything is looked at, and companions may be missing.
CatalogueOptions options_for(const Catalogue &catalogue, int threads, const std::atomic<bool> *cancelled,
                             const std::shared_ptr<Storage> &storage) {
  CatalogueOptions options{
      .sniff = true, .sizes = true, .storage = storage, .threads = threads, .cancelled = cancelled};
  options.missing_companions = {kMissingIsEmpty};
  if (!catalogue.archives.empty())
    options.archives =
        ArchiveOptions{.ext = std::vector<std::string>(1 + catalogue.entries.companions(), "of its kind")};
  return options;
}

// The entries of a catalogue without the sizes of files in buckets, which are asked for only where none is known.
Entries without_sizes_in_buckets(const Catalogue &catalogue) {
  Entries entries = catalogue.entries.compact();
  entries.prepare();
  const auto forget = [&](File &file) {
    if (!file.is_member() && is_uri(full_path(catalogue.root, file.path))) file.size = 0;
  };
  for (size_t i = 0; i < entries.size(); i++) {
    Entry entry = entries[i];
    forget(entry.file);
    for (File &companion : entry.companions) forget(companion);
    entries.set_looked_at(i, entry);
  }
  return entries;
}

std::string size_problem(uint64_t found, uint64_t listed) {
  if (found == listed) return "";
  if (found == 0) return "is missing";
  return "has " + counted(found, "byte") + ", and not " + std::to_string(listed);
}

// What differs between two catalogues of the same files.
std::string difference(const Catalogue &listed, const Catalogue &found, size_t i) {
  const FileFormat was = listed.entries.format(i), is = found.entries.format(i);
  for (size_t component = 0; component <= listed.entries.companions(); component++) {
    const File before = listed.entries.file(i, component);
    if (const std::string problem = size_problem(found.entries.file(i, component).size, before.size); !problem.empty())
      return full_name(listed, before) + ": " + problem;
  }
  if (was == is) return "";
  return full_name(listed, listed.entries.file(i, 0)) + ": is of the format " + format_name(is) + ", and not " +
         format_name(was);
}

}  // namespace

std::vector<std::string> compare_with_files(const Catalogue &catalogue, int threads, const std::atomic<bool> *cancelled,
                                            const std::shared_ptr<Storage> &storage) {
  storage->require_readable(stored_path(catalogue, catalogue.entries.file(0, 0)));
  std::vector<std::string> problems;
  for (size_t i = 0; i < catalogue.archive_sizes.size(); i++) {
    const std::string path = full_path(catalogue.root, catalogue.archives[i]);
    try {
      const std::string problem = size_problem(storage->open(path)->size(), catalogue.archive_sizes[i]);
      if (!problem.empty()) problems.push_back(path + ": " + problem);
    } catch (const StorageError &) {
      throw;
    } catch (const FileError &error) {
      problems.emplace_back(error.what());
    }
  }
  const CatalogueOptions options = options_for(catalogue, threads, cancelled, storage);
  Catalogue found = catalogue;
  found.entries = without_sizes_in_buckets(catalogue);
  const std::map<size_t, std::string> bad = Inspection(options, found, {}).look_at_all();
  for (size_t i = 0; i < catalogue.entries.size(); i++) {
    const auto place = bad.find(i);
    std::string problem = place != bad.end() ? place->second : difference(catalogue, found, i);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace dali_l3::loader
