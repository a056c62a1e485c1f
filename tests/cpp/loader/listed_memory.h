// The memory of entries, from a list.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plans/sample_order.h"

namespace dali_l3::loader {

inline BytesOf listed_memory(std::vector<uint64_t> bytes) {
  return [bytes = std::move(bytes)](uint32_t entry) { return bytes.at(entry); };
}

}  // namespace dali_l3::loader
