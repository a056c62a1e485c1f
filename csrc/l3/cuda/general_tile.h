// The kernel for the tiles that those for 8-bit `fast` and for stored tiles leave: 16 bits, label maps, `paper`, and
// whatever is converted.
//
// A block decodes a tile, in phases with barriers between them: one thread reads the structure; a team of 16 lanes a
// channel decodes planes into shared memory; all threads write the part of the tile that lies in the region, converted.
// Phases are functions of a thread's or a team's number, so that tests can run them on a CPU, one thread after the
// other.
#pragma once

#include "lockstep/lockstep.h"
#include "lockstep/lockstep_label_map.h"
#include "lockstep/lockstep_paper.h"
#include "output/convert_pixel.h"
#include "tile_part.h"

namespace l3::general {

constexpr uint32_t kTeams = L3_MAX_CHANNELS, kThreads = kTeams * 16, kWarp = 32;

// ---- Phase 1: structure

// Finds the channels and the transform of a `fast` tile; others have no transform. False: the tile is to be left out;
// the host, which validates every tile, would have refused it.
L3_DEVICE bool parse(const TilePart &tile, FastTile *fast) {
  const BatchImage &image = tile.image;
  if (image.profile == L3_PROFILE_FAST)
    return !parse_fast_tile(tile.bytes, tile.size, image.channels, image.bits, tile.shape, fast);
  fast->transform = {kTransformNone, 1};
  // Bodies of `paper` stand where their byte counts say.
  return image.profile != L3_PROFILE_RAW || tile.size >= tile.shape.pixels() * image.channels * (image.bits / 8);
}

// ---- Phase 2: planes

// Decodes channel `c` in coding order, if there is one; all lanes of a team call this together.
template <Lanes Team, typename Sample>
L3_DEVICE void decode_channel(const TilePart &tile, const FastTile &fast, uint32_t c, Sample *planes) {
  const uint32_t channels = tile.image.channels;
  if (c >= channels || tile.image.profile == L3_PROFILE_RAW) return;
  if (tile.image.profile == L3_PROFILE_PAPER) {
    const PaperChannel channel = lockstep::locate_paper_channel<Sample>(tile.bytes, tile.size, channels, c, tile.shape);
    lockstep::decode_paper_channel<Team>(tile.bytes, channel, tile.shape,
                                         planes + channel_of_plane(c, channels) * kPlaneSize);
  } else if (fast.channels[c].predictor == kLabelMap) {
    lockstep::decode_label_map<Team>(tile.bytes, fast.channels[c], tile.shape, planes + c * kPlaneSize);
  } else {
    lockstep::decode_channel<Team>(tile.bytes, fast.channels[c], tile.shape, planes + c * kPlaneSize);
  }
}

// ---- Phase 3: pixels

// Samples of a tile's pixels, from its planes, transformed on the way.
template <typename Sample>
struct PlanePixels {
  const Sample *planes;
  uint32_t channels;
  Transform transform;

  L3_DEVICE Sample operator()(uint32_t x, uint32_t y, uint32_t channel) const {
    const Sample sample = unscaled(x, y, channel);
    return sizeof(Sample) == 2 ? Sample(sample * transform.factor) : sample;
  }

 private:
  L3_DEVICE Sample unscaled(uint32_t x, uint32_t y, uint32_t channel) const {
    constexpr uint32_t middle = 1u << (8 * sizeof(Sample) - 1);
    const Sample *const at = planes + y * L3_TILE + x;
    const Sample stored = at[channel_of_plane(channel, channels) * kPlaneSize];
    if (transform.color == kTransformNone || channel % 2 == 1) return stored;
    const Sample green = at[0], red = Sample(at[kPlaneSize] + green - middle);
    if (channel == 0) return red;
    return Sample(stored + (transform.color == kSubtractGreen ? green : (uint32_t(red) + green) / 2) - middle);
  }
};

// The same from the bytes of a `raw` tile, which are aligned to samples.
template <typename Sample>
struct StoredPixels {
  const Sample *samples;
  uint32_t channels, width;

  L3_DEVICE Sample operator()(uint32_t x, uint32_t y, uint32_t channel) const {
    return samples[(y * width + x) * channels + channel];
  }
};

// One sample of a pixel as convert() would write it.
template <typename Out, typename Sample, typename Pixels>
L3_DEVICE Out converted_sample(const Pixels &pixels, uint32_t color, uint32_t x, uint32_t y, uint32_t component) {
  const auto rgb = [&](uint32_t c) { return pixels(x, y, channel_as_rgb(c, pixels.channels)); };
  switch (color) {
    case L3_COLOR_RGB: return scale_sample<Out>(rgb(component));
    case L3_COLOR_BGR: return scale_sample<Out>(rgb(2 - component));
    case L3_COLOR_GRAY: return scale_sample<Out>(pixels.channels < 3 ? rgb(0) : luma<Sample>(rgb(0), rgb(1), rgb(2)));
    case L3_COLOR_YCBCR: return ycbcr_of_rgb<Out>(component, rgb(0), rgb(1), rgb(2));
    default: return scale_sample<Out>(pixels(x, y, component));
  }
}

using Word [[gnu::may_alias]] = uint32_t;  // of samples of any type

template <typename Out>
L3_DEVICE uint32_t bits_of(Out sample) {
  if constexpr (std::is_floating_point_v<Out>)
    return std::bit_cast<uint32_t>(sample);
  else if constexpr (std::is_same_v<Out, Half>)
    return sample.bits;
  else
    return std::make_unsigned_t<Out>(sample);
}

// A warp takes a row, and a thread the samples of a word of the output, so that stores are coalesced and whole cache
// lines. Words at the ends of the row, which belong to it only in part, are written sample by sample.
template <typename Out, typename Sample, typename Pixels>
L3_DEVICE void write_samples(const TilePart &tile, const Pixels &pixels, uint32_t thread) {
  constexpr uint32_t kInWord = 4 / sizeof(Out);  // samples
  const uint32_t channels = tile.image.output_pixel_size / uint32_t(sizeof(Out)), color = tile.image.color;
  const uint32_t samples = tile.width * channels;
  const uint32_t reciprocal = 65536 / channels + 1;  // divides numbers below 2^14 by up to four
  for (uint32_t y = thread / kWarp; y < tile.height; y += kThreads / kWarp) {
    Out *const row = reinterpret_cast<Out *>(tile.out + y * tile.image.row_stride);
    const uint32_t before =
        uint32_t(reinterpret_cast<uintptr_t>(row) % 4 / sizeof(Out));  // samples of the first word that precede the row
    for (uint32_t in_words = thread % kWarp * kInWord; in_words < before + samples; in_words += kWarp * kInWord) {
      const uint32_t first =
          in_words - before;  // wraps around where the word begins before the row: beyond its end, like any outside it
      const bool whole = first < samples && samples - first >= kInWord;
      Word word = 0;
      for (uint32_t k = 0; k < kInWord; k++) {
        const uint32_t i = first + k;
        if (i >= samples) continue;
        const uint32_t x = i * reciprocal >> 16;
        const auto sample =
            Out(converted_sample<Computed<Out>, Sample>(pixels, color, tile.left + x, tile.top + y, i - x * channels));
        if (whole)
          word |= bits_of(sample) << 8 * sizeof(Out) * k;
        else
          row[i] = sample;
      }
      if (whole) *reinterpret_cast<Word *>(row + first) = word;
    }
  }
}

template <typename Sample, typename Pixels>
L3_DEVICE void write_pixels(const TilePart &tile, const Pixels &pixels, uint32_t thread) {
  switch (tile.image.sample) {
    case L3_SAMPLE_U8: return write_samples<uint8_t, Sample>(tile, pixels, thread);
    case L3_SAMPLE_I8: return write_samples<int8_t, Sample>(tile, pixels, thread);
    case L3_SAMPLE_U16: return write_samples<uint16_t, Sample>(tile, pixels, thread);
    case L3_SAMPLE_I16: return write_samples<int16_t, Sample>(tile, pixels, thread);
    case L3_SAMPLE_U32: return write_samples<uint32_t, Sample>(tile, pixels, thread);
    case L3_SAMPLE_I32: return write_samples<int32_t, Sample>(tile, pixels, thread);
    case L3_SAMPLE_F32: return write_samples<float, Sample>(tile, pixels, thread);
    case L3_SAMPLE_F16: return write_samples<Half, Sample>(tile, pixels, thread);
    default: return write_samples<Sample, Sample>(tile, pixels, thread);
  }
}

// Writes the share of one thread of kThreads.
template <typename Sample>
L3_DEVICE void write_part(const TilePart &tile, const FastTile &fast, const Sample *planes, uint32_t thread) {
  const uint32_t channels = tile.image.channels;
  if (tile.image.profile == L3_PROFILE_RAW)
    write_pixels<Sample>(
        tile, StoredPixels<Sample>{reinterpret_cast<const Sample *>(tile.bytes), channels, tile.shape.width}, thread);
  else
    write_pixels<Sample>(tile, PlanePixels<Sample>{planes, channels, fast.transform}, thread);
}

}  // namespace l3::general
