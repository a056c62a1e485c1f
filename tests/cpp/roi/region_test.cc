// Windows and regions: exact values, rounding, limits.
#include "roi/region.h"

#include <climits>
#include <cmath>
#include <limits>
#include <ostream>

#include "testing.h"

namespace dali_l3::roi {

static std::ostream &operator<<(std::ostream &out, const Interval &window) {
  return out << window.start << ".." << window.end;
}

}  // namespace dali_l3::roi

using namespace dali_l3::roi;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLimit = int64_t{1} << 53;

Interval crop(float size, float position, int64_t extent, Rounding rounding = Rounding::round) {
  return crop_window(0, size, position, rounding, extent);
}

std::string crop_error(float size, float position, int axis = 0) {
  return testing::error_of([&] { crop_window(axis, size, position, Rounding::round, 100); });
}

Interval pixels(double start, double end) { return slice_window({.start = {start, false}, .end = {end, false}}, 100); }

std::string slice_error(const Slice &slice, int64_t extent = 100) {
  return testing::error_of([&] { slice_window(slice, extent); });
}

// ---- Crops ----------------------------------------------------------------------------------------------------------

TEST(crops_lie_at_their_position_rounded_or_truncated) {
  // Positions are eighths, so that whole numbers tell where a crop begins.
  for (int64_t extent = 1; extent <= 20; extent++) {
    for (int64_t size = 1; size <= 24; size++) {
      for (int64_t eighths = 0; eighths <= 8; eighths++) {
        const testing::Context context("%d of %d pixels at %d/8", static_cast<int>(size), static_cast<int>(extent),
                                       static_cast<int>(eighths));
        const int64_t numerator = eighths * (extent - size), half = numerator < 0 ? -4 : 4;
        const auto position = static_cast<float>(eighths) / 8;
        const int64_t rounded = (numerator + half) / 8, truncated = numerator / 8;  // towards 0
        CHECK_EQUAL(crop(float(size), position, extent), (Interval{rounded, rounded + size}));
        CHECK_EQUAL(crop(float(size), position, extent, Rounding::truncate), (Interval{truncated, truncated + size}));
      }
    }
  }
}

TEST(the_fraction_of_a_crops_size_is_cut_off) {
  CHECK_EQUAL(crop(10.999f, 0, 100), (Interval{0, 10}));
  CHECK_EQUAL(crop(1, 1, 100), (Interval{99, 100}));
}

TEST(an_axis_is_not_cropped_where_no_pixel_is_asked_for) {
  for (const float size : {0.0f, -0.0f, 0.999f, -0.5f, -1.0f, -1048576.0f, 1e-45f}) {
    CHECK_EQUAL(crop(size, 0.5f, 100), (Interval{0, 100}));
    CHECK_EQUAL(crop(size, NAN, 100), (Interval{0, 100}));  // nor does it matter where
  }
}

TEST(crops_up_to_the_largest_image) {
  CHECK_EQUAL(crop(L3_MAX_DIMENSION, 1, L3_MAX_DIMENSION), (Interval{0, L3_MAX_DIMENSION}));
  CHECK_EQUAL(crop(1, 1, L3_MAX_DIMENSION), (Interval{L3_MAX_DIMENSION - 1, L3_MAX_DIMENSION}));
  CHECK_EQUAL(crop(L3_MAX_DIMENSION, 1, 1), (Interval{1 - L3_MAX_DIMENSION, 1}));
}

TEST(crops_of_no_size_or_position_are_refused) {
  CHECK_EQUAL(crop_error(NAN, 0.5f), "A crop of nan pixels is out of range");
  CHECK_EQUAL(crop_error(INFINITY, 0.5f), "A crop of inf pixels is out of range");
  CHECK_EQUAL(crop_error(-INFINITY, 0.5f), "A crop of -inf pixels is out of range");
  CHECK_EQUAL(crop_error(1e30f, 0.5f), "A crop of 1e+30 pixels is out of range");
  for (const float size :
       {std::nextafter(float{L3_MAX_DIMENSION}, 1e9f), -std::nextafter(float{L3_MAX_DIMENSION}, 1e9f)})
    CHECK(crop_error(size, 0.5f).ends_with("pixels is out of range"));
  CHECK_EQUAL(crop_error(10, 1.5f), "`crop_pos_y` must be within 0 and 1, not 1.5");
  CHECK_EQUAL(crop_error(10, -0.25f, 1), "`crop_pos_x` must be within 0 and 1, not -0.25");
  CHECK_EQUAL(crop_error(10, NAN), "`crop_pos_y` must be within 0 and 1, not nan");
  for (const float position : {std::nextafter(1.0f, 2.0f), -1e-45f, INFINITY})
    CHECK(crop_error(10, position).starts_with("`crop_pos_y` must be within 0 and 1"));
}

// ---- Slices ---------------------------------------------------------------------------------------------------------

TEST(a_slice_is_the_whole_axis_unless_it_says_otherwise) {
  for (const int64_t extent : {1, 7, int{L3_MAX_DIMENSION}})
    CHECK_EQUAL(slice_window({}, extent), (Interval{0, extent}));
  CHECK_EQUAL(slice_window({.start = {10, false}}, 100), (Interval{10, 100}));
  CHECK_EQUAL(slice_window({.end = {10, false}}, 100), (Interval{0, 10}));
}

TEST(slices_in_pixels_and_relative_ones) {
  CHECK_EQUAL(slice_window({.start = {10, false}, .end = {64, false}}, 100), (Interval{10, 64}));
  CHECK_EQUAL(slice_window({.start = {10, false}, .end = {64, false}, .end_is_length = true}, 100), (Interval{10, 74}));
  CHECK_EQUAL(slice_window({.start = {0.25, true}, .end = {0.75, true}}, 100), (Interval{25, 75}));
  CHECK_EQUAL(slice_window({.start = {0.25, true}, .end = {0.5, true}, .end_is_length = true}, 100),
              (Interval{25, 75}));
  CHECK_EQUAL(slice_window({.start = {0.25, true}, .end = {7, false}, .end_is_length = true}, 100), (Interval{25, 32}));
  CHECK_EQUAL(slice_window({.start = {7, false}, .end = {0.25, true}, .end_is_length = true}, 100), (Interval{7, 32}));
}

TEST(ends_of_slices_are_the_nearest_pixels_and_halves_are_rounded_away_from_zero) {
  CHECK_EQUAL(pixels(0.49, 0.5), (Interval{0, 1}));
  CHECK_EQUAL(pixels(-0.49, 1.5), (Interval{0, 2}));
  CHECK_EQUAL(pixels(-0.5, 2.5), (Interval{-1, 3}));
  CHECK_EQUAL(pixels(-2.5, -1.5), (Interval{-3, -2}));
  // The end is rounded itself, not the length: 0.4 + 0.4 is nearer to 1 than to 0.
  CHECK_EQUAL(slice_window({.start = {0.4, false}, .end = {0.4, false}, .end_is_length = true}, 100), (Interval{0, 1}));
  CHECK_EQUAL(slice_window({.start = {0.125, true}, .end = {0.875, true}}, 4), (Interval{1, 4}));  // 0.5 and 3.5
}

TEST(windows_may_be_empty_turned_round_or_outside) {
  CHECK_EQUAL(pixels(9, 9), (Interval{9, 9}));
  CHECK_EQUAL(pixels(9, 3), (Interval{9, 3}));
  CHECK_EQUAL(pixels(-50, 1e6), (Interval{-50, 1000000}));
  CHECK_EQUAL(slice_window({.start = {9, false}, .end = {-4, false}, .end_is_length = true}, 100), (Interval{9, 5}));
}

TEST(coordinates_are_whole_numbers_up_to_their_limit) {
  CHECK_EQUAL(pixels(static_cast<double>(1 - kLimit), static_cast<double>(kLimit - 1)),
              (Interval{1 - kLimit, kLimit - 1}));
  CHECK_EQUAL(slice_error({.end = {static_cast<double>(kLimit), false}}), "The coordinate 9.0072e+15 is out of range");
  CHECK_EQUAL(slice_error({.start = {-static_cast<double>(kLimit), false}}),
              "The coordinate -9.0072e+15 is out of range");
  for (const auto value : {static_cast<double>(INT64_MAX), static_cast<double>(INT64_MIN), 1e300}) {
    CHECK(slice_error({.start = {value, false}}).ends_with("is out of range"));
    CHECK(slice_error({.end = {value, false}}).ends_with("is out of range"));
  }
  CHECK_EQUAL(slice_error({.start = {1e30, true}}, 200), "The coordinate 2e+32 is out of range");
}

TEST(coordinates_that_are_no_numbers_are_refused) {
  for (const bool is_relative : {false, true}) {
    CHECK_EQUAL(slice_error({.start = {kNan, is_relative}}), "The coordinate nan is out of range");
    CHECK_EQUAL(slice_error({.end = {kNan, is_relative}}), "The coordinate nan is out of range");
    CHECK_EQUAL(slice_error({.start = {kInfinity, is_relative}}), "The coordinate inf is out of range");
    CHECK_EQUAL(slice_error({.end = {-kInfinity, is_relative}}), "The coordinate -inf is out of range");
  }
  const double largest = std::numeric_limits<double>::max();
  CHECK_EQUAL(slice_error({.start = {largest, true}}), "The coordinate inf is out of range");
  CHECK(slice_error({.start = {largest, false}, .end = {largest, false}, .end_is_length = true}) != "");
}

// ---- Regions --------------------------------------------------------------------------------------------------------

std::string inside_error(const Interval &y, const Interval &x) {
  return testing::error_of([&] { region_inside(y, x, 10, 20); });
}

TEST(regions_inside_an_image) {
  const l3_rect part = region_inside({2, 5}, {3, 20}, 10, 20), whole = region_inside({0, 10}, {0, 20}, 10, 20);
  CHECK(part.y == 2 && part.height == 3 && part.x == 3 && part.width == 17);
  CHECK(whole.y == 0 && whole.height == 10 && whole.x == 0 && whole.width == 20);
}

TEST(regions_that_are_empty_or_not_inside_are_refused) {
  CHECK_EQUAL(inside_error({-1, 5}, {3, 21}),
              "the region of rows -1..5 and columns 3..21 is empty or not inside the image, whose height is 10 and "
              "width 20");
  const Interval good = {2, 10};
  CHECK_EQUAL(inside_error(good, good), "");
  constexpr int64_t wrapped = int64_t{1} << 32;  // becomes 0 in 32 bits
  for (const Interval &bad : {Interval{-1, 10},
                              {-1, 0},
                              {5, 5},
                              {5, 4},
                              {9, 21},
                              {20, 21},
                              {wrapped, wrapped + 5},
                              {2, wrapped + 5},
                              {-wrapped, 5},
                              {-kLimit, kLimit}}) {
    CHECK(inside_error(bad, good) != "");
    CHECK(inside_error(good, bad) != "");
  }
  CHECK(inside_error({9, 11}, good) != "" && inside_error(good, {9, 11}).empty());
}

TEST(regions_without_an_image_have_the_size_of_their_windows) {
  const l3_rect rect = region_without_image({-3, 4}, {100, 111});
  CHECK(rect.y == 0 && rect.x == 0 && rect.height == 7 && rect.width == 11);
  for (const Interval &none : {Interval{0, 0}, {5, 5}, {5, -5}, {kLimit, -kLimit}}) {
    const l3_rect pixel = region_without_image(none, none);
    CHECK(pixel.height == 1 && pixel.width == 1);
  }
}

TEST(regions_without_an_image_are_no_larger_than_any_image) {
  const int64_t side = L3_MAX_DIMENSION, other = static_cast<int64_t>(L3_MAX_RAW_SIZE) / side;
  const l3_rect largest = region_without_image({0, side}, {0, other});
  CHECK(largest.height == side && largest.width == other);
  const auto error = [](int64_t height, int64_t width) {
    return testing::error_of([&] { region_without_image({0, height}, {0, width}); });
  };
  CHECK_EQUAL(error(side, side), "a region of height 1048576 and width 1048576 is larger than any image can be");
  CHECK(error(side + 1, 1) != "" && error(1, side + 1) != "" && error(side, other + 1) != "");
  CHECK(error(kLimit, kLimit) != "");  // whose product overflows
  CHECK(testing::error_of([&] { region_without_image({-kLimit, kLimit}, {-kLimit, kLimit}); }) != "");
}

}  // namespace
