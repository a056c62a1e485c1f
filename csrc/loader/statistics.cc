#include "statistics.h"

#include <limits>
#include <locale>
#include <sstream>

namespace dali_l3::loader {
namespace {

void accumulate(BatchPart &sum, const BatchPart &part) {
  sum.batch = part.batch;
  sum.samples += part.samples;
  sum.files_read += part.files_read;
  sum.bytes_read += part.bytes_read;
  for (size_t i = 0; i < kFormats; i++) {
    sum.formats[i].hits += part.formats[i].hits;
    sum.formats[i].misses += part.formats[i].misses;
  }
  sum.bad_samples += part.bad_samples;
  sum.current_bytes = part.current_bytes;
  sum.next_bytes = part.next_bytes;
  sum.wait_seconds += part.wait_seconds;
}

void write(std::ostream &out, const BatchPart &part) {
  out << "{\"batch\": " << part.batch << ", \"epoch\": " << part.epoch << ", \"samples\": " << part.samples
      << ", \"files_read\": " << part.files_read << ", \"bytes_read\": " << part.bytes_read << ", \"formats\": {";
  const char *separator = "";
  for (size_t i = 0; i < kFormats; i++) {
    const auto [hits, misses] = part.formats[i];
    if (hits == 0 && misses == 0) continue;
    out << separator << '"' << format_name(FileFormat(i)) << "\": {\"hits\": " << hits << ", \"misses\": " << misses
        << '}';
    separator = ", ";
  }
  out << "}, \"bad_samples\": " << part.bad_samples << ", \"current_bytes\": " << part.current_bytes
      << ", \"next_bytes\": " << part.next_bytes << ", \"wait_seconds\": " << part.wait_seconds << '}';
}

template <typename Parts>
void write_all(std::ostream &out, const Parts &parts) {
  out << '[';
  const char *separator = "";
  for (const BatchPart &part : parts) {
    out << separator;
    write(out, part);
    separator = ", ";
  }
  out << ']';
}

}  // namespace

void Statistics::add(const BatchPart &part) {
  if (epochs.empty() || epochs.back().epoch != part.epoch) epochs.push_back({.epoch = part.epoch});
  accumulate(epochs.back(), part);
  batches.push_back(part);
  if (epochs.size() > kRemembered) epochs.pop_front();
  if (batches.size() > kRemembered) batches.pop_front();
}

std::string to_json(const Statistics &statistics) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(std::numeric_limits<double>::max_digits10);
  out << "{\"epochs\": ";
  write_all(out, statistics.epochs);
  out << ", \"batches\": ";
  write_all(out, statistics.batches);
  out << ", \"hit_ratio\": " << statistics.hit_ratio << ", \"cache_bytes_planned\": " << statistics.cache_bytes_planned
      << ", \"rest_batches\": " << statistics.rest_batches;
  out << ", \"cache_bytes_used\": " << statistics.cache_bytes_used
      << ", \"cache_bytes_peak\": " << statistics.cache_bytes_peak
      << ", \"other_bytes_used\": " << statistics.other_bytes_used
      << ", \"other_bytes_peak\": " << statistics.other_bytes_peak << ", \"idle_bytes\": " << statistics.idle_bytes
      << ", \"storage\": {\"requests\": " << statistics.storage.requests
      << ", \"retries\": " << statistics.storage.retries << ", \"bytes\": " << statistics.storage.bytes << "}}";
  return out.str();
}

}  // namespace dali_l3::loader
