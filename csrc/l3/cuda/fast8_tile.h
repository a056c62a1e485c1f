// The kernels for `fast` tiles of 8-bit images, written over lanes: a team of 16 lanes decodes a tile, all channels at
// once, four rows at a time. One is for tiles without label maps and conversion, a full one for all.
//
// Each lane holds a group of 4 x 2 samples. Samples travel in pairs, a 16-bit half each, so that sums need no care for
// overflow until they are masked: `even` holds the first and the third of a row's four, `odd` the second and the
// fourth. First the index words of all units are expanded into records that say where each unit's octets start, which
// leaves the main loop without a serial pointer; finished rows are put together as pixels in shared memory and leave it
// in 16-byte stores.
#pragma once

#include "label_rows.h"
#include "row_store.h"

namespace l3 {

// Tables indexed by code, one entry of four words: what the fields of a pair are masked with, the minimum twice, the
// width, 4 * width.
struct CodeTable8 {
  alignas(16) uint32_t words[16][4];
};

L3_HOST_DEVICE void fill_code_table_entry(uint32_t code, uint32_t words[4]) {
  const uint32_t width = code_width(code), twice = 0x00010001;
  words[0] = ((1u << width) - 1) * twice;
  words[1] = (code_minimum(code) & 0xFFu) * twice;
  words[2] = width;
  words[3] = 4 * width;
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

// The records of a channel in shared memory: of a unit codes, widths (a nibble a group), position of its octets.
struct UnitRecords {
  alignas(16) uint8_t units[kMaxUnits * kUnitRecordSize];
};

// The shared memory of a team.
template <uint32_t channels, bool full>
struct Fast8Shared {
  union FullRecords {
    UnitRecords units;
    LabelRecords<uint8_t> labels;
  };
  std::conditional_t<full, FullRecords, UnitRecords> records[channels];
  SharedRows<channels> rows;
};

template <WordLanes Team, uint32_t channels, bool full>
class Fast8Tile {
  using Number = typename Team::Number;
  static constexpr uint32_t kPairMask = 0x00FF00FF, kHalves = 0x00010001, kMiddle = 128 * kHalves;

  struct Residuals {
    Number even, odd;  // the row above
    Number smooths, from_left, scans,
        scans_next;  // masks: base is q; base is N(0); rows are running sums: this row, and those after it
  };
  struct ResidualsOrLabels : Residuals {
    LabelRows<Team, uint8_t> labels;
    Number residuals;                // a mask: it is no label map
    bool any_residuals, any_labels;  // in the warp's tiles
  };
  using Channel = std::conditional_t<full, ResidualsOrLabels, Residuals>;

 public:
  using Tables = Fast8Tables<full>;
  using Shared = Fast8Shared<channels, full>;

  // `buffer` holds the batch (see batch.h); `tile` was validated. `active` is the same for all lanes of the team: a
  // team without a tile of its own goes through the motions with another's, and stores nothing.
  L3_DEVICE void decode(const uint8_t *buffer, const BatchImage &image, const BatchTile &tile, bool active,
                        const Tables &tables, Shared &shared) {
    const l3_rect rect = tile_rect(image, tile.x, tile.y);
    const TileShape shape = shape_of(rect);
    const uint8_t *bytes = buffer + tile.bytes;
    Channel state[channels];
    uint32_t transform = 0;
    parse(bytes, shape, tables, shared, state, &transform);
    Team::sync();

    const Number lane = Team::index();
    const Number column = lane * 4, last = shape.width - 1;
    const bool edge = Team::any(shape.width < L3_TILE);
    // Where the right neighbour of a sample is outside the tile, as masks of pairs.
    edge_even_ = Team::select(column == last, 0xFFFF, 0) | Team::select(column + 2 == last, 0xFFFF0000, 0);
    edge_odd_ = Team::select(column + 1 == last, 0xFFFF, 0) | Team::select(column + 3 == last, 0xFFFF0000, 0);
    bool scans = false, from_left = false;
    L3_UNROLL
    for (uint32_t c = 0; c < channels; c++) {
      scans |= Team::any(state[c].scans_next);
      from_left |= Team::any(state[c].from_left);
    }
    for (uint32_t y = 0; Team::any(Number(y) < shape.height); y += kStoredRows) {
      L3_UNROLL
      for (uint32_t pair = 0; pair < kStoredRows / 2; pair++) {
        Number even[channels][2], odd[channels][2];
        L3_UNROLL
        for (uint32_t c = 0; c < channels; c++)
          decode_any_pair(bytes, shared.records[c], y / 2 + pair, tables, edge, scans || y + pair == 0, from_left,
                          state[c], even[c], odd[c]);
        L3_UNROLL
        for (uint32_t i = 0; i < 2; i++) {
          Number pixels_even[channels], pixels_odd[channels];
          L3_UNROLL
          for (uint32_t c = 0; c < channels; c++) pixels_even[c] = even[c][i], pixels_odd[c] = odd[c][i];
          if constexpr (channels >= 3) {
            undo_transform(transform, pixels_even);
            undo_transform(transform, pixels_odd);
          }
          interleave(pixels_even, pixels_odd, shared.rows.row(2 * pair + i));
        }
      }
      Team::sync();
      if constexpr (full) {
        store_rows<Team>(image, rect, y, active && !image.converts(), shared.rows);
        if (image.converts()) store_converted_rows<Team, uint8_t>(image, rect, y, active, shared.rows);
      } else {
        store_rows<Team>(image, rect, y, active, shared.rows);
      }
      Team::sync();
    }
  }

 private:
  static L3_DEVICE Number load_unaligned(const uint8_t *bytes, const Number &position) {
    return lockstep::load_unaligned<Team>(bytes, position);
  }

  // Reads heads, palettes and index words, or label maps: sets up the channels and their records.
  L3_DEVICE void parse(const uint8_t *bytes, TileShape shape, const Tables &tables, Shared &shared,
                       Channel (&state)[channels], uint32_t *transform) {
    *transform = bytes[0];  // 8-bit samples have no scale beside it
    uint32_t body = fast_heads_size(channels, 8);
    L3_UNROLL
    for (uint32_t c = 0; c < channels; c++) {
      const ChannelHead head = read_channel_head(bytes, c, 8);
      const uint32_t predictor = head.predictor();
      const bool is_label_map = full && predictor == kLabelMap;
      Channel &channel = state[c];
      channel.even = channel.odd = Number(head.first) * kHalves;
      channel.smooths = mask_if(predictor == kSmoothAbove || predictor == kSmoothPlane);
      channel.from_left = mask_if(predictor == kLeft);
      channel.scans_next = mask_if(!is_label_map && sums_along_row(predictor));
      channel.scans = ~0u;  // row 0 is a running sum in any case
      if constexpr (full) {
        channel.residuals = mask_if(!is_label_map);
        channel.any_residuals = Team::any(!is_label_map);
        channel.any_labels = Team::any(is_label_map);
        if (channel.any_residuals)
          expand_records(bytes, body, head, shape, !is_label_map, shared.records[c].units.units);
        if (channel.any_labels)
          channel.labels.parse(bytes, body, head.first, shape, is_label_map, tables.marks, shared.records[c].labels);
      } else {
        expand_records(bytes, body, head, shape, true, shared.records[c].units);
      }
      body += head.body_size;
    }
  }
  static L3_DEVICE Number mask_if(bool condition) { return condition ? ~0u : 0u; }

  // Expands a channel's index words, and writes the records, where `here` is set: four units a lane.
  L3_DEVICE void expand_records(const uint8_t *bytes, uint32_t body, const ChannelHead &head, TileShape shape,
                                bool here, uint8_t *records) {
    const uint32_t index_bits = head.index_bits();
    // Palette entries, one a byte: 0 to 3 and 4 to 7.
    const Number packed = load_unaligned(bytes, body), first = packed & 0x0F0F0F0F, second = packed >> 4 & 0x0F0F0F0F;
    const Number palette_low = Team::permute_bytes(first, second, 0x5140),
                 palette_high = Team::permute_bytes(first, second, 0x7362);
    body += palette_size(index_bits, 8);
    const UnitBitmap<Team> present(bytes, body, head.has_bitmap(), shape);
    const uint32_t words = body + (head.has_bitmap() ? shape.unit_bitmap_size() : 0);
    const Number octets = present.count() * index_bits + words;

    const uint32_t two_units = shape.units_per_row_pair() - 1;
    const Number first_unit = present.first_unit(), of_lane = present.of_lane();
    Number word = present.before_lane() * index_bits + words, sum = 0;
    Number codes[kLaneUnits], widths[kLaneUnits], before[kLaneUnits];
    L3_UNROLL
    for (uint32_t j = 0; j < kLaneUnits; j++) {
      const Number is_present = of_lane >> j & 1;
      const Number groups =
          shape.groups() - ((first_unit + j) & two_units) * kUnitGroups;  // in the unit, at most eight count
      codes[j] = codes_of_word(load_unaligned(bytes, word), index_bits, palette_low, palette_high) &
                 ones<Team>(groups * 4) & (0u - is_present);
      widths[j] = (codes[j] & 0x11111111) + (codes[j] >> 1 & 0x77777777);  // (code + 1) / 2 in each nibble
      before[j] = sum;
      sum = Team::add_bytes(widths[j] & 0x0F0F0F0F, Team::add_bytes(widths[j] >> 4 & 0x0F0F0F0F, sum));
      word = word + is_present * index_bits;
    }
    const Number start = octets + Team::prefix_sum(sum) - sum;
    L3_UNROLL
    for (uint32_t j = 0; j < kLaneUnits; j++) {
      const Number record[4] = {codes[j], widths[j], start + before[j], 0};
      Team::template store_words<4>(records, record_place<Team>(shape, first_unit + j) * kUnitRecordSize, record, here);
    }
  }

  // The eight codes of an index word, a nibble each.
  static L3_DEVICE Number codes_of_word(const Number &word, uint32_t index_bits, const Number &palette_low,
                                        const Number &palette_high) {
    // Indices move apart until each has a nibble: halves, quarters, eighths.
    const uint32_t four = (1u << 4 * index_bits) - 1, two = ((1u << 2 * index_bits) - 1) * kHalves;
    const uint32_t one = ((1u << index_bits) - 1) * 0x01010101u;
    Number indices = (word & four) | (word >> 4 * index_bits & four) << 16;
    indices = (indices & two) | (indices >> 2 * index_bits & two) << 8;
    indices = (indices & one) | (indices >> index_bits & one) << 4;
    const Number low = Team::permute_bytes(palette_low, palette_high, indices);
    const Number high = Team::permute_bytes(palette_low, palette_high, indices >> 16);
    // From a byte to a nibble each.
    const Number low_pairs = low | low >> 4, high_pairs = high | high >> 4;
    const Number looked_up = Team::permute_bytes(low_pairs, high_pairs, 0x6420);
    return has_palette(index_bits, 8) ? looked_up : word;
  }

  // Decodes a row pair of a channel into pairs of samples.
  template <typename Records>
  L3_DEVICE void decode_any_pair(const uint8_t *bytes, const Records &records, uint32_t pair, const Tables &tables,
                                 bool edge, bool scans, bool from_left, Channel &channel, Number (&even)[2],
                                 Number (&odd)[2]) {
    if constexpr (!full) {
      decode_pair(bytes, records.units, pair, tables.codes, edge, scans, from_left, channel, even, odd);
    } else {
      Number labels_even[2] = {channel.even, channel.even}, labels_odd[2] = {channel.odd, channel.odd};
      if (channel.any_labels && channel.labels.find_marks(pair, records.labels)) {
        Number rows[2][4];
        channel.labels.decode_pair(bytes, tables.marks, records.labels, rows);
        L3_UNROLL
        for (uint32_t i = 0; i < 2; i++)
          labels_even[i] = rows[i][0] + (rows[i][2] << 16), labels_odd[i] = rows[i][1] + (rows[i][3] << 16);
      }
      if (channel.any_residuals)
        decode_pair(bytes, records.units.units, pair, tables.codes, edge, scans, from_left, channel, even, odd);
      if (!channel.any_labels) return;
      L3_UNROLL
      for (uint32_t i = 0; i < 2; i++) {
        even[i] = channel.any_residuals ? blend(channel.residuals, even[i], labels_even[i]) : labels_even[i];
        odd[i] = channel.any_residuals ? blend(channel.residuals, odd[i], labels_odd[i]) : labels_odd[i];
      }
      channel.even = even[1], channel.odd = odd[1];
    }
  }

  // The same where it is coded by residuals.
  L3_DEVICE void decode_pair(const uint8_t *bytes, const uint8_t *records, uint32_t pair, const CodeTable8 &table,
                             bool edge, bool scans, bool from_left, Channel &channel, Number (&even)[2],
                             Number (&odd)[2]) {
    const Number lane = Team::index(), nibble = (lane & 7) << 2;
    Number record[4], code[4], octet[3];
    Team::template load_words<4>(records, (lane >> 3) * kUnitRecordSize + pair * 2 * kUnitRecordSize, record);
    if constexpr (full)  // lanes of label maps read nothing of their own
      for (Number &word : record) word = word & channel.residuals;
    Team::template load_words<4>(reinterpret_cast<const uint8_t *>(table.words), (record[0] >> nibble & 15) << 4, code);
    const Number widths_before = record[1] & ((Number(1) << nibble) - 1), width = code[2];
    const Number position =
        Team::add_bytes(widths_before >> 4 & 0x0F0F0F0F, Team::add_bytes(widths_before & 0x0F0F0F0F, record[2]));
    Team::template load_words<3>(bytes, position & ~3u, octet);
    const Number low = Team::funnel_shift(octet[0], octet[1], position << 3);
    const Number high = Team::funnel_shift(octet[1], octet[2], position << 3);
    // The lower row's fields start 4 * width bits later.
    const Number of_row[2] = {low, Team::funnel_shift_clamped(low, high, code[3])};
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      const Number pairs = Team::permute_bytes(of_row[i], of_row[i] >> (width << 1), 0x5410);
      even[i] = (pairs & code[0]) + code[1];
      odd[i] = (pairs >> width & code[0]) + code[1];
    }
    Number before[2] = {0, 0};
    if (scans) {
      // Totals of both rows share the scan, a half each: neither can overflow.
      const Number sums[2] = {even[0] + odd[0], even[1] + odd[1]};
      const Number totals = Team::permute_bytes(sums[0] + (sums[0] << 16), sums[1] + (sums[1] << 16), 0x7632);
      const Number before_both = Team::prefix_sum(totals) - totals;
      const Number scans_row[2] = {channel.scans, channel.scans_next};
      before[0] = Team::permute_bytes(before_both, 0, 0x1010) & scans_row[0];
      before[1] = Team::permute_bytes(before_both, 0, 0x3232) & scans_row[1];
      L3_UNROLL
      for (uint32_t i = 0; i < 2; i++) {
        odd[i] = odd[i] + (even[i] & scans_row[i]);
        const Number first_two = sums[i] << 16 & scans_row[i];
        even[i] = even[i] + first_two;
        odd[i] = odd[i] + first_two;
      }
    }
    channel.scans = channel.scans_next;
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      Number base_even = channel.even, base_odd = channel.odd;
      smooth(edge, channel, base_even, base_odd);
      if (from_left) {
        const Number corner = Team::permute_bytes(Team::broadcast(channel.even, 0), 0, 0x1010);
        base_even = blend(channel.from_left, corner, base_even);
        base_odd = blend(channel.from_left, corner, base_odd);
      }
      channel.even = even[i] = (base_even + even[i] + before[i]) & kPairMask;
      channel.odd = odd[i] = (base_odd + odd[i] + before[i]) & kPairMask;
    }
  }

  static L3_DEVICE Number blend(const Number &mask, const Number &if_set, const Number &if_clear) {
    return (if_set & mask) | (if_clear & ~mask);
  }

  // Replaces the row above by q where the channel's predictor wants it: avg(avg(NW, NE), N) is (NW + NE + 2 N + 3) / 4.
  L3_DEVICE void smooth(bool edge, const Channel &channel, Number &even, Number &odd) const {
    const Number lane = Team::index(),
                 ends = Team::permute_bytes(even, odd, 0x7610);  // the lane's first and last sample
    const Number left = Team::from_left(ends), right = Team::from_right(ends);
    // At the ends of the row the team's outer lanes got their own samples back; N stands for NW and NE there.
    const Number north_west = Team::permute_bytes(left, odd, Team::select(lane == 0, 0x5410, 0x5432));
    Number east_of_even = odd,
           east_of_odd = Team::permute_bytes(even, right, Team::select(lane == Team::kCount - 1, 0x7632, 0x5432));
    if (edge) {
      east_of_even = blend(edge_even_, even, east_of_even);
      east_of_odd = blend(edge_odd_, odd, east_of_odd);
    }
    const Number smooth_even = (north_west + east_of_even + even * 2 + 3 * kHalves) >> 2;
    const Number smooth_odd = (even + east_of_odd + odd * 2 + 3 * kHalves) >> 2;
    even = blend(channel.smooths & kPairMask, smooth_even, even);
    odd = blend(channel.smooths & kPairMask, smooth_odd, odd);
  }

  // Of pairs of samples in coding order G, R, B.
  static L3_DEVICE void undo_transform(uint32_t transform, Number (&samples)[channels]) {
    const Number subtracted = mask_if(transform != kTransformNone), mean = mask_if(transform == kSubtractGreenAndMean);
    const Number green = samples[0], red = (samples[1] + ((green + kMiddle) & subtracted)) & kPairMask;
    const Number reference = blend(mean, (red + green) >> 1 & kPairMask, green);
    samples[1] = red;
    samples[2] = (samples[2] + ((reference + kMiddle) & subtracted)) & kPairMask;
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

  Number edge_even_, edge_odd_;
};

}  // namespace l3
