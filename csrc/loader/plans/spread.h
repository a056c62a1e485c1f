// An order in which every stretch holds all kinds in proportion.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dali_l3::loader {

/** A place in an order. */
struct SpreadItem {
  uint32_t item;
  uint32_t rank;  ///< of the item among those of its kind, from 0
};

/**
 * Items 0, 1 … in an order whose first n hold the floor or the ceiling of n times its share of each kind, for every n.
 * Which items of a kind come first, and which of the kinds that are due, is drawn at random.
 *
 * @param kinds of every item: any numbers; at most kMaxSamples items
 */
std::vector<SpreadItem> spread(std::span<const uint64_t> kinds, uint64_t seed);

}  // namespace dali_l3::loader
