// Division of formats among shards.

#include "plans/format_groups.h"

#include <array>
#include <numeric>
#include <utility>

#include "plans/deal.h"
#include "plans/random.h"

namespace dali_l3::loader {
namespace {

// The ranks, among the `size` entries of a format, of those that a shard takes, ascending: a stretch or, drawn, one of
// as many neighbours as there are shards. The last ones, of which there are fewer, go to the shards that get one more.
std::vector<uint32_t> ranks_of(int64_t size, const Deal::Stretch &stretch, const ShardOptions &options, size_t format,
                               bool draw) {
  constexpr uint64_t kFixedSeed = 0x5348415244;
  std::vector<uint32_t> ranks(static_cast<size_t>(stretch.count));
  if (!draw) {
    std::iota(ranks.begin(), ranks.end(), static_cast<uint32_t>(stretch.first));
    return ranks;
  }
  Random random{kFixedSeed, format};  // the same for all shards
  const int64_t shards = options.num_shards, whole = size / shards;
  for (int64_t turn = 0; turn < stretch.count; turn++) {
    // Neighbours and shards are in circles. Which neighbour is the one of the first shard is drawn.
    const bool is_whole = turn < whole;
    const int64_t neighbours = is_whole ? shards : size % shards;
    const int64_t own = is_whole ? options.shard_id : stretch.first - whole * options.shard_id;
    const int64_t drawn = random.below(static_cast<uint32_t>(neighbours));
    ranks[static_cast<size_t>(turn)] = static_cast<uint32_t>(turn * shards + (own + drawn) % neighbours);
  }
  return ranks;
}

// Of `size` entries.
std::vector<FormatGroup> groups_of(size_t size, auto entry, std::span<const FileFormat> formats,
                                   const ShardOptions &options, bool draw) {
  std::array<int64_t, kFormats> counts{};
  for (size_t i = 0; i < size; i++) counts[static_cast<size_t>(formats[entry(i)])]++;

  const Deal deal(options, static_cast<int64_t>(size));
  struct Part {
    std::vector<uint32_t> entries;  // from `next` on their ranks, which the entries take the places of
    size_t next = 0;
    uint32_t rank = 0;  // of the format's next entry
  };
  std::array<Part, kFormats> parts;
  int64_t begin = 0;
  for (size_t f = 0; f < kFormats; f++) {
    const int64_t end = begin + counts[f];
    parts[f].entries = ranks_of(counts[f], deal.of(begin, end), options, f, draw);
    begin = end;
  }
  for (size_t i = 0; i < size; i++) {
    auto &[entries, next, rank] = parts[static_cast<size_t>(formats[entry(i)])];
    if (next < entries.size() && entries[next] == rank) entries[next++] = entry(i);
    rank++;
  }

  std::vector<FormatGroup> groups;
  for (size_t f = 0; f < kFormats; f++) {
    if (!parts[f].entries.empty()) groups.push_back({static_cast<FileFormat>(f), std::move(parts[f].entries)});
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
