// Lanes on a GPU, for code whose control flow differs between the two teams of a warp: every operation is among the
// lanes of its own team only. Teams that happen to agree still run side by side.
#pragma once

#include "thread_lanes.h"

namespace l3 {

struct TeamLanes : ThreadLanes {
  // The lanes of the warp that are of this team.
  static L3_DEVICE uint32_t team() { return 0xFFFFu << (threadIdx.x & kCount); }

  static L3_DEVICE Number from_left(Number a) { return __shfl_up_sync(team(), a, 1, kCount); }
  static L3_DEVICE Number from_right(Number a) { return __shfl_down_sync(team(), a, 1, kCount); }
  static L3_DEVICE Number broadcast(Number a, uint32_t lane) { return __shfl_sync(team(), a, int(lane), kCount); }

  static L3_DEVICE Number prefix_sum(Number a) {
    L3_UNROLL
    for (uint32_t distance = 1; distance < kCount; distance *= 2) {
      const Number before = __shfl_up_sync(team(), a, distance, kCount);
      a += distance <= index() ? before : 0;
    }
    return a;
  }
};
static_assert(Lanes<TeamLanes>);

}  // namespace l3
