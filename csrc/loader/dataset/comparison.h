// Whether a catalogue still fits the files that it lists.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "dataset/catalogue.h"

namespace dali_l3::loader {

/**
 * What has changed since a catalogue was made, a line for each file: it is missing, unreadable, of another size or, if
 * an image, of another format. Of archives, also their sizes are compared.
 *
 * @param threads that look at files
 * @param cancelled if given and set, this ends with an error soon
 * @throws std::runtime_error also if the first file is a URI: buckets are not looked at
 */
std::vector<std::string> compare_with_files(const Catalogue &catalogue, int threads,
                                            const std::atomic<bool> *cancelled);

}  // namespace dali_l3::loader
