// Which arguments give a region, which exclude each other, and what axes they name.
#include "roi/arguments.h"

#include <climits>
#include <iterator>
#include <set>

#include "testing.h"

using namespace dali_l3::roi;

namespace {

const char *name_of(Source source) {
  constexpr const char *names[] = {"none", "crop", "slice", "inputs", "windows"};
  return names[static_cast<int>(source)];
}

// What gives the region, or why nothing can.
std::string source(const std::set<std::string> &given, int inputs = 1) {
  std::string name;
  const std::string error = testing::error_of(
      [&] { name = name_of(source_of_region([&](const char *name) { return given.count(name) > 0; }, inputs)); });
  return error.empty() ? name : error;
}

TEST(sources) {
  CHECK_EQUAL(source({}), "none");
  CHECK_EQUAL(source({"crop"}), "crop");
  CHECK_EQUAL(source({"crop_h", "crop_w"}), "crop");
  CHECK_EQUAL(source({"crop", "crop_pos_x", "crop_pos_y", "rounding"}), "crop");
  for (const char *argument : {"start", "rel_start", "end", "rel_end", "shape", "rel_shape"})
    CHECK_EQUAL(source({argument}), "slice");
  CHECK_EQUAL(source({"rel_start", "shape", "axes"}), "slice");
  CHECK_EQUAL(source({}, 3), "inputs");
  CHECK_EQUAL(source({"axis_names", "normalized_anchor", "normalized_shape"}, 3), "inputs");
}

TEST(arguments_that_only_qualify_give_no_region) {
  CHECK_EQUAL(source({"crop_pos_x", "crop_pos_y", "rounding"}), "none");
  CHECK_EQUAL(source({"axes", "normalized_anchor", "normalized_shape"}), "none");
}

TEST(contradictions_within_a_kind) {
  CHECK_EQUAL(source({"crop_h"}), "`crop_w` and `crop_h` must be given together");
  CHECK_EQUAL(source({"crop_w"}), "`crop_w` and `crop_h` must be given together");
  CHECK_EQUAL(source({"crop", "crop_h", "crop_w"}), "`crop` cannot be combined with `crop_h` and `crop_w`");
  CHECK_EQUAL(source({"start", "rel_start"}), "`start` and `rel_start` exclude each other");
  CHECK_EQUAL(source({"axes", "axis_names"}), "`axes` and `axis_names` exclude each other");
  const char *const ends[] = {"end", "rel_end", "shape", "rel_shape"};
  for (const char *const &a : ends) {
    for (const char *const *b = &a + 1; b != std::end(ends); b++)
      CHECK_EQUAL(source({a, *b}), "`end`, `rel_end`, `shape` and `rel_shape` exclude each other");
  }
}

TEST(inputs_come_in_pairs_and_alone) {
  CHECK_EQUAL(source({}, 2), "A slice by inputs takes both, anchor and shape");
  for (const char *argument : {"start", "rel_start", "end", "rel_end", "shape", "rel_shape"}) {
    CHECK_EQUAL(source({argument}, 3),
                "The inputs anchor and shape cannot be combined with `start`, `end`, `shape` or their `rel_` forms");
  }
}

TEST(windows_exclude_all_others) {
  CHECK_EQUAL(source({"windows"}), "windows");
  CHECK_EQUAL(source({"windows", "crop"}), "`windows` cannot be combined with `crop`");
  CHECK_EQUAL(source({"windows", "rounding"}), "`windows` cannot be combined with `rounding`");
  CHECK_EQUAL(source({"windows", "axes"}), "`windows` cannot be combined with `axes`");
  CHECK_EQUAL(source({"windows"}, 3), "`windows` cannot be combined with the input `anchor`");
}

TEST(crops_and_slices_exclude_each_other) {
  const std::set<std::string> crops[] = {{"crop"},       {"crop_h", "crop_w"}, {"crop_d"},  {"crop_pos_x"},
                                         {"crop_pos_y"}, {"crop_pos_z"},       {"rounding"}};
  const auto message = [](const std::string &crop, const std::string &slice) {
    return "A region is given either by crop arguments or by slice arguments, not by both: `" + crop +
           "` is one of the former, " + slice + " of the latter";
  };
  for (const std::set<std::string> &crop : crops) {
    for (const std::string slice : {"start", "end", "shape", "rel_start", "rel_end", "rel_shape", "axes", "axis_names",
                                    "normalized_anchor", "normalized_shape"}) {
      std::set<std::string> both = crop;
      both.insert(slice);
      CHECK_EQUAL(source(both), message(*crop.begin(), std::string("`") + slice + "`"));
    }
    CHECK_EQUAL(source(crop, 3), message(*crop.begin(), "the input `anchor`"));
  }
}

TEST(roundings) {
  CHECK(parse_rounding("round") == Rounding::round);
  CHECK(parse_rounding("truncate") == Rounding::truncate);
  for (const char *name : {"", "Round", "round ", "up"}) {
    CHECK_EQUAL(testing::error_of([&] { parse_rounding(name); }),
                std::string("`rounding` must be \"round\" or \"truncate\", not \"") + name + "\"");
  }
}

TEST(axes_in_the_order_of_their_values) {
  using Axes = std::vector<int>;
  CHECK(parse_axis_names("HW") == (Axes{0, 1}) && parse_axis_names("WH") == (Axes{1, 0}));
  CHECK(parse_axis_names("H") == Axes{0} && parse_axis_names("W") == Axes{1});
  for (const Axes &axes : {Axes{0, 1}, Axes{-2, -1}, Axes{0, -1}, Axes{-2, 1}}) CHECK(parse_axes(axes) == (Axes{0, 1}));
  for (const Axes &axes : {Axes{1, 0}, Axes{-1, -2}}) CHECK(parse_axes(axes) == (Axes{1, 0}));
  for (const Axes &axes : {Axes{1}, Axes{-1}}) CHECK(parse_axes(axes) == Axes{1});
}

TEST(axes_that_no_image_has) {
  const auto error = [](const std::vector<int> &axes) { return testing::error_of([&] { parse_axes(axes); }); };
  for (const int axis : {2, -3, INT_MAX, INT_MIN})
    CHECK_EQUAL(error({axis}), "The axis " + std::to_string(axis) + " does not exist: an image has axes 0 and 1");
  CHECK_EQUAL(error({}), "`axes` must name one or two axes");
  CHECK_EQUAL(error({0, 1, 0}), "`axes` must name one or two axes");
  for (const std::vector<int> &twice : {std::vector{0, 0}, {1, -1}, {-2, 0}})
    CHECK_EQUAL(error(twice), "`axes` must not name an axis twice");

  const auto names_error = [](const char *names) { return testing::error_of([&] { parse_axis_names(names); }); };
  CHECK_EQUAL(names_error(""), "`axis_names` must not be empty");
  CHECK_EQUAL(names_error("HC"), "`axis_names` may name H and W, not \"HC\"");
  CHECK_EQUAL(names_error("w"), "`axis_names` may name H and W, not \"w\"");
  CHECK_EQUAL(names_error("HH"), "`axes` must not name an axis twice");
  CHECK_EQUAL(names_error("HWH"), "`axes` must name one or two axes");
}

}  // namespace
