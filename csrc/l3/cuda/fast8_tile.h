// The kernels for `fast` tiles of 8-bit images, written over lanes: a team of 16 lanes decodes a tile, all channels at
// once, four rows at a time. One is for tiles without label maps and conversion, a full one for all.
//
// Each lane holds a group of 4 x 2 samples. Samples travel in pairs, a 16-bit half each: `even` holds the first and the
// third of a row's four, `odd` the second and the fourth. Pairs are integers; but where something is multiplied, they
// are taken for half-precision numbers (Lanes::multiply_add_halves), which are exact below 2048, need no masks to keep
// halves apart, and leave the integer unit, which is the busiest, to others. First the index words of all units are
// expanded into records that say where each unit's octets start, which leaves the main loop without a serial pointer;
// finished rows are put together as pixels in shared memory and leave it in 16-byte stores.
#pragma once

#include "label_rows.h"
#include "row_store.h"

namespace l3 {

// A table indexed by code, one entry of two words, so that the table fills the 32 banks of shared memory once: what the
// fields of a pair are masked with and, from bit 8 on, the minimum twice; the width, and from bit 8 on four times the
// width.
struct CodeTable8 {
  alignas(8) uint32_t words[16][2];
};

L3_HOST_DEVICE void fill_code_table_entry(uint32_t code, uint32_t words[2]) {
  const uint32_t width = code_width(code), twice = 0x00010001;
  words[0] = (((1u << width) - 1) | (code_minimum(code) & 0xFFu) << 8) * twice;
  words[1] = width | 4 * width << 8;
}

// The tables of a block.
template <bool full>
struct Fast8Tables {
  static constexpr uint32_t kThreads = 16;  // that fill it
  CodeTable8 codes;

  L3_HOST_DEVICE void fill(uint32_t thread) { fill_code_table_entry(thread, codes.words[thread]); }
};
template <>
struct Fast8Tables<true> : Fast8Tables<false> {
  MarkTable marks;

  L3_HOST_DEVICE void fill(uint32_t thread) {
    Fast8Tables<false>::fill(thread);
    marks.fill(thread);
  }
};

// The records of a channel. Of a unit: codes, a nibble a group; widths of the first, third, ... group, a byte each;
// position of the unit's octets in the tile, in bits; widths of the other groups.
struct UnitRecords {
  // The record of a unit is number `unit ^ swizzle(unit)`: lanes that store every fourth unit's meet in no bank.
  template <typename Number>
  static L3_DEVICE Number swizzle(const Number &unit) {
    return unit >> 3 & 3;
  }
  alignas(16) uint8_t units[kMaxUnits * kUnitRecordSize];
};

// The shared memory of a team.
template <uint32_t channels, bool full>
struct Fast8Shared {
  union FullRecords {
    UnitRecords residuals;
    LabelRecords labels;
    static_assert(LabelRecords::position_of_none() >= sizeof(UnitRecords));
  };
  struct PlainRecords {
    UnitRecords residuals;
  };
  std::conditional_t<full, FullRecords, PlainRecords> records[channels];
  SharedRows<channels> rows;
};

template <WordLanes Team, uint32_t channels, bool full>
class Fast8Tile {
  using Number = typename Team::Number;
  static constexpr uint32_t kHalves = 0x00010001, kPairMask = 255 * kHalves;
  // Half-precision factors.
  static constexpr uint32_t kEighth = 0x3000 * kHalves, kQuarter = 0x3400 * kHalves, kOne = 0x3C00 * kHalves,
                            kTwo = 0x4000 * kHalves, kFour = 0x4400 * kHalves, kEight = 0x4800 * kHalves;
  static constexpr uint32_t kMinusOne = 0x8001 * kHalves;  // of the unit in which integers are counted

  // Where a lane's group is found in the records of a row pair.
  struct Place {
    Number record, code;             // which of a row pair's two, in bytes; rotation right that leaves 8 times the code
    Number even_before, odd_before;  // for the groups of the unit a byte each: 8 if they come before this one

    L3_DEVICE Place() {
      const Number group = Team::index() & 7;
      record = Team::keep((Team::index() >> 3) * kUnitRecordSize);
      code = Team::keep(group * 4 - 3);
      even_before = Team::keep(Number(0x08080808) & ones(((group + 1) >> 1) * 8));
      odd_before = Team::keep(Number(0x08080808) & ones((group >> 1) * 8));
    }
    // Position of the record in row pair `pair` from row `y` on, which is a multiple of 4. A row pair has two.
    L3_DEVICE Number record_of(uint32_t y, uint32_t pair) const {
      const uint32_t swizzle = UnitRecords::swizzle(y) * kUnitRecordSize;
      return ((record + pair * 2 * kUnitRecordSize) ^ swizzle) + y * kUnitRecordSize;
    }
  };

  struct FullPlace : Place, PlaceInUnit<Team> {};
  using LanePlace = std::conditional_t<full, FullPlace, Place>;

  // Factors of N, of its neighbours inside the lane's group, and of those outside it, in eight times the prediction.
  struct Weights {
    Number here, inside, outside;
  };

  struct Residuals {
    Number even, odd;  // the row above
    Weights of_even, of_odd;
    Number sums, half_sums;  // 1 or 0, the factor of running sums in rows after the first; in half precision
    // Under kLeft sums begin where the row above does. In the first lane: bytes of `even` that this is, and 0x10000; in
    // the others bytes that are 0, and 0.
    Number base_bytes, base_factor;
  };

  struct ResidualsOrLabels : Residuals {
    LabelRows<Team, uint8_t> labels;
    Number residuals;                // a mask: it is no label map
    bool any_residuals, any_labels;  // in the warp's tiles
  };
  using Channel = std::conditional_t<full, ResidualsOrLabels, Residuals>;

  // How the colour transform is undone: factors, for blue four times, and what is added besides.
  struct ColorFactors {
    Number green_in_red, red_in_blue, green_in_blue, red_middle, blue_middle;
  };

 public:
  using Tables = Fast8Tables<full>;
  using Shared = Fast8Shared<channels, full>;

  // `buffer` holds the batch (see batch.h); `tile` was validated. `active` is the same for all lanes of the team: a
  // team without a tile of its own goes through the motions with another's, and stores nothing.
  L3_DEVICE void decode(const uint8_t *buffer, const BatchImage &image, const BatchTile &tile, bool active,
                        const Tables &tables, Shared &shared) {
    const l3_rect rect = tile_rect(image, tile.x, tile.y);
    const TileShape shape = shape_of(rect);
    Channel state[channels];
    const uint8_t *bytes = buffer + tile.bytes;
    const uint32_t transform = parse(bytes, shape, shared, state);
    const ColorFactors colors = color_factors(transform);
    const bool converts = full && image.converts();
    RowStore<Team, channels> store(image, rect, active && !converts);
    Team::sync();

    const LanePlace place;
    for (uint32_t y = 0; Team::any(Number(y) < shape.height); y += kStoredRows) {
      put_rows(bytes, y, shared, place, tables, colors, state);
      Team::sync();
      store.store(shared.rows.bytes, y);
      if (converts) store_converted_rows<Team, uint8_t>(image, rect, y, active, shared.rows);
      Team::sync();
    }
  }

 private:
  static L3_DEVICE Number load_unaligned(const uint8_t *bytes, const Number &position) {
    return lockstep::load_unaligned<Team>(bytes, position);
  }

  // The low `count` (0 to 32) bits.
  static L3_DEVICE Number ones(const Number &count) { return l3::ones<Team>(count); }

  static L3_DEVICE Number blend(const Number &mask, const Number &if_set, const Number &if_clear) {
    return (if_set & mask) | (if_clear & ~mask);
  }

  // a * factors + b, half by half.
  static L3_DEVICE Number multiply_add(const Number &a, Number factors, const Number &b) {
    return Team::multiply_add_halves(a, factors, b);
  }

  // Reads heads, palettes and index words, or label maps: sets up the channels and their records. Returns the colour
  // transform.
  L3_DEVICE uint32_t parse(const uint8_t *bytes, TileShape shape, Shared &shared, Channel (&state)[channels]) {
    const Missing missing(shape.width);
    const Units units(shape);
    uint32_t body = fast_heads_size(channels, 8);
    L3_UNROLL
    for (uint32_t c = 0; c < channels; c++) {
      const ChannelHead head = read_channel_head(bytes, c, 8);
      bool any_residuals = true, here = true;
      if constexpr (full) {
        here = head.predictor() != kLabelMap;
        state[c].residuals = here ? ~0u : 0;
        state[c].any_residuals = any_residuals = Team::any(here);
        state[c].any_labels = Team::any(!here);
        if (state[c].any_labels) state[c].labels.parse(bytes, body, head.first, shape, !here, shared.records[c].labels);
      }
      if (any_residuals) {
        static_cast<Residuals &>(state[c]) = start_channel(head, missing);
        expand_records(bytes, body, head.index_bits(), head.has_bitmap(), units, here, shared.records[c].residuals);
      }
      state[c].even = state[c].odd = Number(head.first) * kHalves;
      body += head.body_size;
    }
    return color_of(bytes[0]);
  }

  // Which samples have no neighbour in the tile, a half each.
  struct Missing {
    Number west_of_even, east_of_even, east_of_odd;
    L3_DEVICE explicit Missing(uint32_t width)
        : west_of_even(Team::index() == 0),
          east_of_even(at(0, width) | at(2, width) << 16),
          east_of_odd(at(1, width) | at(3, width) << 16) {}

   private:
    // Whether the lane's sample `k` is the row's last.
    static L3_DEVICE Number at(uint32_t k, uint32_t width) { return Team::index() * 4 + k == width - 1; }
  };

  // A channel before the first row.
  static L3_DEVICE Residuals start_channel(const ChannelHead &head, const Missing &missing) {
    const uint32_t predictor = head.predictor(), smooth = predictor == kSmoothAbove || predictor == kSmoothPlane;
    const bool is_left = predictor == kLeft;
    Residuals channel;
    // N stands for a neighbour that is missing. In half precision 4, 6 and 8 are 0x200 apart.
    const uint32_t here = smooth ? kFour : is_left ? 0 : kEight;
    const auto neighbours = [&](const Number &gone) { return (Number(kHalves) - gone) * (smooth * 0x4000); };
    channel.of_even.here = (missing.west_of_even + missing.east_of_even) * (smooth * 0x200) + here;
    channel.of_odd.here = missing.east_of_odd * (smooth * 0x200) + here;
    channel.of_even.inside = neighbours(missing.east_of_even);
    channel.of_odd.inside = smooth ? kTwo : 0;
    channel.of_even.outside = neighbours(missing.west_of_even);
    channel.of_odd.outside = neighbours(missing.east_of_odd);
    const Number is_base = Team::index() < is_left;
    channel.base_bytes = Team::select(is_base, 0x1010, 0x1111);
    channel.base_factor = is_base * 0x10000;
    channel.sums = sums_along_row(predictor);
    for (Number *number :
         {&channel.of_even.here, &channel.of_even.inside, &channel.of_even.outside, &channel.of_odd.here,
          &channel.of_odd.inside, &channel.of_odd.outside, &channel.base_bytes, &channel.base_factor, &channel.sums})
      *number = Team::keep(*number);
    channel.half_sums = channel.sums * kOne;
    if constexpr (!full) channel.half_sums = Team::keep(channel.half_sums);  // the full kernel has no register for it
    return channel;
  }

  // The four units, side by side, whose index words a lane expands.
  struct Units {
    TileShape shape;
    Number exist, before;        // which of the four exist, a bit each; how many come before them
    Number groups[2];            // nibbles of the groups that are inside the tile, in units at the left and the right
    Number record, record_step;  // position of the first's record, and from one to the next
    Number swizzle;              // of all four

    L3_DEVICE explicit Units(TileShape tile) : shape(tile) {
      const UnitBitmap<Team> all(shape);
      exist = all.of_lane();
      before = all.before_lane();
      const bool two = shape.units_per_row_pair() == 2;
      const uint32_t right = two ? shape.groups() - kUnitGroups : shape.groups();
      groups[0] = two ? Number(~0u) : ones(right * 4);
      groups[1] = ones(right * 4);
      const Number first = record_place<Team>(shape, UnitBitmap<Team>::first_unit());
      record = first * kUnitRecordSize;
      swizzle = UnitRecords::swizzle(first) * kUnitRecordSize;
      record_step = (two ? 1 : 2) * kUnitRecordSize;
    }
  };

  // Expands a channel's index words, and writes the records, where `here` is set.
  static L3_DEVICE void expand_records(const uint8_t *bytes, uint32_t body, uint32_t index_bits, bool has_bitmap,
                                       const Units &units, bool here, UnitRecords &records) {
    // Palette entries, one a byte: 0 to 3 and 4 to 7.
    const Number packed = load_unaligned(bytes, body), first = packed & 0x0F0F0F0F, second = packed >> 4 & 0x0F0F0F0F;
    const Number palette_low = Team::permute_bytes(first, second, 0x5140),
                 palette_high = Team::permute_bytes(first, second, 0x7362);
    const uint32_t bitmap = body + palette_size(index_bits, 8),
                   words = bitmap + (has_bitmap ? units.shape.unit_bitmap_size() : 0);
    Number present = units.exist, before = units.before, count = units.shape.units();
    if (Team::any(has_bitmap)) {  // in few tiles
      const UnitBitmap<Team> units_present(bytes, bitmap, has_bitmap, units.shape);
      present = units_present.of_lane();
      before = units_present.before_lane();
      count = units_present.count();
    }

    Number word = before * index_bits + words, sum = 0;
    Number codes[4], even_widths[4], odd_widths[4], octets[4];
    L3_UNROLL
    for (uint32_t j = 0; j < 4; j++) {
      const Number is_present = present >> j & 1;
      codes[j] = codes_of_word(load_unaligned(bytes, word), index_bits, palette_low, palette_high) &
                 units.groups[j & 1] * is_present;
      const Number widths = (codes[j] & 0x11111111) + (codes[j] >> 1 & 0x77777777);  // (code + 1) / 2 in each nibble
      even_widths[j] = widths & 0x0F0F0F0F, odd_widths[j] = widths >> 4 & 0x0F0F0F0F;
      octets[j] = sum;
      sum = Team::dot_bytes(even_widths[j] + odd_widths[j], 0x08080808, sum);
      word = word + is_present * index_bits;
    }
    const Number start = (count * index_bits + words) * 8 + Team::prefix_sum(sum) - sum;
    L3_UNROLL
    for (uint32_t j = 0; j < 4; j++) {
      const Number record[4] = {codes[j], even_widths[j], start + octets[j], odd_widths[j]};
      Team::template store_words<4>(records.units, (units.record + units.record_step * j) ^ units.swizzle, record,
                                    here);
    }
  }

  // The eight codes of an index word, a nibble each.
  static L3_DEVICE Number codes_of_word(const Number &word, uint32_t index_bits, const Number &palette_low,
                                        const Number &palette_high) {
    // Indices move apart until each has a nibble: halves, quarters, eighths. What is at 2^n moves to 2^m by adding
    // 2^m - 2^n times itself, which spares a mask.
    const uint32_t all = (1u << (8 * index_bits & 31)) - 1, two = ((1u << 2 * index_bits) - 1) * kHalves;
    const uint32_t one = ((1u << index_bits) - 1) * 0x01010101u;
    Number indices = word & all;
    indices = indices + (indices >> 4 * index_bits) * ((1u << 16) - (1u << 4 * index_bits));
    indices = indices + (indices >> 2 * index_bits & two) * ((1u << 8) - (1u << 2 * index_bits));
    indices = (indices >> index_bits & one) + (indices & one) * 16;  // the second of each two first
    const Number low = Team::permute_bytes(palette_low, palette_high, indices);
    const Number high = Team::permute_bytes(palette_low, palette_high, indices >> 16);
    // From a byte to a nibble each: in the second and the last byte two codes meet.
    const Number looked_up = Team::permute_bytes(low * 0x1001, high * 0x1001, 0x7531);
    return has_palette(index_bits, 8) ? looked_up : word;
  }

  // Decodes the rows from row `y` on that are stored together, and puts them together as pixels.
  static L3_DEVICE void put_rows(const uint8_t *bytes, uint32_t y, Shared &shared, const LanePlace &place,
                                 const Tables &tables, const ColorFactors &colors, Channel (&state)[channels]) {
    if constexpr (full && channels == 1) {
      if (!state[0].any_residuals) {
        put_labels(bytes, y, shared.records[0], place, tables, state[0], shared.rows);
        return;
      }
    }
    L3_UNROLL
    for (uint32_t pair = 0; pair < kStoredRows / 2; pair++) {
      Number even[channels][2], odd[channels][2];
      decode_pair(bytes, y, pair, shared, place, tables, state, even, odd);
      L3_UNROLL
      for (uint32_t i = 0; i < 2; i++) {
        Number pixels_even[channels], pixels_odd[channels];
        L3_UNROLL
        for (uint32_t c = 0; c < channels; c++) pixels_even[c] = even[c][i], pixels_odd[c] = odd[c][i];
        if constexpr (channels >= 3) {
          undo_transform(colors, pixels_even);
          undo_transform(colors, pixels_odd);
        }
        interleave(pixels_even, pixels_odd, shared.rows.row(2 * pair + i));
      }
    }
  }

  // The same for a label map that is the only channel.
  template <typename Records>
  static L3_DEVICE void put_labels(const uint8_t *bytes, uint32_t y, Records &records, const LanePlace &place,
                                   const Tables &tables, Channel &channel, SharedRows<channels> &rows) {
    L3_UNROLL
    for (uint32_t pair = 0; pair < kStoredRows / 2; pair++) {
      Number labels[2];
      channel.labels.decode_pair(bytes, y / 2 + pair, place, tables.marks, records.labels, labels);
      L3_UNROLL
      for (uint32_t i = 0; i < 2; i++) {
        const Number word[1] = {labels[i]};
        Team::template store_words<1>(rows.row(2 * pair + i), Team::index() * 4, word);
      }
    }
  }

  static L3_DEVICE bool has_residuals(const Channel &channel) {
    if constexpr (full) return channel.any_residuals;
    return true;
  }

  // Decodes row pair `pair` from row `y` on into pairs of samples.
  static L3_DEVICE void decode_pair(const uint8_t *bytes, uint32_t y, uint32_t pair, Shared &shared,
                                    const LanePlace &place, const Tables &tables, Channel (&state)[channels],
                                    Number (&even)[channels][2], Number (&odd)[channels][2]) {
    L3_UNROLL
    for (uint32_t c = 0; c < channels; c++) {
      if (has_residuals(state[c]))
        sum_residuals(bytes, y, pair, shared.records[c].residuals, place, tables.codes, state[c], even[c], odd[c]);
    }
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      const Beside beside(state);
      L3_UNROLL
      for (uint32_t c = 0; c < channels; c++) {
        if (has_residuals(state[c])) add_prediction(beside, c, state[c], even[c][i], odd[c][i]);
      }
    }
    if constexpr (full) {
      L3_UNROLL
      for (uint32_t c = 0; c < channels; c++) {
        if (state[c].any_labels)
          decode_labels(bytes, y, pair, shared.records[c].labels, place, tables.marks, state[c], even[c], odd[c]);
      }
    }
  }

  // Decodes row pair `pair` from row `y` on, of a channel, where the team has a label map.
  template <typename Records, typename Marks>
  static L3_DEVICE void decode_labels(const uint8_t *bytes, uint32_t y, uint32_t pair, Records &records,
                                      const LanePlace &place, const Marks &marks, Channel &channel, Number (&even)[2],
                                      Number (&odd)[2]) {
    Number labels[2];
    channel.labels.decode_pair(bytes, y / 2 + pair, place, marks, records, labels);
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      const Number labels_even = Team::permute_bytes(labels[i], 0, 0x4240),
                   labels_odd = Team::permute_bytes(labels[i], 0, 0x4341);
      even[i] = channel.any_residuals ? blend(channel.residuals, even[i], labels_even) : labels_even;
      odd[i] = channel.any_residuals ? blend(channel.residuals, odd[i], labels_odd) : labels_odd;
    }
    channel.even = even[1], channel.odd = odd[1];
  }

  // A channel's residuals, or their running sums, in row pair `pair` from row `y` on.
  static L3_DEVICE void sum_residuals(const uint8_t *bytes, uint32_t y, uint32_t pair, const UnitRecords &records,
                                      const Place &place, const CodeTable8 &table, const Channel &channel,
                                      Number (&even)[2], Number (&odd)[2]) {
    Number record[4], code[2], octet[3], position = place.record_of(y, pair);
    if constexpr (full) position = position & channel.residuals;
    Team::template load_words<4>(records.units, position, record);
    if constexpr (full)  // lanes of label maps read nothing of their own
      for (Number &word : record) word = word & channel.residuals;
    Team::load_pair(reinterpret_cast<const uint8_t *>(table.words),
                    Team::funnel_shift(record[0], record[0], place.code) & 0x78, code);
    const Number bit =
        Team::dot_bytes(record[1], place.even_before, Team::dot_bytes(record[3], place.odd_before, record[2]));
    const Number minimum = Team::permute_bytes(code[0], 0, 0x4341), width = code[1];  // the width in its low five bits
    Team::template load_words_of_bit<3>(bytes, bit, octet);
    const Number low = Team::funnel_shift(octet[0], octet[1], bit);
    const Number high = Team::funnel_shift(octet[1], octet[2], bit);
    // The lower row's fields start 4 * width bits later.
    const Number lower = Team::funnel_shift_clamped(low, high, width >> 8), two = width << 1;
    // Columns, two by two and one by one, hold a row in each half.
    const Number pairs[2] = {
        Team::permute_bytes(low, lower, 0x5410),
        Team::permute_bytes(Team::funnel_shift(low, 0, two), Team::funnel_shift(lower, 0, two), 0x5410)};
    Number columns[4];
    L3_UNROLL
    for (uint32_t k = 0; k < 2; k++) {
      columns[2 * k] = (pairs[k] & code[0] & kPairMask) + minimum;
      columns[2 * k + 1] = (Team::funnel_shift(pairs[k], 0, width) & code[0] & kPairMask) + minimum;
    }
    // Where the row above begins: above the lower row that is the first residual further.
    const Number base = Team::permute_bytes(channel.even, 0, channel.base_bytes) + columns[0] * channel.base_factor;
    // Both rows share the scan: neither's sum can overflow.
    const Number totals = columns[0] + columns[1] + columns[2] + columns[3] + base;
    Number sum = (Team::prefix_sum(totals) - totals + base) & kPairMask;  // of what comes before, modulo 256
    L3_UNROLL
    for (Number &column : columns) {
      // Row 0 consists of sums, whatever row 1 does. Where both rows do the same, integers take fewer moves.
      sum = column = pair == 0 ? multiply_add(sum, channel.half_sums | (y == 0 ? kOne & 0xFFFF : 0), column)
                               : sum * channel.sums + column;
    }
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      const uint32_t row = i == 0 ? 0x5410 : 0x7632;
      even[i] = Team::permute_bytes(columns[0], columns[2], row);
      odd[i] = Team::permute_bytes(columns[1], columns[3], row);
    }
  }

  // What the row above has to the left and to the right of each lane's group: of every channel a byte.
  struct Beside {
    static constexpr uint32_t kLeftByte = channels == 1 ? 2 : 0;  // of the first channel
    Number left, right;

    L3_DEVICE explicit Beside(const Channel (&state)[channels]) {
      constexpr uint32_t with_first[] = {0, 0x0040, 0x0410, 0x4210}, with_last[] = {0, 0x0062, 0x0610, 0x6210};
      Number first = state[0].even, last = state[0].odd;  // of a group's samples
      L3_UNROLL
      for (uint32_t c = 1; c < channels; c++) {
        first = Team::permute_bytes(first, state[c].even, with_first[c]);
        last = Team::permute_bytes(last, state[c].odd, with_last[c]);
      }
      left = Team::from_left(last);
      right = Team::from_right(first);
    }
  };

  // Makes a row of channel `c` of its residuals. weigh() gives eight times the prediction, and 3 more: avg(avg(NW, NE),
  // N), which is (NW + NE + 2 N + 3) / 4 rounded down, is (2 NW + 2 NE + 4 N + 3) / 8 rounded to nearest, as sums of
  // half-precision numbers are.
  static L3_DEVICE void add_prediction(const Beside &beside, uint32_t c, Channel &channel, Number &even, Number &odd) {
    const Number west_of_even = Team::permute_bytes(beside.left, channel.odd, 0x5450 | (Beside::kLeftByte + c));
    const Number east_of_odd = Team::permute_bytes(channel.even, beside.right, 0x3032 | (4 + c) << 8);
    const Number eight_even = weigh(channel.of_even, channel.even, channel.odd, west_of_even),
                 eight_odd = weigh(channel.of_odd, channel.odd, channel.even, east_of_odd);
    channel.even = even = multiply_add(eight_even, kEighth, even) & kPairMask;
    channel.odd = odd = multiply_add(eight_odd, kEighth, odd) & kPairMask;
  }
  static L3_DEVICE Number weigh(const Weights &weights, const Number &here, const Number &inside,
                                const Number &outside) {
    return multiply_add(outside, weights.outside,
                        multiply_add(inside, weights.inside, multiply_add(here, weights.here, 3 * kHalves)));
  }

  static L3_DEVICE ColorFactors color_factors(uint32_t transform) {
    const bool subtracted = transform != kTransformNone, mean = transform == kSubtractGreenAndMean;
    ColorFactors factors;
    factors.green_in_red = subtracted ? kOne : 0;
    factors.red_in_blue = mean ? kTwo : 0;
    factors.green_in_blue = mean ? kTwo : subtracted ? kFour : 0;
    factors.red_middle = subtracted ? 128 * kHalves : 0;
    factors.blue_middle = subtracted ? 511 * kHalves : kMinusOne;
    for (Number *number : {&factors.green_in_red, &factors.red_in_blue, &factors.green_in_blue, &factors.red_middle,
                           &factors.blue_middle})
      *number = Team::keep(*number);
    return factors;
  }

  // Of pairs of samples in coding order G, R, B. Leaves more than eight bits in blue.
  static L3_DEVICE void undo_transform(const ColorFactors &factors, Number (&samples)[channels]) {
    const Number green = samples[0];
    // Adding 128 to a byte flips its highest bit.
    const Number red = (multiply_add(green, factors.green_in_red, samples[1]) & kPairMask) ^ factors.red_middle;
    const Number four_blue =
        multiply_add(red, factors.red_in_blue, multiply_add(green, factors.green_in_blue, factors.blue_middle));
    samples[1] = red;
    samples[2] = multiply_add(four_blue, kQuarter, samples[2]);
  }

  // Writes the lane's four pixels of a row as words of interleaved bytes.
  static L3_DEVICE void interleave(const Number (&even)[channels], const Number (&odd)[channels], uint8_t *row) {
    Number words[channels];
    // From a pair of samples of two channels a, b: the bytes a0 b0 a2 b2, or a1 b1 a3 b3.
    const auto join = [](const Number &a, const Number &b) { return Team::permute_bytes(a, b, 0x6240); };
    if constexpr (channels == 1) {
      words[0] = join(even[0], odd[0]);
    } else if constexpr (channels == 2) {
      const Number first_third = join(even[0], even[1]), second_fourth = join(odd[0], odd[1]);
      words[0] = Team::permute_bytes(first_third, second_fourth, 0x5410);
      words[1] = Team::permute_bytes(first_third, second_fourth, 0x7632);
    } else if constexpr (channels == 3) {  // planes are in the order G, R, B
      const Number red_green = join(even[1], even[0]), blue_red = join(even[2], odd[1]),
                   green_blue = join(odd[0], odd[2]);
      words[0] = Team::permute_bytes(red_green, blue_red, 0x5410);
      words[1] = Team::permute_bytes(green_blue, red_green, 0x7610);
      words[2] = Team::permute_bytes(blue_red, green_blue, 0x7632);
    } else {
      const Number red_green_even = join(even[1], even[0]), blue_alpha_even = join(even[2], even[3]);
      const Number red_green_odd = join(odd[1], odd[0]), blue_alpha_odd = join(odd[2], odd[3]);
      words[0] = Team::permute_bytes(red_green_even, blue_alpha_even, 0x5410);
      words[1] = Team::permute_bytes(red_green_odd, blue_alpha_odd, 0x5410);
      words[2] = Team::permute_bytes(red_green_even, blue_alpha_even, 0x7632);
      words[3] = Team::permute_bytes(red_green_odd, blue_alpha_odd, 0x7632);
    }
    Team::template store_words<channels>(row, Team::index() * (4 * channels), words);
  }
};

}  // namespace l3
