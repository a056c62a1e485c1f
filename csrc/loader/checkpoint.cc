#include "checkpoint.h"

#include <charconv>
#include <cstdio>
#include <stdexcept>

#include "l3/format/crc32.h"

namespace dali_l3::loader {

std::string write_checkpoint(const Checkpoint &checkpoint) {
  const std::string numbers = std::to_string(checkpoint.seed) + " " + std::to_string(checkpoint.batch);
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, " %08x", l3::crc32_ieee(numbers.data(), numbers.size()));
  return numbers + checksum;
}

Checkpoint parse_checkpoint(std::string_view text) {
  Checkpoint checkpoint;
  const char *const end = text.data() + text.size();
  const auto [space, seed_error] = std::from_chars(text.data(), end, checkpoint.seed);
  if (seed_error == std::errc() && space != end) std::from_chars(space + 1, end, checkpoint.batch);
  // One text for each state: whatever is wrong with a text, it is not the one of the numbers that it begins with.
  if (checkpoint.batch < 0 || write_checkpoint(checkpoint) != text)
    throw std::invalid_argument("This is not the checkpoint of a reader of dali_l3");
  return checkpoint;
}

}  // namespace dali_l3::loader
