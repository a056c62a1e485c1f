// Draws samples in turns, and deals the draws to shards.

#include "plans/weighted_draws.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "plans/sample_order.h"
#include "plans/spread.h"

namespace dali_l3::loader {
namespace {

constexpr uint64_t kFixedSeed = 0x5745494748;

std::vector<double> weights_of(const std::vector<Cell> &cells) {
  std::vector<double> weights;
  for (const Cell &cell : cells) weights.push_back(cell.weight);
  return weights;
}

}  // namespace

WeightedDraws::WeightedDraws(const WeightedSamples &samples, const ShardOptions &options, int64_t epoch_size)
    : options_(options),
      first_(weights_of(samples.cells), epoch_size),
      deal_(options, epoch_size),
      catalogue_size_(samples.cell_of.size()),
      circles_(samples.cells.size()),
      cell_counts_(first_) {
  // On every circle the formats follow each other in proportion.
  const std::vector<uint32_t> &cell_of = samples.cell_of;
  std::vector<uint64_t> kinds;
  for (size_t i = 0; i < cell_of.size(); i++)
    kinds.push_back(uint64_t{cell_of[i]} * kFormats + static_cast<uint64_t>(samples.formats[i]));
  const std::vector<SpreadItem> order = spread(kinds, kFixedSeed);
  for (const SpreadItem &place : order) circles_[cell_of[place.item]].entries.push_back(place.item);
  double whole = 0;
  for (const Cell &cell : samples.cells) whole += cell.weight;
  for (size_t c = 0; c < circles_.size(); c++) {
    Circle &circle = circles_[c];
    circle.entries.shrink_to_fit();
    circle.rate =
        static_cast<double>(epoch_size) * samples.cells[c].weight / whole / static_cast<double>(circle.entries.size());
  }

  // Classes with fewer draws than shards share a stratum. Neighbours on a circle, which are drawn together, belong to
  // different shards.
  const auto class_of = [&](uint32_t entry) {
    return std::tuple(samples.formats[entry], samples.cells[cell_of[entry]].label);
  };
  std::map<std::tuple<FileFormat, int>, double> class_rates;
  for (uint32_t i = 0; i < cell_of.size(); i++) class_rates[class_of(i)] += circles_[cell_of[i]].rate;
  using Key = std::tuple<FileFormat, bool, int>;
  std::map<Key, std::vector<SpreadItem>> strata;
  for (const SpreadItem &place : order) {
    const auto [format, label] = class_of(place.item);
    const bool small = class_rates[{format, label}] < options.num_shards;
    strata[{format, small, small ? 0 : label}].push_back(place);
  }
  const auto home = [&](const SpreadItem &place) { return place.rank % static_cast<uint32_t>(options.num_shards); };
  for (auto &[key, places] : strata) {
    std::stable_sort(places.begin(), places.end(),
                     [&](const SpreadItem &a, const SpreadItem &b) { return home(a) < home(b); });
    Stratum &stratum = strata_.emplace_back(Stratum{std::get<FileFormat>(key), {}});
    stratum.entries.reserve(places.size());
    for (const SpreadItem &place : places) stratum.entries.push_back(place.item);
  }
}

void WeightedDraws::restart() {
  cell_counts_ = first_;
  for (Circle &circle : circles_) circle.next = 0;
  next_epoch_ = 0;
}

std::vector<FormatGroup> WeightedDraws::draw(int64_t epoch) {
  if (epoch < next_epoch_) restart();
  std::vector<uint32_t> counts;  // draws of each entry
  for (int64_t next = std::exchange(next_epoch_, kBetweenEpochs); next <= epoch; next++)
    counts = count(cell_counts_.next());
  next_epoch_ = epoch + 1;

  std::vector<FormatGroup> groups;
  int64_t begin = 0;
  for (const auto &[format, entries] : strata_) {
    int64_t end = begin;
    for (const uint32_t entry : entries) end += counts[entry];
    auto [skipped, left] = deal_.of(begin, end);
    begin = end;
    if (left > 0 && (groups.empty() || groups.back().format != format)) groups.push_back({format, {}});
    for (auto entry = entries.begin(); left > 0; ++entry) {
      const int64_t count = counts[*entry];
      const int64_t others = std::min(skipped, count), own = std::min(left, count - others);
      groups.back().entries.insert(groups.back().entries.end(), static_cast<size_t>(own), *entry);
      skipped -= others;
      left -= own;
    }
  }
  return groups;
}

// How often an epoch draws each entry.
std::vector<uint32_t> WeightedDraws::count(const std::vector<int64_t> &cell_counts) {
  std::vector<uint32_t> counts(catalogue_size_);
  for (size_t c = 0; c < circles_.size(); c++) {
    auto &[entries, rate, next] = circles_[c];
    const auto size = static_cast<int64_t>(entries.size());
    for (const uint32_t entry : entries) counts[entry] = static_cast<uint32_t>(cell_counts[c] / size);
    for (int64_t more = cell_counts[c] % size; more > 0; more--) {
      counts[entries[next]]++;
      next = (next + 1) % entries.size();
    }
  }
  return counts;
}

std::vector<double> WeightedDraws::rates() const {
  std::vector<double> rates(catalogue_size_);
  for (const Circle &circle : circles_)
    for (const uint32_t entry : circle.entries) rates[entry] = circle.rate;
  for (const auto &[format, entries] : strata_) {
    double draws = 0;
    for (const uint32_t entry : entries) draws += rates[entry];
    const double begin = draws * options_.shard_id / options_.num_shards;
    const double end = draws * (options_.shard_id + 1) / options_.num_shards;
    for (double first = 0; const uint32_t entry : entries) {
      const double rate = rates[entry], last = first + rate;
      const bool inside = begin <= first && last <= end;
      rates[entry] = inside ? rate : std::max(0.0, std::min(last, end) - std::max(first, begin));
      first = last;
    }
  }
  return rates;
}

}  // namespace dali_l3::loader
