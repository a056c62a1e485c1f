// The samples of a fixed shard by format, every format divided among the shards by itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataset/file_format.h"
#include "plans/shards.h"

namespace dali_l3::loader {

/** The entries of one format. */
struct FormatGroup {
  FileFormat format;
  std::vector<uint32_t> entries;  ///< indices into the catalogue, ascending; at least one
};

/** Samples of all formats together. */
int64_t sample_count(std::span<const FormatGroup> groups);

/**
 * The entries of shard `shard_id`. Over all shards every entry occurs once, shards have the sizes of DALI's, and each
 * holds the floor or the ceiling of its share 1 / num_shards of every format.
 *
 * @param formats of every entry of the catalogue
 * @param draw each shard gets one of every num_shards neighbours in a format, and which one is drawn at random, by the
 * same draw for all shards; otherwise it gets a stretch of the catalogue
 * @return by format, ascending; formats that the shard lacks are left out
 * @throws std::runtime_error where the options do not suit the catalogue
 */
std::vector<FormatGroup> format_groups(std::span<const FileFormat> formats, const ShardOptions &options, bool draw);

/** The same for some of the entries, ascending. If there are fewer than shards, some shards get none. */
std::vector<FormatGroup> format_groups(std::span<const uint32_t> some, std::span<const FileFormat> formats,
                                       const ShardOptions &options, bool draw);

}  // namespace dali_l3::loader
