// The kernel for `fast` tiles of 8-bit images, written over lanes: a team of 16 lanes decodes a tile, all channels at
// once, four rows at a time.
//
// Each lane holds a group of 4 x 2 samples. Samples travel in pairs, a 16-bit half each, so that sums need no care for
// overflow until they are masked: `even` holds the first and the third of a row's four, `odd` the second and the
// fourth. First the index words of all units are expanded into records that say where each unit's octets start, which
// leaves the main loop without a serial pointer; finished rows are put together as pixels in shared memory and leave it
// in 16-byte stores.
#pragma once

#include "copy_row.h"
#include "format/fast_tile.h"
#include "tile_part.h"

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

// The shared memory of a team.
template <uint32_t channels>
struct Fast8Shared {
  static constexpr uint32_t kRows = 4;                      // decoded between stores
  static constexpr uint32_t kRowSize = L3_TILE * channels;  // bytes
  static constexpr uint32_t kRecordSize = 16;  // codes, widths (a nibble a group), position of the unit's octets
  alignas(16) uint8_t records[channels][kMaxUnits * kRecordSize];
  alignas(16) uint8_t rows[kRows * kRowSize + 16];
};

template <WordLanes Team, uint32_t channels>
class Fast8Tile {
  using Number = typename Team::Number;
  using Shared = Fast8Shared<channels>;
  static constexpr uint32_t kPairMask = 0x00FF00FF, kHalves = 0x00010001, kMiddle = 128 * kHalves;

  struct Channel {
    Number even, odd;  // the row above
    Number smooths, from_left, scans,
        scans_next;  // masks: base is q; base is N(0); rows are running sums: this row, and those after it
  };

 public:
  // `buffer` holds the batch (see batch.h); `tile` was validated. `active` is the same for all lanes of the team: a
  // team without a tile of its own goes through the motions with another's, and stores nothing.
  L3_DEVICE void decode(const uint8_t *buffer, const BatchImage &image, const BatchTile &tile, bool active,
                        const CodeTable8 &table, Shared &shared) {
    const l3_rect rect = tile_rect(image, tile.x, tile.y);
    const TileShape shape = shape_of(rect);
    const uint8_t *bytes = buffer + tile.bytes;
    Channel state[channels];
    uint32_t transform = 0;
    parse(bytes, shape, shared, state, &transform);
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
    for (uint32_t y = 0; Team::any(Number(y) < shape.height); y += Shared::kRows) {
      L3_UNROLL
      for (uint32_t pair = 0; pair < Shared::kRows / 2; pair++) {
        Number even[channels][2], odd[channels][2];
        L3_UNROLL
        for (uint32_t c = 0; c < channels; c++)
          decode_pair(bytes, shared.records[c], y / 2 + pair, table, edge, scans || y + pair == 0, from_left, state[c],
                      even[c], odd[c]);
        L3_UNROLL
        for (uint32_t i = 0; i < 2; i++) {
          Number pixels_even[channels], pixels_odd[channels];
          L3_UNROLL
          for (uint32_t c = 0; c < channels; c++) pixels_even[c] = even[c][i], pixels_odd[c] = odd[c][i];
          if constexpr (channels >= 3) {
            undo_transform(transform, pixels_even);
            undo_transform(transform, pixels_odd);
          }
          interleave(pixels_even, pixels_odd, shared.rows + (2 * pair + i) * Shared::kRowSize);
        }
      }
      Team::sync();
      store_rows(image, rect, y, active, shared);
      Team::sync();
    }
  }

 private:
  static L3_DEVICE Number load_unaligned(const uint8_t *bytes, const Number &position) {
    return lockstep::load_unaligned<Team>(bytes, position);
  }

  // The low `count` (0 to 32) bits.
  static L3_DEVICE Number ones(const Number &count) {
    return Team::select(count < 32, (Number(1) << (count & 31)) - 1, ~0u);
  }

  // Bit `position` (0 to 63) of a pair of words, and how many bits are set below it.
  struct Bitmap {
    Number low, high;
    L3_DEVICE Number bits_from(const Number &position) const {
      return Team::select(position < 32, low, high) >> (position & 31);
    }
    L3_DEVICE Number rank(const Number &position) const {
      const Number in_low = Team::count_bits(low & ones(position));
      return in_low + Team::select(position < 32, 0, Team::count_bits(high & ones(position - 32)));
    }
  };

  // Reads heads, palettes and index words: sets up the channels and their records.
  L3_DEVICE void parse(const uint8_t *bytes, TileShape shape, Shared &shared, Channel (&state)[channels],
                       uint32_t *transform) {
    *transform = bytes[0];  // 8-bit samples have no scale beside it
    uint32_t body = fast_heads_size(channels, 8);
    L3_UNROLL
    for (uint32_t c = 0; c < channels; c++) {
      const ChannelHead head = read_channel_head(bytes, c, 8);
      const uint32_t predictor = head.predictor();
      Channel &channel = state[c];
      channel.even = channel.odd = Number(head.first) * kHalves;
      channel.smooths = mask_if(predictor == kSmoothAbove || predictor == kSmoothPlane);
      channel.from_left = mask_if(predictor == kLeft);
      channel.scans_next = mask_if(sums_along_row(predictor));
      channel.scans = ~0u;  // row 0 is a running sum in any case
      expand_records(bytes, body, head.index_bits(), head.has_bitmap(), shape, shared.records[c]);
      body += head.body_size;
    }
  }
  static L3_DEVICE Number mask_if(bool condition) { return condition ? ~0u : 0u; }

  // Expands a channel's index words: four units a lane.
  L3_DEVICE void expand_records(const uint8_t *bytes, uint32_t body, uint32_t index_bits, bool has_bitmap,
                                TileShape shape, uint8_t *records) {
    const Number lane = Team::index();
    const uint32_t units = shape.units(), palette_bytes = palette_size(index_bits, 8),
                   bitmap_bytes = has_bitmap ? shape.unit_bitmap_size() : 0;
    // Palette entries, one a byte: 0 to 3 and 4 to 7.
    const Number packed = load_unaligned(bytes, body), first = packed & 0x0F0F0F0F, second = packed >> 4 & 0x0F0F0F0F;
    const Number palette_low = Team::permute_bytes(first, second, 0x5140),
                 palette_high = Team::permute_bytes(first, second, 0x7362);
    body += palette_bytes;
    Bitmap present{~0u, ~0u};
    if (Team::any(has_bitmap)) {
      present.low = Team::select(has_bitmap, load_unaligned(bytes, body), ~0u);
      present.high = Team::select(has_bitmap, load_unaligned(bytes, body + 4), ~0u);
    }
    present.low = present.low & ones(units);
    present.high = present.high & ones(units > 32 ? units - 32 : 0);
    const Number words = body + bitmap_bytes;
    const Number octets = words + (Team::count_bits(present.low) + Team::count_bits(present.high)) * index_bits;

    const uint32_t two_units = shape.units_per_row_pair() - 1;
    const Number first_unit = lane * 4, bits = present.bits_from(first_unit);
    Number word = words + present.rank(first_unit) * index_bits, sum = 0;
    Number codes[4], widths[4], before[4];
    L3_UNROLL
    for (uint32_t j = 0; j < 4; j++) {
      const Number here = bits >> j & 1;
      const Number groups =
          shape.groups() - ((first_unit + j) & two_units) * kUnitGroups;  // in the unit, at most eight count
      codes[j] = codes_of_word(load_unaligned(bytes, word), index_bits, palette_low, palette_high) & ones(groups * 4) &
                 (0u - here);
      widths[j] = (codes[j] & 0x11111111) + (codes[j] >> 1 & 0x77777777);  // (code + 1) / 2 in each nibble
      before[j] = sum;
      sum = Team::add_bytes(widths[j] & 0x0F0F0F0F, Team::add_bytes(widths[j] >> 4 & 0x0F0F0F0F, sum));
      word = word + here * index_bits;
    }
    const Number start = octets + Team::prefix_sum(sum) - sum;
    L3_UNROLL
    for (uint32_t j = 0; j < 4; j++) {
      // Row pairs of one unit leave every second record to a unit that does not exist, and has no groups.
      const Number unit = first_unit + j;
      const Number place = two_units ? unit : Team::select(unit < 32, unit * 2, (unit & 31) * 2 + 1);
      const Number record[4] = {codes[j], widths[j], start + before[j], 0};
      Team::template store_words<4>(records, place * Shared::kRecordSize, record);
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
  L3_DEVICE void decode_pair(const uint8_t *bytes, const uint8_t *records, uint32_t pair, const CodeTable8 &table,
                             bool edge, bool scans, bool from_left, Channel &channel, Number (&even)[2],
                             Number (&odd)[2]) {
    const Number lane = Team::index(), nibble = (lane & 7) << 2;
    Number record[4], code[4], octet[3];
    Team::template load_words<4>(records, (lane >> 3) * Shared::kRecordSize + pair * 2 * Shared::kRecordSize, record);
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

  // Writes what lies in the region of the four rows from tile row `y` on.
  L3_DEVICE void store_rows(const BatchImage &image, const l3_rect &rect, uint32_t y, bool active,
                            const Shared &shared) const {
    const Number lane = Team::index();
    const TileEdges part = part_in_region(rect, image.region);
    const uint32_t first_byte = part.left * channels, end_byte = part.right * channels;
    const uint32_t first_row = rect.y + y, end_row = rect.y + part.bottom;  // in the image
    uint8_t *out = image.out + int64_t(int32_t(first_row - image.region.y)) * int64_t(image.row_stride) +
                   int64_t(int32_t(rect.x - image.region.x)) * channels;
    const bool whole =
        part.left == 0 && part.right == L3_TILE && first_row >= image.region.y && first_row + Shared::kRows <= end_row;
    const bool aligned = ((reinterpret_cast<uintptr_t>(out) | image.row_stride) & 15) == 0;
    const bool in_chunks = active && whole && aligned;
    if (Team::any(in_chunks)) {
      // 4 * channels chunks of 16 bytes a row, `channels` chunks a lane.
      L3_UNROLL
      for (uint32_t i = 0; i < channels; i++) {
        const Number chunk = lane + i * Team::kCount, row = Team::divide_small(chunk, 4 * channels);
        const Number column = chunk - row * (4 * channels);
        Number words[4];
        Team::template load_words<4>(shared.rows, chunk * 16, words);
        Team::template store_words<4>(out, row * uint32_t(image.row_stride) + column * 16, words, in_chunks);
      }
    }
    if (Team::any(active && !in_chunks)) {
      for (uint32_t row = 0; row < Shared::kRows; row++) {
        const bool inside = active && !in_chunks && first_row + row >= image.region.y && first_row + row < end_row;
        uint8_t *const out_row = out + int64_t(row) * int64_t(image.row_stride) + first_byte;
        copy_row<Team>(shared.rows, row * Shared::kRowSize + first_byte, out_row, inside ? end_byte - first_byte : 0);
      }
    }
  }

  Number edge_even_, edge_odd_;
};

}  // namespace l3
