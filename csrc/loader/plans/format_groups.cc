// Division of formats among shards.

#include "plans/format_groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "plans/random.h"

namespace dali_l3::loader {
namespace {

// The share of one part when items 0, 1, 2 … are dealt round a circle of `parts` parts, of the items `begin` … `end` -
// 1: the floor or the ceiling of (end - begin) / parts for every range of items. Part `parts` - 1 is dealt the first
// item.
int64_t dealt(int64_t begin, int64_t end, int64_t part, int64_t parts) {
  return (end + part) / parts - (begin + part) / parts;
}

}  // namespace

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

  // Dealt in a circle, the last size % shards parts get one sample more. DALI's larger shards are others, so shards are
  // renumbered.
  const int64_t shards = options.num_shards, small_shards = shards - size % shards;
  std::vector<int64_t> parts;
  for (int64_t shard = 0, small = 0, large = small_shards; shard <= options.shard_id; shard++) {
    parts.push_back(shard_size(shard, shards, size) > size / shards ? large++ : small++);
  }

  std::vector<FormatGroup> groups;
  int64_t begin = 0;
  for (auto &[format, entries] : by_format) {
    if (draw) {
      constexpr uint64_t kFixedSeed = 0x5348415244;
      Random random{kFixedSeed, static_cast<uint64_t>(format)};
      shuffle(std::span(entries), random);
    }
    const int64_t end = begin + static_cast<int64_t>(entries.size());
    int64_t first = 0, count = 0;
    for (const int64_t part : parts) {
      first += count;
      count = dealt(begin, end, part, shards);
    }
    FormatGroup group{format, {entries.begin() + first, entries.begin() + first + count}};
    std::sort(group.entries.begin(), group.entries.end());
    if (count > 0) groups.push_back(std::move(group));
    begin = end;
  }
  return groups;
}

}  // namespace dali_l3::loader
