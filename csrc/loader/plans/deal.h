// Dealing of ranges of items to shards.
#pragma once

#include <cstdint>
#include <vector>

#include "plans/shards.h"

namespace dali_l3::loader {

/**
 * Deals items 0 … size - 1 to the shards round a circle: of every range of items each shard gets the floor or the
 * ceiling of its share 1 / num_shards, and of all items as many as DALI gives it.
 */
class Deal {
 public:
  Deal(const ShardOptions &options, int64_t size) : shards_(options.num_shards) {
    // Dealt in a circle, the last size % shards parts get one item more. DALI's larger shards are others, so shards are
    // renumbered.
    const int64_t small_shards = shards_ - size % shards_;
    for (int64_t shard = 0, small = 0, large = small_shards; shard <= options.shard_id; shard++)
      parts_.push_back(shard_size(shard, shards_, size) > size / shards_ ? large++ : small++);
  }

  struct Stretch {
    int64_t first, count;
  };

  /** The stretch of items `begin` … `end` - 1 that the shard takes, counted from `begin`: shards take them in order. */
  Stretch of(int64_t begin, int64_t end) const {
    Stretch stretch{0, 0};
    for (const int64_t part : parts_) {
      stretch.first += stretch.count;
      stretch.count = (end + part) / shards_ - (begin + part) / shards_;  // part shards_ - 1 is dealt the first item
    }
    return stretch;
  }

 private:
  int64_t shards_;
  std::vector<int64_t> parts_;  // of shards 0 … shard_id
};

}  // namespace dali_l3::loader
