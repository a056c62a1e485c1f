// Paths of archives, as people write them.
#pragma once

#include <string>
#include <vector>

#include "input/storage.h"

namespace dali_l3::loader {

/**
 * The paths that these stand for, in their order: each is a path, a pattern such as "train-*.tar", a range such as
 * "train-{000..015}.tar" or a choice such as "{train,val}.tar", or a text file whose name ends with .txt that has one
 * of these on each line, relative to its own folder. What a pattern finds comes by name. A path of a file that exists
 * is taken as it is. Of URIs it is not asked whether they exist; only the last part of one may be a pattern.
 *
 * @param argument for messages
 * @throws std::runtime_error if a pattern finds nothing, a text file cannot be read or is empty, a brace range has an
 * impossible border or stands for more than a million paths, or a path is a URI that the
 * storage refuses
 */
std::vector<std::string> expand_paths(const char *argument, const std::vector<std::string> &paths,
                                      const Storage &storage = *Storage::local());

}  // namespace dali_l3::loader
