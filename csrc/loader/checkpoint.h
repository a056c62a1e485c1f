// What a reader's checkpoint holds, and its text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dali_l3::loader {

/** All that the next batch follows from, besides the reader's arguments and the dataset. */
struct Checkpoint {
  int64_t seed = 0;
  int64_t batch = 0;  ///< number of the next batch, at least 0

  bool operator==(const Checkpoint &) const = default;
};

/** The seed and the batch as decimal numbers and the CRC-32 of these, as 8 digits of hex, with spaces between them. */
std::string write_checkpoint(const Checkpoint &checkpoint);

/** @throws std::invalid_argument unless write_checkpoint() has written the text */
Checkpoint parse_checkpoint(std::string_view text);

}  // namespace dali_l3::loader
