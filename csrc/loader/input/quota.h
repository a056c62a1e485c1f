// A limit on the memory that some of an arena's blocks take up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "input/arena.h"

namespace dali_l3::loader {

/** Counts blocks of an arena until their owners free them, and refuses what would pass its limit. Threads may share it.
 */
class Quota {
 public:
  /** More than there is of anything. */
  static constexpr size_t kUnlimited = size_t{1} << 62;

  /** The blocks take up at most `limit` bytes. The arena must outlive the quota; blocks may outlive both. */
  Quota(Arena &arena, size_t limit);

  /** A block as Arena::allocate() gives it. Null if it does not fit. */
  Block allocate(size_t size);

  /** @name Bytes, in whole pages @{ */
  size_t used() const;
  size_t peak() const;  ///< largest used() so far
                        /** @} */

 private:
  class State;
  Arena &arena_;
  std::shared_ptr<State> state_;  // shared with the blocks
};

}  // namespace dali_l3::loader
