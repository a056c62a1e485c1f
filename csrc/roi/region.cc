// Windows along the axes of an image.

#include "roi/region.h"

#include <algorithm>
#include <cmath>

#include "roi/require.h"

namespace dali_l3::roi {
namespace {

double pixels(const Coordinate &coordinate, int64_t extent) {
  return coordinate.value * (coordinate.is_relative ? static_cast<double>(extent) : 1);
}

int64_t nearest_pixel(double coordinate) {
  constexpr double limit = int64_t{1} << 53;  // up to it doubles tell whole numbers apart
  require(std::abs(coordinate) < limit, "The coordinate ", coordinate, " is out of range");
  return std::llround(coordinate);
}

}  // namespace

void require_one_size(std::span<const Window> windows) {
  for (const auto &[top, left, height, width] : windows) {
    for (const int64_t number : {top, left, height, width})
      require(std::clamp<int64_t>(number, -L3_MAX_DIMENSION, L3_MAX_DIMENSION) == number, "the number ", number,
              " in a window is out of range");
    require(height == windows[0].height && width == windows[0].width,
            "the windows of a sample must be of one size: one has height ", windows[0].height, " and width ",
            windows[0].width, ", another has height ", height, " and width ", width);
  }
}

Interval crop_window(int axis, float size, float position, Rounding rounding, int64_t extent) {
  require(std::abs(size) <= float{L3_MAX_DIMENSION}, "A crop of ", size, " pixels is out of range");
  const auto whole = static_cast<int64_t>(size);
  if (whole <= 0) return {0, extent};
  require(position >= 0 && position <= 1, "`crop_pos_", axis == 0 ? 'y' : 'x', "` must be within 0 and 1, not ",
          position);
  const double offset = static_cast<double>(position) * static_cast<double>(extent - whole);
  const int64_t start = rounding == Rounding::truncate ? static_cast<int64_t>(offset) : std::llround(offset);
  return {start, start + whole};
}

Interval slice_window(const Slice &slice, int64_t extent) {
  const double start = pixels(slice.start, extent);
  const double end = pixels(slice.end, extent) + (slice.end_is_length ? start : 0);
  return {nearest_pixel(start), nearest_pixel(end)};
}

l3_rect region_inside(const Interval &y, const Interval &x, uint32_t height, uint32_t width) {
  require(y.start >= 0 && y.start < y.end && y.end <= height && x.start >= 0 && x.start < x.end && x.end <= width,
          "the region of rows ", y.start, "..", y.end, " and columns ", x.start, "..", x.end,
          " is empty or not inside the image, whose height is ", height, " and width ", width);
  return {static_cast<uint32_t>(x.start), static_cast<uint32_t>(y.start), static_cast<uint32_t>(x.end - x.start),
          static_cast<uint32_t>(y.end - y.start)};
}

l3_rect region_without_image(const Interval &y, const Interval &x) {
  const int64_t height = std::max<int64_t>(1, y.end - y.start), width = std::max<int64_t>(1, x.end - x.start);
  require(height <= L3_MAX_DIMENSION && width <= L3_MAX_DIMENSION &&
              static_cast<uint64_t>(height * width) <= L3_MAX_RAW_SIZE,
          "a region of height ", height, " and width ", width, " is larger than any image can be");
  return {0, 0, static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
}

}  // namespace dali_l3::roi
