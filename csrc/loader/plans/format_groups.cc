// Division of formats among shards.

#include "plans/format_groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "plans/deal.h"
#include "plans/random.h"

namespace dali_l3::loader {
int64_t sample_count(std::span<const FormatGroup> groups) {
  int64_t count = 0;
  for (const FormatGroup &group : groups) count += static_cast<int64_t>(group.entries.size());
  return count;
}

std::vector<FormatGroup> format_groups(std::span<const FileFormat> formats, const ShardOptions &options, bool draw) {
  check_shards(options, static_cast<int64_t>(formats.size()));
  std::vector<uint32_t> all(formats.size());
  std::iota(all.begin(), all.end(), 0);
  return format_groups(all, formats, options, draw);
}

std::vector<FormatGroup> format_groups(std::span<const uint32_t> some, std::span<const FileFormat> formats,
                                       const ShardOptions &options, bool draw) {
  const auto size = static_cast<int64_t>(some.size());
  std::map<FileFormat, std::vector<uint32_t>> by_format;
  for (const uint32_t entry : some) by_format[formats[entry]].push_back(entry);

  const Deal deal(options, size);
  std::vector<FormatGroup> groups;
  int64_t begin = 0;
  for (auto &[format, entries] : by_format) {
    if (draw) {
      constexpr uint64_t kFixedSeed = 0x5348415244;
      Random random{kFixedSeed, static_cast<uint64_t>(format)};
      shuffle(std::span(entries), random);
    }
    const int64_t end = begin + static_cast<int64_t>(entries.size());
    const auto [first, count] = deal.of(begin, end);
    FormatGroup group{format, {entries.begin() + first, entries.begin() + first + count}};
    std::sort(group.entries.begin(), group.entries.end());
    if (count > 0) groups.push_back(std::move(group));
    begin = end;
  }
  return groups;
}

}  // namespace dali_l3::loader
