// The kernel for the tiles that the others leave: `paper`, and stored tiles that are converted.
//
// A block decodes a tile, in phases with barriers between them: a team of 16 lanes a channel decodes planes into shared
// memory; all threads write the part of the tile that lies in the region, converted. Phases are functions of a thread's
// or a team's number, so that tests can run them on a CPU, one thread after the other.
#pragma once

#include "converted_rows.h"
#include "lockstep/lockstep_paper.h"

namespace l3::general {

constexpr uint32_t kTeams = L3_MAX_CHANNELS, kThreads = kTeams * 16, kWarp = 32;

// ---- Phase 1: planes

// Decodes channel `c`, if there is one and the tile is not stored; all lanes of a team call this together.
template <Lanes Team, typename Sample>
L3_DEVICE void decode_channel(const TilePart &tile, uint32_t c, Sample *planes) {
  const uint32_t channels = tile.image.channels;
  if (c >= channels || tile.image.profile != L3_PROFILE_PAPER) return;
  const PaperChannel channel = lockstep::locate_paper_channel<Sample>(tile.bytes, tile.size, channels, c, tile.shape);
  lockstep::decode_paper_channel<Team>(tile.bytes, channel, tile.shape, planes + c * kPlaneSize);
}

// ---- Phase 2: pixels

// Pixels from a tile's planes.
template <typename Sample>
struct PlanePixels {
  const Sample *planes;
  uint32_t channels;

  L3_DEVICE Sample operator()(uint32_t x, uint32_t y, uint32_t channel) const {
    return planes[channel * kPlaneSize + y * L3_TILE + x];
  }
};

// Writes the share of one thread of kThreads: a warp takes a row.
template <typename Sample>
L3_DEVICE void write_part(const TilePart &tile, const Sample *planes, uint32_t thread) {
  const uint32_t channels = tile.image.channels;
  const PixelRows part{tile.left, tile.top, tile.width, tile.height, tile.out};
  const RowShare share{thread / kWarp, kThreads / kWarp, thread % kWarp, kWarp};
  if (tile.image.profile == L3_PROFILE_RAW) {
    const auto *const samples = reinterpret_cast<const Sample *>(tile.bytes);
    write_pixels<Sample>(tile.image, part, InterleavedPixels<Sample>{samples, channels, tile.shape.width}, share);
  } else {
    write_pixels<Sample>(tile.image, part, PlanePixels<Sample>{planes, channels}, share);
  }
}

}  // namespace l3::general
