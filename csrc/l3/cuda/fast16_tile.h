// The kernel for `fast` tiles of 16-bit images, written over lanes: a team of 16 lanes decodes a tile, all channels at
// once, four rows at a time, as that for 8 bits does (fast8_tile.h).
//
// Each lane holds a group of 4 x 2 samples, one a register: sums wrap around in its low half, and what they leave in
// the high half is cut off when the sample is finished. Work that no channel of the warp's two tiles needs is skipped.
#pragma once

#include "group_records.h"
#include "label_rows.h"
#include "row_store.h"

namespace l3 {

// The tables of a block.
struct Fast16Tables {
  static constexpr uint32_t kThreads = code_count(16);  // that fill them
  // By code, four words: masks of the low eight bits and of the high ones of two fields; the minimum; the widths of
  // both parts, the high one's from bit 8 on.
  alignas(16) uint32_t codes[kThreads][4];
  MarkTable marks;

  L3_HOST_DEVICE void fill(uint32_t thread) {
    const uint32_t width = code_width(thread), low = width < 8 ? width : 8, high = width - low, twice = 0x00010001;
    codes[thread][0] = ((1u << low) - 1) * twice;
    codes[thread][1] = ((1u << high) - 1) * twice;
    codes[thread][2] = code_minimum(thread);
    codes[thread][3] = low | high << 8;
    if (thread < MarkTable::kEntries) marks.fill(thread);
  }
};

// The shared memory of a team.
template <uint32_t channels>
struct Fast16Shared {
  union Records {
    GroupRecords groups;
    LabelRecords labels;
    static_assert(LabelRecords::position_of_none() >= sizeof(GroupRecords));
  } records[channels];
  SharedRows<2 * channels> rows;
};

template <WordLanes Team, uint32_t channels>
class Fast16Tile {
  using Number = typename Team::Number;
  static constexpr uint32_t kSample = 0xFFFF, kMiddle = 0x8000;

  struct Channel {
    Number above[4];                       // the row above
    Number residuals, smooths, from_left;  // masks: it is no label map; base is q; base is N(0)
    uint32_t scans;                        // 1 where rows after the first are running sums, else 0
    LabelRows<Team, uint16_t> labels;
    bool any_residuals, any_labels, any_smooths, any_from_left, any_scans;  // in the warp's tiles
  };

 public:
  using Tables = Fast16Tables;
  using Shared = Fast16Shared<channels>;

  // `buffer` holds the batch (see batch.h); `tile` was validated. `active` is the same for all lanes of the team: a
  // team without a tile of its own goes through the motions with another's, and stores nothing.
  L3_DEVICE void decode(const uint8_t *buffer, const BatchImage &image, const BatchTile &tile, bool active,
                        const Tables &tables, Shared &shared) {
    const l3_rect rect = tile_rect(image, tile.x, tile.y);
    const TileShape shape = shape_of(rect);
    const uint8_t *bytes = buffer + tile.bytes;
    Channel state[channels];
    parse(bytes, shape, shared, state);
    RowStore<Team, 2 * channels> store(image, rect, active && !image.converts());
    Team::sync();

    for (uint32_t y = 0; Team::any(Number(y) < shape.height); y += kStoredRows) {
      L3_UNROLL
      for (uint32_t pair = 0; pair < kStoredRows / 2; pair++) {
        Number rows[channels][2][4];
        L3_UNROLL
        for (uint32_t c = 0; c < channels; c++)
          decode_pair(bytes, y / 2 + pair, tables, shared.records[c], state[c], rows[c]);
        L3_UNROLL
        for (uint32_t i = 0; i < 2; i++) {
          Number pixels[4 * channels];  // of the lane, in coding order
          L3_UNROLL
          for (uint32_t n = 0; n < 4 * channels; n++) pixels[n] = rows[n % channels][i][n / channels];
          put_row(pixels, shared.rows.row(2 * pair + i));
        }
      }
      Team::sync();
      store.store(shared.rows.bytes, y);
      if (image.converts()) store_converted_rows<Team, uint16_t>(image, rect, y, active, shared.rows);
      Team::sync();
    }
  }

 private:
  static L3_DEVICE Number mask_if(bool condition) { return condition ? ~0u : 0u; }
  static L3_DEVICE Number blend(const Number &mask, const Number &if_set, const Number &if_clear) {
    return (if_set & mask) | (if_clear & ~mask);
  }

  // Reads heads, palettes and index words, or label maps: sets up the channels and their records.
  L3_DEVICE void parse(const uint8_t *bytes, TileShape shape, Shared &shared, Channel (&state)[channels]) {
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++) at_edge_[k] = Team::select(Team::index() * 4 + k == shape.width - 1, ~0u, 0);
    any_cut_ = Team::any(shape.width < L3_TILE);
    color_ = color_of(bytes[0]);
    factor_ = scale_factor(scale_of(bytes[0]));
    any_transform_ = Team::any(color_ != kTransformNone);
    any_scaled_ = Team::any(factor_ != 1);
    Number wide = 0;
    uint32_t body = fast_heads_size(channels, 16);
    L3_UNROLL
    for (uint32_t c = 0; c < channels; c++) {
      const ChannelHead head = read_channel_head(bytes, c, 16);
      const uint32_t predictor = head.predictor();
      const bool is_label_map = predictor == kLabelMap;
      Channel &channel = state[c];
      for (Number &sample : channel.above) sample = head.first;
      channel.residuals = mask_if(!is_label_map);
      channel.smooths = mask_if(predictor == kSmoothAbove || predictor == kSmoothPlane);
      channel.from_left = mask_if(predictor == kLeft);
      channel.scans = sums_along_row(predictor) && !is_label_map;
      channel.any_residuals = Team::any(!is_label_map);
      channel.any_labels = Team::any(is_label_map);
      channel.any_smooths = Team::any(channel.smooths);
      channel.any_from_left = Team::any(channel.from_left);
      channel.any_scans = Team::any(channel.scans);
      if (channel.any_residuals)
        wide = wide | expand_groups<Team>(bytes, body, head, shape, !is_label_map, shared.records[c].groups);
      if (channel.any_labels)
        channel.labels.parse(bytes, body, head.first, shape, is_label_map, shared.records[c].labels);
      body += head.body_size;
    }
    any_wide_ = Team::any(wide);
  }

  // Decodes a row pair of a channel.
  L3_DEVICE void decode_pair(const uint8_t *bytes, uint32_t pair, const Tables &tables,
                             typename Shared::Records &records, Channel &channel, Number (&rows)[2][4]) const {
    if (channel.any_labels) {
      decode_labels(bytes, pair, tables, records, channel, rows);
    } else {
      decode_residuals(bytes, pair, tables, records.groups, channel, rows);
    }
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++) channel.above[k] = rows[1][k];
  }

  // The same where it is a label map in a tile of the warp.
  L3_DEVICE void decode_labels(const uint8_t *bytes, uint32_t pair, const Tables &tables,
                               typename Shared::Records &records, Channel &channel, Number (&rows)[2][4]) const {
    Number places[2], labels[2][4];
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++) labels[0][k] = labels[1][k] = channel.above[k];
    if (channel.labels.decode_pair(bytes, pair, place_, tables.marks, records.labels, places)) {
      L3_UNROLL
      for (uint32_t i = 0; i < 2; i++) channel.labels.look_up_values(records.labels, places[i], labels[i]);
    }
    if (channel.any_residuals) decode_residuals(bytes, pair, tables, records.groups, channel, rows);
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      L3_UNROLL
      for (uint32_t k = 0; k < 4; k++)
        rows[i][k] = channel.any_residuals ? blend(channel.residuals, rows[i][k], labels[i][k]) : labels[i][k];
    }
  }

  L3_DEVICE void decode_residuals(const uint8_t *bytes, uint32_t pair, const Tables &tables,
                                  const GroupRecords &records, const Channel &channel, Number (&rows)[2][4]) const {
    unpack_pair(bytes, pair, tables, records, channel.residuals, rows);
    Number before[2] = {0, 0};
    if (channel.any_scans || pair == 0) {
      const uint32_t scans[2] = {pair == 0 ? 1 : channel.scans, channel.scans};  // row 0 is a running sum in any case
      L3_UNROLL
      for (uint32_t i = 0; i < 2; i++) {
        L3_UNROLL
        for (uint32_t k = 1; k < 4; k++) rows[i][k] = rows[i][k - 1] * scans[i] + rows[i][k];
        before[i] = (Team::prefix_sum(rows[i][3]) - rows[i][3]) * scans[i];
      }
    }
    Number above[4];
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++) above[k] = channel.above[k];
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      Number base[4];
      find_base(channel, above, base);
      L3_UNROLL
      for (uint32_t k = 0; k < 4; k++) above[k] = rows[i][k] = (base[k] + rows[i][k] + before[i]) & kSample;
    }
  }

  // The residuals of a row pair, in the low halves. Lanes of label maps read nothing of their own.
  L3_DEVICE void unpack_pair(const uint8_t *bytes, uint32_t pair, const Tables &tables, const GroupRecords &records,
                             const Number &residuals, Number (&rows)[2][4]) const {
    const Number group = Team::index() + pair * Team::kCount;
    const Number code = Team::load(records.codes, group, residuals),
                 octet = Team::load(records.positions, group, residuals);
    Number entry[4], words[3];
    Team::template load_words<4>(reinterpret_cast<const uint8_t *>(tables.codes), code << 4, entry);
    const Number shift = octet << 3;
    Team::template load_words_of_bit<3>(bytes, shift, words);
    const Number low = Team::funnel_shift(words[0], words[1], shift),
                 high = Team::funnel_shift(words[1], words[2], shift);
    Number even[2], odd[2];  // fields, in pairs
    unpack_fields(low, high, entry[3] & 15, entry[0], even, odd);
    if (any_wide_) {  // whose low eight bits take eight bytes
      Number more[2], even_above[2], odd_above[2];
      Team::template load_words_of_bit<2>(bytes + 12, shift, more);
      const Number third = Team::funnel_shift(words[2], more[0], shift),
                   fourth = Team::funnel_shift(more[0], more[1], shift);
      unpack_fields(third, fourth, entry[3] >> 8, entry[1], even_above, odd_above);
      L3_UNROLL
      for (uint32_t i = 0; i < 2; i++) even[i] = even_above[i] * 256 + even[i], odd[i] = odd_above[i] * 256 + odd[i];
    }
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      rows[i][0] = even[i] + entry[2], rows[i][1] = odd[i] + entry[2];
      rows[i][2] = (even[i] >> 16) + entry[2], rows[i][3] = (odd[i] >> 16) + entry[2];
    }
  }

  // The fields of `width` (at most 8) bits of an octet: of each row the first and the third in a pair, and the second
  // and the fourth.
  static L3_DEVICE void unpack_fields(const Number &low, const Number &high, const Number &width, const Number &mask,
                                      Number (&even)[2], Number (&odd)[2]) {
    const Number of_row[2] = {low, Team::funnel_shift_clamped(low, high, width << 2)};
    L3_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
      const Number pairs = Team::permute_bytes(of_row[i], of_row[i] >> (width << 1), 0x5410);
      even[i] = pairs & mask;
      odd[i] = pairs >> width & mask;
    }
  }

  // What residuals are added to, from the row above.
  L3_DEVICE void find_base(const Channel &channel, const Number (&above)[4], Number (&base)[4]) const {
    L3_UNROLL
    for (uint32_t k = 0; k < 4; k++) base[k] = above[k];
    if (channel.any_smooths) {
      const Number left = Team::select(Team::index() == 0, above[0], Team::from_left(above[3])),
                   right = Team::from_right(above[0]);
      L3_UNROLL
      for (uint32_t k = 0; k < 4; k++) {
        const Number north_west = k ? above[k - 1] : left;
        Number north_east = k < 3 ? above[k + 1] : right;
        if (k == 3 || any_cut_) north_east = blend(at_edge_[k], above[k], north_east);
        // avg(avg(NW, NE), N)
        const Number smooth = (north_west + north_east + above[k] * 2 + 3) >> 2;
        base[k] = blend(channel.smooths, smooth, above[k]);
      }
    }
    if (channel.any_from_left) {
      const Number corner = Team::broadcast(above[0], 0);
      L3_UNROLL
      for (uint32_t k = 0; k < 4; k++) base[k] = blend(channel.from_left, corner, base[k]);
    }
  }

  // Undoes the transform of the lane's four pixels of a row, and writes them as words of interleaved samples.
  L3_DEVICE void put_row(Number (&pixels)[4 * channels], uint8_t *row) const {
    if constexpr (channels >= 3) {
      if (any_transform_) {
        const Number subtracted = mask_if(color_ != kTransformNone), mean = mask_if(color_ == kSubtractGreenAndMean),
                     middle = subtracted & kMiddle;
        L3_UNROLL
        for (uint32_t n = 0; n < 4 * channels; n += channels) {  // in the order G, R, B
          const Number green = pixels[n], red = (pixels[n + 1] + (green & subtracted) + middle) & kSample;
          const Number reference = blend(mean, (red + green) >> 1, green);
          pixels[n + 1] = red;
          pixels[n + 2] = pixels[n + 2] + (reference & subtracted) + middle;
        }
      }
    }
    if (any_scaled_) {
      L3_UNROLL
      for (Number &pixel : pixels) pixel = pixel * factor_;
    }
    Number words[2 * channels];
    L3_UNROLL
    for (uint32_t w = 0; w < 2 * channels; w++) {
      const auto of_row = [&](uint32_t sample) {
        return pixels[sample / channels * channels + channel_of_plane(sample % channels, channels)];
      };
      words[w] = Team::permute_bytes(of_row(2 * w), of_row(2 * w + 1), 0x5410);
    }
    // In stores as wide as the size of four pixels allows.
    constexpr uint32_t kWide = channels % 2 ? 2 : 4;
    L3_UNROLL
    for (uint32_t w = 0; w < 2 * channels; w += kWide) {
      Number some[kWide];
      L3_UNROLL
      for (uint32_t k = 0; k < kWide; k++) some[k] = words[w + k];
      Team::template store_words<kWide>(row, Team::index() * (8 * channels) + 4 * w, some);
    }
  }

  PlaceInUnit<Team> place_;
  Number at_edge_[4];  // masks: the right neighbour of a sample is outside the tile
  uint32_t color_, factor_;
  // In the warp's tiles: not of full width; a colour transform; scaled samples; wide fields.
  bool any_cut_, any_transform_, any_scaled_, any_wide_;
};

}  // namespace l3
