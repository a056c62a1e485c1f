// Finds the index of an archive, or makes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "archives/archive_index.h"
#include "input/storage.h"

namespace dali_l3::loader {

/** Where the index of an archive is looked for, and written: beside it, with .idx in the place of .tar. */
std::string default_index_path(const std::string &archive);

/**
 * The index of an archive, from its members.
 *
 * @throws std::runtime_error, naming the archive, if it cannot be read, holds no samples, or as list_tar()
 */
ArchiveIndex make_index(const std::string &archive, const std::atomic<bool> *cancelled = nullptr,
                        const Storage &storage = *Storage::local());

/** The index of an archive from a file. @throws std::runtime_error if it cannot be read or does not fit the archive */
ArchiveIndex read_index(const std::string &path, const std::string &archive,
                        const Storage &storage = *Storage::local());

/** Whether a text is that of an index which this program has made, and fits the archive still.
 *
 * @throws FileError if the archive cannot be read */
bool is_index_of(const std::string &archive, const std::string &text, const Storage &storage = *Storage::local());

/** Writes the index of an archive of so many bytes to a file, which appears when it is whole. @throws FileError */
void save_index(const ArchiveIndex &index, uint64_t archive_size, const std::string &path);

struct IndexUpdate {
  bool was_current;      ///< nothing was written
  size_t repeated_keys;  ///< samples that have the key of another one
};

/**
 * Writes the index of an archive, unless the file is one that this program has made and that fits the archive still.
 *
 * @param overwrite whether it is written in any case, and also in the place of a file that is no index
 * @throws std::runtime_error as make_index() and save_index(), or if the file is there and no index
 */
IndexUpdate update_index(const std::string &archive, const std::string &path, bool overwrite);

struct FoundIndex {
  ArchiveIndex index;
  std::string problem = {};  ///< why it could not be saved for the next time; empty if it could, or was found
};

/**
 * The index that lies beside the archive; or, if that is missing, one that was made before and lies in the cache; or
 * one that is made now, and saved beside the archive or, if that is not possible, in the cache: the folder dali_l3 in
 * XDG_CACHE_HOME, or in ~/.cache. One of ours that no longer fits its archive is made anew. Nothing is written to
 * buckets.
 *
 * @throws std::runtime_error as make_index(), or if an index beside the archive that others have made is bad
 */
FoundIndex find_index(const std::string &archive, const std::atomic<bool> *cancelled = nullptr,
                      const Storage &storage = *Storage::local());

}  // namespace dali_l3::loader
