// An order in which every stretch holds all kinds in proportion.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "plans/random.h"

namespace dali_l3::loader {

/** A place in an order. */
struct SpreadItem {
  uint32_t item;
  uint32_t rank;  ///< of the item among those of its kind, from 0
};

/**
 * Items 0, 1 … in an order whose first n hold each kind in proportion, for every n: by the divisor method of Webster
 * and Sainte-Laguë. Which items of a kind come first is drawn at random.
 *
 * @param kinds of every item: any numbers
 */
inline std::vector<SpreadItem> spread(std::span<const uint64_t> kinds, uint64_t seed) {
  struct Place {
    double share;  // of its kind that comes before the middle of the item
    uint64_t draw;
    SpreadItem item;
  };
  std::vector<Place> places;
  for (uint32_t i = 0; i < kinds.size(); i++) places.push_back({0, Random{seed, i}.next(), {i, 0}});
  std::sort(places.begin(), places.end(), [&](const Place &a, const Place &b) {
    return std::tuple(kinds[a.item.item], a.draw, a.item.item) < std::tuple(kinds[b.item.item], b.draw, b.item.item);
  });
  for (size_t begin = 0, end; begin < places.size(); begin = end) {
    for (end = begin; end < places.size() && kinds[places[end].item.item] == kinds[places[begin].item.item]; end++)
      places[end].item.rank = static_cast<uint32_t>(end - begin);
    for (size_t i = begin; i < end; i++)
      places[i].share = (static_cast<double>(i - begin) + 0.5) / static_cast<double>(end - begin);
  }
  std::sort(places.begin(), places.end(), [](const Place &a, const Place &b) {
    return std::tie(a.share, a.draw, a.item.item) < std::tie(b.share, b.draw, b.item.item);
  });
  std::vector<SpreadItem> order;
  order.reserve(places.size());
  for (const Place &place : places) order.push_back(place.item);
  return order;
}

}  // namespace dali_l3::loader
