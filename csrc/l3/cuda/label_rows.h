// Label maps by lanes: a channel's rows, two at a time, in step with channels of residuals (docs/format.md, "Body with
// predictor 7").
//
// Most groups have no mark. What a marked group's samples can become does not depend on the samples above: the label of
// the rank, or the one after it. So these candidates are found for marked groups alone, one a lane and sixteen at a
// time, and wait in shared memory for the row pair that needs them, where a lane chooses between them for four samples
// at once, a byte each: the sample above is not among the labels that are ranked, so whether the rank is at least its
// place shows in whether the first candidate is greater. Group masks are expanded beforehand to a record for each unit,
// with the number of marked groups before it, so nothing is serial across groups.
//
// Samples of 8 bits are chosen from themselves, those of 16 bits from their places in the table of values.
//
// Nothing is checked here: the host accepts only what decodes. A body that it would refuse gives other samples, and no
// read beyond kMaxOverread: it has at most 256 labels, 8 marked groups a unit, 8 marks a group, and ranks of 8 bits.
#pragma once

#include "format/label_map.h"
#include "unit_bitmap.h"

namespace l3 {

// Tables indexed by four bits, one entry of four words: for each bit how many are set below it, a nibble each; the bits
// as bytes of 0xFF; how many are set.
struct MarkTable {
  static constexpr uint32_t kEntries = 16;
  alignas(16) uint32_t words[kEntries][4];

  L3_HOST_DEVICE void fill(uint32_t bits) {
    uint32_t below = 0, bytes = 0, count = 0;
    for (uint32_t k = 0; k < 4; k++) {
      below |= count << 4 * k;
      if (bits >> k & 1) bytes |= 0xFFu << 8 * k, count++;
    }
    words[bits][0] = below, words[bits][1] = bytes, words[bits][2] = count, words[bits][3] = 0;
  }
};

// The shared memory of a channel. A team whose channel is no label map has other records in this place, and finds
// something in what lanes without a mark look at: the first of everything, and the last of the marks.
struct LabelRecords {
  static constexpr uint32_t kReady = 32;     // marked groups that are ready at once: as many as two row pairs have
  static constexpr uint32_t kNone = kReady;  // where lanes without a mark find that they have none
  static constexpr uint32_t kCandidatesSize = 16, kMarksSize = 8;  // bytes

  alignas(16) uint8_t candidates[kReady * kCandidatesSize];  // of each row the lower ones, then the upper ones
  uint32_t units[kMaxUnits];    // a bit for each marked group, and from bit 8 on the number of marked groups before
  uint16_t values[kMaxLabels];  // of 16-bit samples; or of 8-bit ones in pairs: a value, and the next one
  alignas(8) uint8_t marks[(kReady + 1) * kMarksSize];  // of each row, as bytes of 0xFF

  // Where the last of the marks are: behind the other records that may be in this place.
  static constexpr uint32_t position_of_none() { return offsetof(LabelRecords, marks) + kNone * kMarksSize; }
};

// Where a lane's group is in the record of its unit.
template <WordLanes Team>
struct PlaceInUnit {
  typename Team::Number unit, bit, through;  // which of a row pair's; the bit of the group; the bits up to that one

  L3_DEVICE PlaceInUnit() {
    unit = Team::keep(Team::index() >> 3);
    bit = Team::keep(typename Team::Number(1) << (Team::index() & 7));
    through = Team::keep(bit * 2 - 1);
  }
};

template <WordLanes Team, typename Sample>
class LabelRows {
  using Number = typename Team::Number;
  using Records = LabelRecords;
  static constexpr bool kInPlaces = sizeof(Sample) > 1;

 public:
  // Reads the body at `body` of a team whose channel is a label map (`here` is set), and expands its group masks. Teams
  // without one keep step.
  L3_DEVICE void parse(const uint8_t *bytes, uint32_t body, uint32_t first, TileShape shape, bool here,
                       Records &records) {
    here_ = here ? ~0u : 0;
    if (!here) body = 0, shape.height = 0;
    const uint32_t labels = here ? bytes[body] + 1u : 0, values = body + 1;
    uint32_t position = values + labels * uint32_t(sizeof(Sample));
    rank_bits_ = rank_bits(labels);
    field_ = Team::keep(((1u << rank_bits_) - 1) * 0x00010001);
    if constexpr (kInPlaces) first = place_of(bytes, values, labels, first);
    row_ = first * kBytes;
    expand_values(bytes, values, labels, records);
    const UnitBitmap<Team> present(bytes, position, here, shape);
    position += shape.unit_bitmap_size();
    marked_groups_ = expand_group_masks(bytes, shape, present, position, here, records);
    pixel_masks_ = present.count() + position;
    next_rank_ = (pixel_masks_ + marked_groups_) * 8;
    ready_ = 0;
    const Number nothing[4] = {0, 0, 0, 0}, no_marks[2] = {0, 0}, is_first = Team::index() == 0;
    Team::template store_words<4>(records.candidates, 0, nothing, is_first & here_);
    Team::template store_words<2>(records.marks, Records::kNone * Records::kMarksSize, no_marks, is_first);
  }

  // The samples of a row pair, or their places, four of a row. Returns whether any differs from the one above it, in
  // any lane of teams that move in step.
  L3_DEVICE bool decode_pair(const uint8_t *bytes, uint32_t pair, const PlaceInUnit<Team> &place,
                             const MarkTable &table, Records &records, Number (&rows)[2]) {
    rows[0] = rows[1] = row_;
    const Number unit = Team::load(records.units, place.unit + pair * 2, 1), is_marked = unit & place.bit & here_;
    if (!Team::any(is_marked)) return false;
    // The lane's group among those that are marked, counted from 1.
    const Number number = Team::select(is_marked, Team::count_bits(unit & place.through) + (unit >> 8), 0);
    while (Team::any(ready_ < number)) make_ready(bytes, Team::broadcast(unit, 0) >> 8, table, records);
    const Number record = number & (Records::kReady - 1);
    Number candidates[4], marks[2];
    Team::template load_words<4>(records.candidates, record * Records::kCandidatesSize, candidates);
    Team::load_pair(records.marks, Team::select(is_marked, record, Records::kNone) * Records::kMarksSize, marks);
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      const Number &lower = candidates[2 * i], &upper = candidates[2 * i + 1], mask = not_less(lower, row_);
      row_ = (((upper & mask) | (lower & ~mask)) & marks[i]) | (row_ & ~marks[i]);
      rows[i] = row_;
    }
    return true;
  }

  // The samples at four places.
  L3_DEVICE void look_up_values(const Records &records, const Number &places, Number (&samples)[4]) const
    requires kInPlaces
  {
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++)
      samples[k] = Team::load(records.values, Team::permute_bytes(places, 0, 0x4440 + k), here_);
  }

 private:
  static constexpr uint32_t kBytes = 0x01010101;

  // How many values are smaller than `first`.
  static L3_DEVICE uint32_t place_of(const uint8_t *bytes, uint32_t values, uint32_t labels, uint32_t first) {
    Number smaller = 0;
    for (uint32_t place = 0; Team::any(Number(place) < labels); place += Team::kCount) {
      const Number lane = Team::index() + place, inside = lane < labels;
      const Number value = Team::load_16(bytes, Team::select(inside, lane * sizeof(Sample) + values, 0));
      smaller = smaller + (inside & (value < first));
    }
    return Team::broadcast(Team::prefix_sum(smaller), Team::kCount - 1);
  }

  static L3_DEVICE void expand_values(const uint8_t *bytes, uint32_t values, uint32_t labels, Records &records) {
    for (uint32_t begin = 0; Team::any(Number(begin) < labels); begin += Team::kCount * 2) {
      const Number at = Team::index() * 2 + begin, inside = at < labels;
      const Number loaded =
          lockstep::load_unaligned<Team>(bytes, Team::select(inside, at * uint32_t(sizeof(Sample)) + values, 0));
      const Number word[1] = {kInPlaces ? loaded : Team::permute_bytes(loaded, 0, 0x2110)};
      Team::template store_words<1>(reinterpret_cast<uint8_t *>(records.values), at * 2, word, inside);
    }
  }

  // Writes the units' records, and returns how many groups are marked.
  static L3_DEVICE uint32_t expand_group_masks(const uint8_t *bytes, TileShape shape, const UnitBitmap<Team> &present,
                                               const Number &group_masks, bool here, Records &records) {
    const Number of_lane = present.of_lane();
    Number at = present.before_lane() + group_masks, groups[kLaneUnits], before[kLaneUnits], sum = 0;
    L3_UNROLL
    for (uint32_t j = 0; j < kLaneUnits; j++) {
      const Number is_present = of_lane >> j & 1;
      groups[j] = Team::load(bytes, at, is_present);
      before[j] = sum;
      sum = sum + Team::count_bits(groups[j]);
      at = at + is_present;
    }
    const Number through = Team::prefix_sum(sum);
    L3_UNROLL
    for (uint32_t j = 0; j < kLaneUnits; j++) {
      const Number record[1] = {(through - sum + before[j]) << 8 | groups[j]};
      const Number place = record_place<Team>(shape, UnitBitmap<Team>::first_unit() + j);
      Team::template store_words<1>(reinterpret_cast<uint8_t *>(records.units), place * 4, record, Number(here));
    }
    return Team::broadcast(through, Team::kCount - 1);
  }

  // Finds the candidates of the next sixteen marked groups, a group a lane, in teams that have room for them: the first
  // `done` groups are done with.
  L3_DEVICE void make_ready(const uint8_t *bytes, uint32_t done, const MarkTable &table, Records &records) {
    const Number has_room = ready_ - done < Records::kReady - Team::kCount + 1, group = ready_ + Team::index();
    const Number active = has_room & (group < marked_groups_);
    const Number mask = Team::load(bytes, pixel_masks_ + group, active), count = Team::count_bits(mask);
    const Number through = Team::prefix_sum(count), rank = (through - count) * rank_bits_ + next_rank_;
    Number words[3], upper[4], lower[4];
    Team::template load_words_of_bit<3>(bytes, rank, words);
    const Number low = Team::funnel_shift(words[0], words[1], rank),
                 high = Team::funnel_shift(words[1], words[2], rank);
    look_up(table, mask & 15, upper);
    look_up(table, mask >> 4, lower);
    Number candidates[4];
    const Number marks[2] = {upper[1], lower[1]};
    find_candidates(spread(low, upper), records, candidates[0], candidates[1]);
    find_candidates(spread(Team::funnel_shift_clamped(low, high, upper[2] * rank_bits_), lower), records, candidates[2],
                    candidates[3]);
    const Number record = (group + 1) & (Records::kReady - 1);
    Team::sync();
    Team::template store_words<4>(records.candidates, record * Records::kCandidatesSize, candidates, active);
    Team::template store_words<2>(records.marks, record * Records::kMarksSize, marks, active);
    Team::sync();
    next_rank_ = next_rank_ + Number(Team::broadcast(through, Team::kCount - 1)) * rank_bits_;
    ready_ = ready_ + has_room * Team::kCount;
  }

  static L3_DEVICE void look_up(const MarkTable &table, const Number &bits, Number (&entry)[4]) {
    Team::template load_words<4>(reinterpret_cast<const uint8_t *>(table.words), bits << 4, entry);
  }

  // The ranks at the beginning of `ranks` as bytes, each where its sample is; 0 elsewhere.
  L3_DEVICE Number spread(const Number &ranks, const Number (&entry)[4]) const {
    const Number pairs = Team::permute_bytes(ranks, ranks >> 2 * rank_bits_, 0x5410);
    const Number fields = (pairs & field_) + (pairs >> rank_bits_ & field_) * 256;
    return Team::permute_bytes(fields, 0, entry[0]) & entry[1];
  }

  // What the samples of four ranks can be, or their places.
  static L3_DEVICE void find_candidates(const Number &ranks, const Records &records, Number &lower, Number &upper) {
    if constexpr (kInPlaces) {
      lower = ranks, upper = ranks + kBytes;
    } else {
      Number pairs[4];
      L3_UNROLL
      for (uint32_t k = 0; k < 4; k++)
        pairs[k] = Team::load(records.values, Team::permute_bytes(ranks, 0, 0x4440 + k), 1);
      const Number left = Team::permute_bytes(pairs[0], pairs[1], 0x5140),
                   right = Team::permute_bytes(pairs[2], pairs[3], 0x5140);
      lower = Team::permute_bytes(left, right, 0x5410), upper = Team::permute_bytes(left, right, 0x7632);
    }
  }

  // 0xFF in each byte where a's is at least b's: the carry of a + ~b + 1, which is the highest bit of their mean.
  static L3_DEVICE Number not_less(const Number &a, const Number &b) {
    const Number same = (a & b) | (~a & ~b);
    return Team::repeat_signs((a | ~b) - ((same & 0xFEFEFEFE) >> 1));
  }

  Number here_;  // a mask: the team's channel is a label map
  Number row_;   // four samples of the row above, a byte each, or their places
  uint32_t rank_bits_, marked_groups_;
  Number field_;        // ones where two ranks of a pair stand
  Number pixel_masks_;  // position
  Number next_rank_;    // position of the first rank that is not ready, bits
  Number ready_;        // how many of the marked groups have been made ready
};

}  // namespace l3
