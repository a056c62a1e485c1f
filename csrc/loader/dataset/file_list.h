// Files and labels listed in a text file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "input/storage.h"

namespace dali_l3::loader {

/**
 * Reads the format of fn.readers.file: on each line a path and, after white space, a label, a number without a sign.
 * Paths may hold white space; empty lines are passed over.
 *
 * @throws std::runtime_error if the file cannot be read, or naming all lines that are not of this form, with their
 * numbers
 */
std::vector<std::pair<std::string, int>> read_file_list(const std::string &path,
                                                        const Storage &storage = *Storage::local());

struct ListedVectors {
  std::vector<std::string> paths;
  std::vector<float> values;  ///< so many for each path as were asked for
};

/**
 * The same, but each path is followed by `columns` numbers, which may have a sign, a fraction and an exponent.
 *
 * @throws std::runtime_error as above
 */
ListedVectors read_file_list(const std::string &path, int columns, const Storage &storage = *Storage::local());

}  // namespace dali_l3::loader
