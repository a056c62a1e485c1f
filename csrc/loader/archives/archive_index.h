// Which members of an archive make up which sample, and the text file that says so: an index of fn.readers.webdataset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "archives/tar.h"

namespace dali_l3::loader {

/** The samples of an archive. The members of sample `i` are those from `begins[i]` to `begins[i + 1]`. */
struct ArchiveIndex {
  std::vector<TarMember> members;
  std::vector<uint64_t> begins = {0};  ///< one more than there are samples

  size_t samples() const { return begins.size() - 1; }
  bool operator==(const ArchiveIndex &) const = default;
};

/** @name A member's name in two parts: its sample's key, and what is behind the first dot after the last slash @{ */
std::string_view key_of(std::string_view name);
std::string_view extension_of(std::string_view name);
/** @} */

/**
 * Puts members of one key together, wherever they are, in the order of the first of each.
 *
 * A name that repeats begins another sample of its key. Members without a key or an extension, and those that
 * webdataset takes for its own, with names or folders such as __meta__, belong to no sample.
 */
ArchiveIndex group(std::vector<TarMember> members);

/** How many samples have the key of another one. */
size_t repeated_keys(const ArchiveIndex &index);

/**
 * The text of an index, version 1.2: "v1.2 SAMPLES size=BYTES", then a line for each sample, with the extension,
 * offset, size and name of each member.
 *
 * BYTES is the archive's size. Where a name has white space, "names=percent" is added to the first line, and white
 * space, control characters and % are written as in URIs, since spaces separate what is in a line.
 * fn.readers.webdataset reads no more of the first line than the number.
 */
std::string write_index(const ArchiveIndex &index, uint64_t archive_size);

/**
 * Reads an index of version 1.1, where members have no names and get those of the sample's number, or 1.2. Names may
 * hold spaces, as wds2idx writes them, if they end with their extension.
 *
 * @param path of the index, for messages
 * @throws std::runtime_error, naming the index and the line, if it is none, is cut off or does not fit an archive of
 * this size
 */
ArchiveIndex parse_index(const std::string &path, std::string_view text, uint64_t archive_size);

}  // namespace dali_l3::loader
