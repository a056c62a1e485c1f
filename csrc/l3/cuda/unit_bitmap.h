// Which units of a channel are present, as a team's lanes look at it while they expand what the channel says of its
// units: four units a lane.
#pragma once

#include "format/fast_tile.h"
#include "lockstep/lockstep_bits.h"

namespace l3 {

constexpr uint32_t kLaneUnits = 4;        // that a lane expands
constexpr uint32_t kUnitRecordSize = 16;  // bytes in shared memory, for a unit

// The low `count` (0 to 32) bits.
template <Lanes Team>
L3_DEVICE typename Team::Number ones(const typename Team::Number &count) {
  return Team::select(count < 32, (typename Team::Number(1) << (count & 31)) - 1, ~0u);
}

template <WordLanes Team>
class UnitBitmap {
  using Number = typename Team::Number;

 public:
  // All units are present.
  L3_DEVICE explicit UnitBitmap(TileShape shape) {
    const uint32_t units = shape.units();
    low_ = ones<Team>(units);
    high_ = ones<Team>(units > 32 ? units - 32 : 0);
  }
  // The bitmap that stands at `position`, or that of a channel without (`here` is not set): all units are present. Bits
  // past the last unit do not count.
  L3_DEVICE UnitBitmap(const uint8_t *bytes, uint32_t position, bool here, TileShape shape) : UnitBitmap(shape) {
    if (!Team::any(here)) return;
    low_ = low_ & Team::select(here, lockstep::load_unaligned<Team>(bytes, position), ~0u);
    high_ = high_ & Team::select(here, lockstep::load_unaligned<Team>(bytes, position + 4), ~0u);
  }

  L3_DEVICE Number count() const { return Team::count_bits(low_) + Team::count_bits(high_); }

  // The lane's first unit.
  static L3_DEVICE Number first_unit() { return Team::index() * kLaneUnits; }
  // Bit i: the lane's unit i is present.
  L3_DEVICE Number of_lane() const { return Team::select(first_unit() < 32, low_, high_) >> (first_unit() & 31); }
  // How many units are present before the lane's first.
  L3_DEVICE Number before_lane() const {
    const Number unit = first_unit(), in_low = Team::count_bits(low_ & ones<Team>(unit));
    return in_low + Team::select(unit < 32, 0, Team::count_bits(high_ & ones<Team>(unit - 32)));
  }

 private:
  Number low_, high_;
};

// Where the record of a unit stands, so that a row pair's two are side by side. Row pairs of one unit leave every
// second place to a unit that does not exist, and has no groups.
template <WordLanes Team>
L3_DEVICE typename Team::Number record_place(TileShape shape, const typename Team::Number &unit) {
  if (shape.units_per_row_pair() == 2) return unit;
  return Team::select(unit < 32, unit * 2, (unit & 31) * 2 + 1);
}

}  // namespace l3
