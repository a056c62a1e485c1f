// A sample of a dataset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/file_format.h"

namespace dali_l3::loader {

/** A file, or a member of an archive. */
struct File {
  static constexpr uint32_t kNoArchive = UINT32_MAX;

  std::string path = {};          ///< relative to the catalogue's root, or absolute; of a member, its name
  uint64_t size = 0;              ///< bytes; 0 if nobody asked
  uint64_t offset = 0;            ///< of a member: never 0, where every archive has something else
  uint32_t archive = kNoArchive;  ///< of a member: its place in Catalogue::archives

  bool is_member() const { return archive != kNoArchive; }
};

/** What a file is called: its path, relative to the root; a member, "archive:name". `archives` is the catalogue's. */
inline std::string name_of(const std::vector<std::string> &archives, const File &file) {
  return file.is_member() ? archives[file.archive] + ":" + file.path : file.path;
}

/** A sample. */
struct Entry {
  File file;
  int label = 0;                            ///< with label_columns: the row of its numbers in Catalogue::label_values
  float weight = 1;                         ///< how often it is to be drawn, compared with others
  FileFormat format = FileFormat::unknown;  ///< so also if nobody asked
  std::vector<File> companions;             ///< a path that is empty: the image has none, and does well without
};

}  // namespace dali_l3::loader
