// What a reader's checkpoint holds, and its text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "settings.h"

namespace dali_l3::loader {

/** What the shards of one world have delivered. */
struct Stage {
  int64_t batches = 0;      ///< of each shard, at least 0
  Settings arguments = {};  ///< see Sampling::settings

  bool operator==(const Stage &) const = default;
};

/** All that the next batch of a reader follows from, besides the dataset. */
struct Checkpoint {
  int64_t seed = 0;
  int shard_id = 0;
  Settings dataset = {};           ///< see fingerprint.h
  std::vector<Stage> stages = {};  ///< at least one; each goes on with what the one before has left of its epoch

  bool operator==(const Checkpoint &) const = default;
};

/** Words of the form NAME=VALUE, the last one the CRC-32 of what stands before it, with spaces between them. */
std::string write_checkpoint(const Checkpoint &checkpoint);

/** @throws std::invalid_argument unless write_checkpoint(), of this version, has written the text */
Checkpoint parse_checkpoint(std::string_view text);

}  // namespace dali_l3::loader
