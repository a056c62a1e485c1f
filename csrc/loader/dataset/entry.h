// A sample of a dataset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/file_format.h"

namespace dali_l3::loader {

struct File {
  std::string path;   ///< relative to the catalogue's root, or absolute
  uint64_t size = 0;  ///< bytes; 0 if nobody asked
};

/** A sample. */
struct Entry {
  File file;
  int label = 0;                            ///< with label_columns: the row of its numbers in Catalogue::label_values
  float weight = 1;                         ///< how often it is to be drawn, compared with others
  FileFormat format = FileFormat::unknown;  ///< so also if nobody asked
  std::vector<File> companions;             ///< a path that is empty: the image has none, and does well without
};

}  // namespace dali_l3::loader
