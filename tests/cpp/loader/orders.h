// What tests of sampling plans share.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "plans/sample_order.h"

namespace dali_l3::loader {

/** The entries of the next batches, one after another. */
inline std::vector<uint32_t> next_entries(SampleOrder &order, int batches) {
  std::vector<uint32_t> entries;
  std::vector<PlannedSample> batch;
  for (int i = 0; i < batches; i++) {
    order.next_batch(batch);
    for (const PlannedSample &sample : batch) entries.push_back(sample.entry);
  }
  return entries;
}

inline std::string text(const std::vector<uint32_t> &entries) {
  std::ostringstream stream;
  for (const uint32_t entry : entries) stream << entry << ' ';
  return stream.str();
}

inline bool operator==(const PlannedSample &a, const PlannedSample &b) {
  return a.entry == b.entry && a.hit == b.hit && a.keep == b.keep && a.padding == b.padding && a.epoch == b.epoch;
}

/** Whether a count is the floor or the ceiling of total * part / size. */
inline bool is_share(int64_t count, int64_t total, int64_t part, int64_t size) {
  return std::abs(count * size - total * part) < size;
}

}  // namespace dali_l3::loader
