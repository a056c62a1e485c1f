// A block of memory in parts, each with an owner of its own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "input/arena.h"

namespace dali_l3::loader {

/** Parts of a block, of these sizes, one right behind the other. The block goes back when its last part, deleter and
 * all, is destroyed.
 *
 * Unlike blocks, parts are not aligned, and nothing may be written behind their bytes.
 */
std::vector<Block> cut(Block whole, std::span<const size_t> sizes);

}  // namespace dali_l3::loader
