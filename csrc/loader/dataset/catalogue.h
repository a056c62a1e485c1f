// The samples of a dataset: their files, labels and formats.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/archive_listing.h"
#include "dataset/entries.h"
#include "dataset/subset.h"
#include "input/storage.h"

namespace dali_l3::loader {

/** Names of CatalogueOptions::missing_companions. @{ */
inline constexpr const char *kMissingIsBad = "error", *kMissingIsEmpty = "empty";
/** @} */

/** The default of the readers' file_filters: that of fn.readers.file, and *.l3. */
inline const std::vector<std::string> kImageFilters = {"*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff",
                                                       "*.pnm", "*.ppm",  "*.pgm", "*.pbm", "*.jp2", "*.webp",
                                                       "*.l3",  "*.flac", "*.ogg", "*.wav"};

/** What to do about bad files: missing, empty, unreadable, of no known format, or found damaged by a Check. */
enum class OnError { raise, skip, substitute };

struct CatalogueOptions {
  /** @name Where the files are, as arguments of fn.readers.file @{ */
  std::optional<std::string> file_root = {}, file_list = {};
  std::optional<std::vector<std::string>> files = {};
  std::optional<std::vector<int>> labels = {};
  /** Numbers of the label of each of the files, one file after the other; or in each line of file_list, at its end. */
  std::optional<std::vector<float>> label_values = {};
  int label_columns = 0;  ///< how many of them a label has; 0: labels are integers
  std::vector<std::string> file_filters = {"*"}, dir_filters = {"*"};
  bool case_sensitive_filter = false;
  /** Archives in the place of all of these. */
  std::optional<ArchiveOptions> archives = {};
  /** A catalogue's file in the place of all of these and of companions. No file is looked at then. */
  std::optional<std::string> catalogue = {};
  /** @} */

  std::vector<std::string> companions = {};  ///< path templates, relative to the root; see companions.h
  /** Paths of the companions of each of the files, one file after the other, in the place of templates. */
  std::optional<std::vector<std::string>> companion_files = {};
  /** What to do where a companion does not exist, once for all or for each of them: kMissingIsBad, kMissingIsEmpty, or
   * the path, relative to the root, of a file that takes its place. */
  std::vector<std::string> missing_companions = {kMissingIsBad};
  Subset subset = {};
  std::optional<std::vector<float>> weights = {};  ///< of each listed sample, whether it is in the subset or not
  OnError on_error = OnError::raise;
  bool strict = false;  ///< what users may not expect of the dataset, and what is listed twice, is an error

  /** @name What to find out about every file; unless any is asked for, images are not looked at @{ */
  bool sniff = false;  ///< the format; files of none are bad
  bool sizes = false;
  bool check_headers = false;  ///< whether the header is whole, companions' too; see file_check.h
  /** @} */

  std::shared_ptr<Storage> storage = Storage::local();  ///< where they are
  int threads = 8;                                      ///< that look at files
  const std::atomic<bool> *cancelled = nullptr;         ///< if given and set, the listing ends with an error soon
};

struct Catalogue {
  std::string file = {};  ///< the path of the file that it comes from; see catalogue_file.h
  std::string root;
  std::vector<std::string> archives = {};    ///< relative to the root, or absolute
  std::vector<uint64_t> archive_sizes = {};  ///< of each, if it comes from a file
  Entries entries;
  Array<float> label_values;          ///< with label_columns: so many for each label
  int label_columns = 0;              ///< numbers of a label; 0: labels are integers
  std::vector<std::string> problems;  ///< what users may not expect, a line each, and last all that was left out
};

/**
 * Lists a dataset, with the entries and labels of fn.readers.file of DALI 2.4.0 in its order.
 *
 * Of these it takes the subset; paths outside it are not looked at.
 *
 * With OnError::skip and OnError::substitute entries with bad files or missing companions are left out.
 *
 * @throws std::runtime_error if the options contradict each other, there are no files, a path is a URI that the storage
 * refuses, or files are bad, either any with OnError::raise or all: it names the first of them
 */
Catalogue list_dataset(const CatalogueOptions &options);

/** The format of every entry. */
std::vector<FileFormat> formats_of(const Catalogue &catalogue);

/** How many companions an image has. @throws std::runtime_error if the options contradict each other */
size_t companion_count(const CatalogueOptions &options);

/** What messages call a file: its full path; a member, "archive: name". */
std::string full_name(const Catalogue &catalogue, const File &file);

/** The full path of a file, or of the archive that it is in. */
std::string stored_path(const Catalogue &catalogue, const File &file);

/** `path` relative to `root`; absolute paths and URIs stay as they are. In buckets ".." is resolved: they know no such
 * folder. */
std::string full_path(const std::string &root, const std::string &path);

}  // namespace dali_l3::loader
