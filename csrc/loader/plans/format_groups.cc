// Division of formats among shards.

#include "plans/format_groups.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plans/deal.h"
#include "plans/random.h"

namespace dali_l3::loader {
namespace {

std::vector<uint32_t> shuffled(std::vector<uint32_t> entries, size_t format, bool draw) {
  constexpr uint64_t kFixedSeed = 0x5348415244;
  Random random{kFixedSeed, format};
  if (draw) shuffle(std::span(entries), random);
  return entries;
}

// Of `size` entries.
std::vector<FormatGroup> groups_of(size_t size, auto entry, std::span<const FileFormat> formats,
                                   const ShardOptions &options, bool draw) {
  std::array<size_t, kFormats> counts{};
  for (size_t i = 0; i < size; i++) counts[static_cast<size_t>(formats[entry(i)])]++;
  std::array<std::vector<uint32_t>, kFormats> by_format;
  for (size_t f = 0; f < kFormats; f++) by_format[f].reserve(counts[f]);
  for (size_t i = 0; i < size; i++) by_format[static_cast<size_t>(formats[entry(i)])].push_back(entry(i));

  const Deal deal(options, static_cast<int64_t>(size));
  std::vector<FormatGroup> groups;
  int64_t begin = 0;
  for (size_t f = 0; f < kFormats; f++) {
    const std::vector<uint32_t> entries = shuffled(std::move(by_format[f]), f, draw);
    const int64_t end = begin + static_cast<int64_t>(entries.size());
    const auto [first, count] = deal.of(begin, end);
    FormatGroup group{static_cast<FileFormat>(f), {entries.begin() + first, entries.begin() + first + count}};
    std::sort(group.entries.begin(), group.entries.end());
    if (count > 0) groups.push_back(std::move(group));
    begin = end;
  }
  return groups;
}

}  // namespace

int64_t sample_count(std::span<const FormatGroup> groups) {
  int64_t count = 0;
  for (const FormatGroup &group : groups) count += static_cast<int64_t>(group.entries.size());
  return count;
}

std::vector<FormatGroup> format_groups(std::span<const FileFormat> formats, const ShardOptions &options, bool draw) {
  check_shards(options, static_cast<int64_t>(formats.size()));
  return groups_of(formats.size(), [](size_t i) { return static_cast<uint32_t>(i); }, formats, options, draw);
}

std::vector<FormatGroup> format_groups(std::span<const uint32_t> some, std::span<const FileFormat> formats,
                                       const ShardOptions &options, bool draw) {
  return groups_of(some.size(), [&](size_t i) { return some[i]; }, formats, options, draw);
}

}  // namespace dali_l3::loader
