// Sizes in bytes, as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace dali_l3::loader {

/** The bytes in an argument such as "1000", "60GiB", "1.5 GB" or "512M" (binary, as of memory).
 *
 * @throws std::invalid_argument if it is no size, or does not fit into 64 bits
 */
int64_t parse_size(const std::string &argument, const std::string &text);

}  // namespace dali_l3::loader
