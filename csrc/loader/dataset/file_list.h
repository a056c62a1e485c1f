// Files and labels listed in a text file.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dali_l3::loader {

/**
 * Reads the format of fn.readers.file: on each line a path and, after white space, a label, a number without a sign.
 * Paths may hold white space; empty lines are passed over.
 *
 * @throws std::runtime_error if the file cannot be read, or naming all lines that are not of this form, with their
 * numbers
 */
std::vector<std::pair<std::string, int>> read_file_list(const std::string &path);

}  // namespace dali_l3::loader
