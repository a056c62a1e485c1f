// The samples in archives.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "dataset/entries.h"
#include "input/storage.h"

namespace dali_l3::loader {

/** Archives and what of them makes up a sample, as arguments of fn.readers.webdataset, and its label. */
struct ArchiveOptions {
  std::vector<std::string> paths = {};  ///< as expand_paths() takes them
  std::optional<std::vector<std::string>> index_paths = {};
  /** Extensions of the image and of each companion, alternatives separated by semicolons. */
  std::vector<std::string> ext = {};
  /** What to do about samples that lack one of these: kMissingIsBad, kMissingIsEmpty, which does for companions only,
   * or kMissingIsSkipped. */
  std::string missing_component_behavior = "empty";
  bool case_sensitive_extensions = true;
  std::optional<std::string> label_ext = {};    ///< as one of ext; none: labels are the places of the entries
  std::optional<std::string> label_field = {};  ///< where in a JSON object; see label_numbers()
};

/** A name of ArchiveOptions::missing_component_behavior: samples that lack a component or the label are left out. */
inline constexpr const char *kMissingIsSkipped = "skip";

struct ArchiveListing {
  std::string root;                   ///< the folder that all archives have in common
  std::vector<std::string> archives;  ///< relative to it
  Entries entries;                    ///< the label: a place in label_files; a component that is missing has offset 0
  std::vector<File> label_files;      ///< one for each entry if the options have label_ext, else none
  std::vector<std::string> problems;  ///< what users may not expect, a line each
};

/**
 * Lists the samples of archives: one archive after the other, in each in its order. Of several members with an
 * extension that is asked for, the first in the archive is taken.
 *
 * @param threads that look at archives
 * @param cancelled if given and set, the listing ends with an error soon
 * @throws std::runtime_error if an option has no such value, or an archive or index cannot be used
 */
ArchiveListing list_archives(const ArchiveOptions &options, int threads, const std::atomic<bool> *cancelled,
                             const Storage &storage = *Storage::local());

}  // namespace dali_l3::loader
