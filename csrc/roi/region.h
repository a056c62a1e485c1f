// The region of an image that crops and slices stand for, by the rules of DALI's documentation.
//
// Axis 0 is the height, axis 1 the width. Values that are no numbers, or beyond any image, are refused.
#pragma once

#include <cstdint>
#include <span>

#include "l3/l3.h"

namespace dali_l3::roi {

/** A window along one axis: the pixels start … end - 1. It need not lie inside the image. */
struct Interval {
  int64_t start, end;

  bool operator==(const Interval &) const = default;
};

/** A region in pixels, as a user gives it: of any numbers. */
struct Window {
  int64_t top, left, height, width;

  Interval y() const { return {top, top + height}; }
  Interval x() const { return {left, left + width}; }
};

/** @throws std::invalid_argument unless the windows are of one size, and their numbers of the kind that images have */
void require_one_size(std::span<const Window> windows);

/** How the first pixel of a crop is found from its exact position. */
enum class Rounding { round, truncate };

/**
 * A crop's window along one axis of `extent` pixels.
 *
 * @param size pixels, of which the fraction is cut off; the whole axis if that leaves none
 * @param position of the crop among all places that it may have, from 0, at the start, to 1, at the end
 * @throws std::invalid_argument where the size is no image's or the position is not within 0 and 1
 */
Interval crop_window(int axis, float size, float position, Rounding rounding, int64_t extent);

/** A place or a length along one axis. */
struct Coordinate {
  double value;
  bool is_relative;  ///< to the image's extent; otherwise pixels
};

/** A slice along one axis; by default the whole of it. */
struct Slice {
  Coordinate start = {0, false};
  Coordinate end = {1, true};
  bool end_is_length = false;  ///< `end` counts from the start
};

/**
 * A slice's window along one axis of `extent` pixels: from the pixel nearest to its start to the one nearest to its
 * end, which is left out; halves are rounded away from 0.
 *
 * @throws std::invalid_argument where either is no number or too large for one
 */
Interval slice_window(const Slice &slice, int64_t extent);

/** @throws std::invalid_argument where the region is empty or does not lie inside the image */
l3_rect region_inside(const Interval &y, const Interval &x, uint32_t height, uint32_t width);

/**
 * A region of the size of the windows, and of at least one pixel, for where there is no image.
 *
 * @throws std::invalid_argument where no image can be so large
 */
l3_rect region_without_image(const Interval &y, const Interval &x);

}  // namespace dali_l3::roi
