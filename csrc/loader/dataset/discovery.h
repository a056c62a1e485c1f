// Lists the files in the class folders of a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/entries.h"
#include "input/object_store.h"

namespace dali_l3::loader {

struct DiscoveryOptions {
  std::vector<std::string> file_filters;  ///< glob patterns for the files' names; one must match
  std::vector<std::string> dir_filters;   ///< for the class folders' names; one must match
  bool case_sensitive_filter = false;
};

struct Discovery {
  Entries files;                      ///< relative to the root, with labels; in buckets with sizes
  std::vector<std::string> problems;  ///< what users may not expect, a line each
};

/**
 * The files and labels that fn.readers.file of DALI 2.4.0 finds, in its order: class folders by name, labels 0, 1, … by
 * folder, in each the regular files and links by name. Folders in class folders are passed over, and so are links to
 * folders, which fn.readers.file takes for files and cannot read. Hidden folders count as class folders, and folders
 * without files have labels too; both are reported as problems, as are links to nothing and the links passed over.
 *
 * @throws std::runtime_error if a folder cannot be read, or the root holds a link to nothing
 */
Discovery discover(const std::string &root, const DiscoveryOptions &options);

/**
 * The same for what a bucket holds, in the order of a folder with such files. A folder has a label if anything that is
 * listed lies in it.
 */
Discovery discover(std::vector<StoredObject> objects, const DiscoveryOptions &options);

/**
 * Where discover() found no files: what there is instead, in the root and in the folders below it, and what to do, a
 * line each. Folders that cannot be read hold nothing. Of buckets it says what may be wrong.
 */
std::string explain_nothing(const std::string &root, const DiscoveryOptions &options);

}  // namespace dali_l3::loader
