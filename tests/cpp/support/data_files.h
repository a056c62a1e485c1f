// The files of tests/data.
#pragma once

#include "images.h"

namespace l3 {

struct DataFile {
  std::string name;
  Bytes bytes;
};

// All files of a folder of tests/data, by name.
std::vector<DataFile> data_files(const std::string &folder);

// A text file of tests/data.
std::string data_text(const std::string &name);

}  // namespace l3
