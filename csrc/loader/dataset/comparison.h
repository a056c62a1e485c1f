// Whether a catalogue still fits the files that it lists.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "dataset/catalogue.h"
#include "input/storage.h"

namespace dali_l3::loader {

/**
 * What has changed since a catalogue was made, a line for each file: it is missing, unreadable, of another size or, if
 * an image, of another format. Of archives, also their sizes are compared.
 *
 * @param threads that look at files
 * @param cancelled if given and set, this ends with an error soon
 * @param storage where the files are; of each in a bucket it is asked for the size and for the first bytes
 * @throws std::runtime_error also if the first file is a URI that the storage refuses
 */
std::vector<std::string> compare_with_files(const Catalogue &catalogue, int threads, const std::atomic<bool> *cancelled,
                                            const std::shared_ptr<Storage> &storage = Storage::local());

}  // namespace dali_l3::loader
