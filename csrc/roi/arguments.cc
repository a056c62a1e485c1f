// Checks of crop and slice arguments.

#include "roi/arguments.h"

#include <algorithm>

#include "roi/require.h"

namespace dali_l3::roi {
namespace {

using Given = std::function<bool(const char *name)>;

constexpr int kImageDims = 2;

// All arguments of either kind, whether or not they give a region by themselves.
constexpr const char *kCropArguments[] = {"crop",       "crop_h",     "crop_w",     "crop_d",
                                          "crop_pos_x", "crop_pos_y", "crop_pos_z", "rounding"};
constexpr const char *kSliceArguments[] = {"start",     "end",  "shape",      "rel_start",         "rel_end",
                                           "rel_shape", "axes", "axis_names", "normalized_anchor", "normalized_shape"};

// The first of some arguments that is given, or an empty string.
std::string first_given(const Given &is_given, std::span<const char *const> arguments) {
  const auto given = std::find_if(arguments.begin(), arguments.end(), is_given);
  return given == arguments.end() ? "" : std::string("`") + *given + "`";
}

bool gives_crop(const Given &is_given) {
  require(is_given("crop_h") == is_given("crop_w"), "`crop_w` and `crop_h` must be given together");
  require(!is_given("crop") || !is_given("crop_h"), "`crop` cannot be combined with `crop_h` and `crop_w`");
  return is_given("crop") || is_given("crop_h");
}

bool gives_slice(const Given &is_given) {
  const int starts = is_given("start") + is_given("rel_start");
  const int ends = is_given("end") + is_given("rel_end") + is_given("shape") + is_given("rel_shape");
  require(starts <= 1, "`start` and `rel_start` exclude each other");
  require(ends <= 1, "`end`, `rel_end`, `shape` and `rel_shape` exclude each other");
  require(!is_given("axes") || !is_given("axis_names"), "`axes` and `axis_names` exclude each other");
  return starts + ends > 0;
}

}  // namespace

Source source_of_region(const Given &is_given, int inputs) {
  const bool by_inputs = inputs > 1, crop = gives_crop(is_given), slice = gives_slice(is_given);
  require(!by_inputs || inputs == 3, "A slice by inputs takes both, anchor and shape");
  require(!slice || !by_inputs,
          "The inputs anchor and shape cannot be combined with `start`, `end`, `shape` or their `rel_` forms");

  const std::string of_crop = first_given(is_given, kCropArguments);
  const std::string of_slice = by_inputs ? "the input `anchor`" : first_given(is_given, kSliceArguments);
  require(of_crop.empty() || of_slice.empty(),
          "A region is given either by crop arguments or by slice arguments, not by both: ", of_crop,
          " is one of the former, ", of_slice, " of the latter");
  const bool windows = is_given("windows");
  require(!windows || (of_crop.empty() && of_slice.empty()), "`windows` cannot be combined with ", of_crop, of_slice);
  if (windows) return Source::windows;
  return by_inputs ? Source::inputs : crop ? Source::crop : slice ? Source::slice : Source::none;
}

Rounding parse_rounding(std::string_view name) {
  require(name == "round" || name == "truncate", "`rounding` must be \"round\" or \"truncate\", not \"", name, "\"");
  return name == "round" ? Rounding::round : Rounding::truncate;
}

std::vector<int> parse_axis_names(std::string_view names) {
  require(!names.empty(), "`axis_names` must not be empty");
  std::vector<int> axes;
  for (const char name : names) {
    require(name == 'H' || name == 'W', "`axis_names` may name H and W, not \"", names, "\"");
    axes.push_back(name == 'H' ? 0 : 1);
  }
  return parse_axes(axes);
}

std::vector<int> parse_axes(std::span<const int> axes) {
  require(axes.size() == 1 || axes.size() == kImageDims, "`axes` must name one or two axes");
  std::vector<int> parsed;
  for (const int axis : axes) {
    require(axis >= -kImageDims && axis < kImageDims, "The axis ", axis, " does not exist: an image has axes 0 and 1");
    parsed.push_back(axis < 0 ? axis + kImageDims : axis);
  }
  require(parsed.size() == 1 || parsed[0] != parsed[1], "`axes` must not name an axis twice");
  return parsed;
}

}  // namespace dali_l3::roi
