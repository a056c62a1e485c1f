// Label maps by lanes: a channel's rows, two at a time, in step with channels of residuals (docs/format.md, "Body with
// predictor 7").
//
// A lane holds the places in the table of values of four samples, a byte each, and changes all four at once: pixel
// masks and ranks are expanded by tables of what four bits mean. First the masks of all units are put into records,
// with the number of ranks before each, so that rows have no step that is serial across groups.
//
// Nothing is checked here: the host accepts only what decodes. A body that it would refuse gives other samples, and no
// read beyond kMaxOverread: it has at most 256 labels, 8 marks a unit and 8 a group, and ranks of 8 bits.
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

// The shared memory of a channel.
template <typename Sample>
struct LabelRecords {
  alignas(16) uint8_t units[kMaxUnits * kUnitRecordSize];  // pixel masks, a byte a group, and marks before the unit
  alignas(16) Sample values[kMaxLabels];
};

// The groups before a lane's in its unit, as masks of a byte a group.
template <WordLanes Team>
struct GroupsBefore {
  typename Team::Number low, high;

  L3_DEVICE GroupsBefore() {
    const typename Team::Number group = Team::index() & 7;
    low = Team::keep(ones<Team>(group * 8));
    high = Team::keep(ones<Team>(Team::select(group < 4, 0, group - 4) * 8));
  }
};

template <WordLanes Team, typename Sample>
class LabelRows {
  using Number = typename Team::Number;
  using Records = LabelRecords<Sample>;

 public:
  // Reads the body at `body` of a team whose channel is a label map (`here` is set), and expands its masks. Teams
  // without one keep step.
  L3_DEVICE void parse(const uint8_t *bytes, uint32_t body, uint32_t first, TileShape shape, bool here,
                       const MarkTable &table, Records &records) {
    here_ = here ? ~0u : 0;
    if (!here) body = 0, shape.height = 0;
    const uint32_t labels = here ? bytes[body] + 1u : 0, values = body + 1;
    uint32_t position = values + labels * uint32_t(sizeof(Sample));
    rank_bits_ = rank_bits(labels);
    field_ = Team::keep(((1u << rank_bits_) - 1) * 0x00010001);
    places_ = place_of(bytes, values, labels, first) * kBytes;
    copy_values(bytes, values, labels, records);
    const UnitBitmap<Team> present(bytes, position, here, shape);
    position += shape.unit_bitmap_size();
    const Number pixel_masks = present.count() + position;
    ranks_ = (expand_masks(bytes, shape, present, position, pixel_masks, here, table, records) + pixel_masks) * 8;
  }

  // Whether a sample of a row pair differs from the one above it in any lane of teams that move in step. If none does
  // both rows are as the row above.
  L3_DEVICE bool find_marks(uint32_t pair, const Records &records) {
    Number record[4];
    const Number lane = Team::index();
    Team::template load_words<4>(records.units, (lane >> 3) * kUnitRecordSize + pair * 2 * kUnitRecordSize, record);
    masks_[0] = record[0], masks_[1] = record[1], before_ = record[2];
    marks_ = Team::permute_bytes(record[0], record[1], lane & 7) & here_ & 255;
    return Team::any(marks_);
  }

  // The samples of a row pair after find_marks() has found any.
  L3_DEVICE void decode_pair(const uint8_t *bytes, const GroupsBefore<Team> &groups_before, const MarkTable &table,
                             const Records &records, Number (&rows)[2][4]) {
    const Number before =
        before_ + Team::count_bits(masks_[0] & groups_before.low) + Team::count_bits(masks_[1] & groups_before.high);
    const Number rank = Team::select(marks_, before * rank_bits_ + ranks_, 0);  // position of the first, bits
    Number words[3];
    Team::template load_words<3>(bytes, rank >> 5 << 2, words);
    const Number low = Team::funnel_shift(words[0], words[1], rank),
                 high = Team::funnel_shift(words[1], words[2], rank);
    const Number in_upper = replace(marks_ & 15, low, table);
    look_up_values(records, rows[0]);
    replace(marks_ >> 4, Team::funnel_shift_clamped(low, high, in_upper * rank_bits_), table);
    look_up_values(records, rows[1]);
  }

 private:
  static constexpr uint32_t kBytes = 0x01010101;

  // How many values are smaller than `first`.
  static L3_DEVICE uint32_t place_of(const uint8_t *bytes, uint32_t values, uint32_t labels, uint32_t first) {
    Number smaller = 0;
    for (uint32_t place = 0; Team::any(Number(place) < labels); place += Team::kCount) {
      const Number lane = Team::index() + place, inside = lane < labels;
      const Number value = Team::load_16(bytes, Team::select(inside, lane * sizeof(Sample) + values, 0));
      smaller = smaller + (inside & ((value & ((1u << (8 * sizeof(Sample))) - 1)) < first));
    }
    return Team::broadcast(Team::prefix_sum(smaller), Team::kCount - 1);
  }

  static L3_DEVICE void copy_values(const uint8_t *bytes, uint32_t values, uint32_t labels, Records &records) {
    const uint32_t size = labels * uint32_t(sizeof(Sample));
    for (uint32_t begin = 0; Team::any(Number(begin) < size); begin += Team::kCount * 4) {
      const Number at = Team::index() * 4 + begin, inside = at < size;
      const Number word[1] = {lockstep::load_unaligned<Team>(bytes, Team::select(inside, at + values, 0))};
      Team::template store_words<1>(reinterpret_cast<uint8_t *>(records.values), at, word, inside);
    }
  }

  // Writes the units' records, and returns how many bytes of pixel masks there are.
  static L3_DEVICE Number expand_masks(const uint8_t *bytes, TileShape shape, const UnitBitmap<Team> &present,
                                       const Number &group_masks, const Number &pixel_masks, bool here,
                                       const MarkTable &table, Records &records) {
    const Number of_lane = present.of_lane();
    Number at = present.before_lane() + group_masks, groups[kLaneUnits], sum = 0;
    L3_UNROLL
    for (uint32_t j = 0; j < kLaneUnits; j++) {
      const Number is_present = of_lane >> j & 1;
      groups[j] = Team::load_16(bytes, at) & (0u - is_present) & 255;
      sum = sum + Team::count_bits(groups[j]);
      at = at + is_present;
    }
    const Number groups_before = Team::prefix_sum(sum), total = Team::broadcast(groups_before, Team::kCount - 1);
    at = groups_before - sum + pixel_masks;
    Number low[kLaneUnits], high[kLaneUnits], before[kLaneUnits];
    sum = 0;
    L3_UNROLL
    for (uint32_t j = 0; j < kLaneUnits; j++) {
      // Each group's mask moves to the group's byte.
      Number words[3], of_low[4], of_high[4];
      Team::template load_words<3>(bytes, at & ~3u, words);
      const Number first = Team::funnel_shift(words[0], words[1], at << 3),
                   second = Team::funnel_shift(words[1], words[2], at << 3);
      look_up(table, groups[j] & 15, of_low);
      look_up(table, groups[j] >> 4, of_high);
      low[j] = Team::permute_bytes(first, second, of_low[0]) & of_low[1];
      high[j] = Team::permute_bytes(first, second, of_high[0] + of_low[2] * 0x1111) & of_high[1];
      before[j] = sum;
      sum = sum + Team::count_bits(low[j]) + Team::count_bits(high[j]);
      at = at + of_low[2] + of_high[2];
    }
    const Number marks_before = Team::prefix_sum(sum) - sum;
    L3_UNROLL
    for (uint32_t j = 0; j < kLaneUnits; j++) {
      const Number record[4] = {low[j], high[j], marks_before + before[j], 0};
      const Number place = record_place<Team>(shape, UnitBitmap<Team>::first_unit() + j);
      Team::template store_words<4>(records.units, place * kUnitRecordSize, record, Number(here));
    }
    return total;
  }

  static L3_DEVICE void look_up(const MarkTable &table, const Number &bits, Number (&entry)[4]) {
    Team::template load_words<4>(reinterpret_cast<const uint8_t *>(table.words), bits << 4, entry);
  }

  // Gives the marked of four samples the labels whose ranks stand at the beginning of `ranks`. Returns how many.
  L3_DEVICE Number replace(const Number &marked, const Number &ranks, const MarkTable &table) {
    Number entry[4];
    look_up(table, marked, entry);
    const Number pairs = Team::permute_bytes(ranks, ranks >> 2 * rank_bits_, 0x5410);
    const Number fields = (pairs & field_) + (pairs >> rank_bits_ & field_) * 256;
    const Number rank = Team::permute_bytes(fields, 0, entry[0]), place = rank + not_less(rank, places_);
    places_ = (place & entry[1]) | (places_ & ~entry[1]);
    return entry[2];
  }

  // 1 in each byte where a's is at least b's: the carry of a + ~b + 1, which is the highest bit of their mean.
  static L3_DEVICE Number not_less(const Number &a, const Number &b) {
    const Number same = (a & b) | (~a & ~b);
    return ((a | ~b) - ((same & 0xFEFEFEFE) >> 1)) >> 7 & kBytes;
  }

  L3_DEVICE void look_up_values(const Records &records, Number (&samples)[4]) const {
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++)
      samples[k] = Team::load(records.values, Team::permute_bytes(places_, 0, 0x4440 + k), here_);
  }

  Number here_;                       // a mask: the team's channel is a label map
  Number places_;                     // of the row above in the table
  Number masks_[2], before_, marks_;  // of a row pair: the unit's pixel masks, marks before it, the group's pixel mask
  uint32_t rank_bits_;
  Number field_;  // ones where two ranks of a pair stand
  Number ranks_;  // position, bits
};

}  // namespace l3
