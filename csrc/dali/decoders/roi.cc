// Reading of crop and slice arguments.

#include "roi.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "dali/core/format.h"
#include "dali/pipeline/data/views.h"

namespace dali_l3 {
namespace {

using dali::make_string;

constexpr int kImageDims = 2;

void Require(bool condition, const std::string &message) {
  if (!condition) throw std::invalid_argument(message);
}

// Nearest pixel of a coordinate, which may be any number.
int64_t ToPixel(double value) {
  constexpr double limit = int64_t{1} << 53;
  Require(std::abs(value) < limit, make_string("The coordinate ", value, " is out of range"));
  return std::llround(value);
}

// All arguments of either kind, whether or not they name a region by themselves.
constexpr const char *kCropArguments[] = {"crop",       "crop_h",     "crop_w",     "crop_d",
                                          "crop_pos_x", "crop_pos_y", "crop_pos_z", "rounding"};
constexpr const char *kSliceArguments[] = {"start",     "end",  "shape",      "rel_start",         "rel_end",
                                           "rel_shape", "axes", "axis_names", "normalized_anchor", "normalized_shape"};

// The first of some arguments that the user has set, or an empty string.
template <size_t count>
std::string FirstGiven(const dali::OpSpec &spec, const char *const (&arguments)[count]) {
  const auto given =
      std::find_if(arguments, arguments + count, [&](const char *name) { return spec.ArgumentDefined(name); });
  return given == arguments + count ? "" : make_string("`", *given, "`");
}

}  // namespace

// ---- Crop -----------------------------------------------------------------------------------------------------------

CropArguments::CropArguments(const dali::OpSpec &spec)
    : crop_("crop", spec),
      height_("crop_h", spec),
      width_("crop_w", spec),
      position_y_("crop_pos_y", spec),
      position_x_("crop_pos_x", spec) {
  Require(height_.HasExplicitValue() == width_.HasExplicitValue(), "`crop_w` and `crop_h` must be given together");
  Require(!crop_.HasExplicitValue() || !height_.HasExplicitValue(),
          "`crop` cannot be combined with `crop_h` and `crop_w`");
  const auto rounding = spec.GetArgument<std::string>("rounding");
  Require(rounding == "round" || rounding == "truncate",
          make_string("`rounding` must be \"round\" or \"truncate\", not \"", rounding, "\""));
  truncate_ = rounding == "truncate";
}

void CropArguments::Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size) {
  if (crop_.HasExplicitValue()) {
    crop_.Acquire(spec, ws, batch_size);
    for (int i = 0; i < batch_size; i++) {
      Require(crop_[i].num_elements() == 2, "`crop` must have two elements, the height and the width");
    }
  } else {
    height_.Acquire(spec, ws, batch_size);
    width_.Acquire(spec, ws, batch_size);
  }
  position_y_.Acquire(spec, ws, batch_size);
  position_x_.Acquire(spec, ws, batch_size);
}

Interval CropArguments::Window(int sample, int axis, int64_t extent) const {
  const float requested =
      crop_.HasExplicitValue() ? crop_[sample].data[axis] : *(axis == 0 ? height_ : width_)[sample].data;
  const float position = *(axis == 0 ? position_y_ : position_x_)[sample].data;
  Require(std::abs(requested) <= float{L3_MAX_DIMENSION},
          make_string("A crop of ", requested, " pixels is out of range"));
  const auto size = static_cast<int64_t>(requested);
  if (size <= 0) return {0, extent};  // DALI's meaning: this axis is not cropped
  Require(position >= 0 && position <= 1,
          make_string("`crop_pos_", axis == 0 ? 'y' : 'x', "` must be within 0 and 1, not ", position));
  const double offset = static_cast<double>(position) * static_cast<double>(extent - size);
  const int64_t start = truncate_ ? static_cast<int64_t>(offset) : std::llround(offset);
  return {start, start + size};
}

// ---- Slice ----------------------------------------------------------------------------------------------------------

SliceArguments::SliceArguments(const dali::OpSpec &spec)
    : start_("start", spec),
      end_("end", spec),
      shape_("shape", spec),
      axes_("axes", spec),
      rel_start_("rel_start", spec),
      rel_end_("rel_end", spec),
      rel_shape_("rel_shape", spec),
      positional_(spec.NumRegularInput() > 1),
      normalized_anchor_(spec.GetArgument<bool>("normalized_anchor")),
      normalized_shape_(spec.GetArgument<bool>("normalized_shape")) {
  const int starts = start_.HasExplicitValue() + rel_start_.HasExplicitValue();
  const int ends =
      end_.HasExplicitValue() + rel_end_.HasExplicitValue() + shape_.HasExplicitValue() + rel_shape_.HasExplicitValue();
  Require(starts <= 1, "`start` and `rel_start` exclude each other");
  Require(ends <= 1, "`end`, `rel_end`, `shape` and `rel_shape` exclude each other");
  named_ = starts + ends > 0;
  Require(!positional_ || spec.NumRegularInput() == 3, "A slice by inputs takes both, anchor and shape");
  Require(!named_ || !positional_,
          "The inputs anchor and shape cannot be combined with `start`, `end`, `shape` or their `rel_` forms");

  const bool axes_given = axes_.HasExplicitValue();
  Require(!axes_given || !spec.HasArgument("axis_names"), "`axes` and `axis_names` exclude each other");
  if (!axes_given) {
    const auto names = spec.GetArgument<dali::TensorLayout>("axis_names");
    for (char name : names) {
      Require(name == 'H' || name == 'W', make_string("`axis_names` may name H and W, not \"", names, "\""));
      axis_names_.push_back(name == 'H' ? 0 : 1);
    }
    Require(!axis_names_.empty(), "`axis_names` must not be empty");
  }
}

void SliceArguments::Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size) {
  AcquireAxes(spec, ws, batch_size);
  if (positional_) return AcquireInputs(ws, batch_size);

  dali::TensorListShape<1> expected(batch_size);
  for (int i = 0; i < batch_size; i++) expected.set_tensor_shape(i, dali::TensorShape<1>(sample_axes_[i].size()));
  const auto acquire = [&](auto &argument) {
    if (argument.HasExplicitValue()) argument.Acquire(spec, ws, batch_size, expected);
  };
  acquire(start_);
  acquire(end_);
  acquire(shape_);
  acquire(rel_start_);
  acquire(rel_end_);
  acquire(rel_shape_);
}

void SliceArguments::AcquireAxes(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size) {
  sample_axes_.resize(batch_size);
  if (!axis_names_.empty()) {
    std::fill(sample_axes_.begin(), sample_axes_.end(), axis_names_);
  } else {
    axes_.Acquire(spec, ws, batch_size);
    for (int i = 0; i < batch_size; i++) {
      sample_axes_[i].assign(axes_[i].data, axes_[i].data + axes_[i].num_elements());
    }
  }
  for (auto &axes : sample_axes_) {
    Require(axes.size() == 1 || axes.size() == kImageDims, "`axes` must name one or two axes");
    for (int &axis : axes) {
      Require(axis >= -kImageDims && axis < kImageDims,
              make_string("The axis ", axis, " does not exist: an image has axes 0 and 1"));
      if (axis < 0) axis += kImageDims;
    }
    Require(axes.size() == 1 || axes[0] != axes[1], "`axes` must not name an axis twice");
  }
}

void SliceArguments::AcquireInputs(const dali::Workspace &ws, int batch_size) {
  const auto type = ws.GetInputDataType(1);
  Require(type == ws.GetInputDataType(2), "The inputs anchor and shape must have the same type");
  integer_inputs_ = type != DALI_FLOAT;
  anchors_.resize(batch_size);
  shapes_.resize(batch_size);
  const auto read = [&](auto element, int input, std::vector<std::vector<double>> &values) {
    using T = decltype(element);
    const auto &list = ws.Input<dali::CPUBackend>(input);
    for (int i = 0; i < batch_size; i++) {
      const int64_t count = dali::volume(list.tensor_shape_span(i));
      Require(count == static_cast<int64_t>(sample_axes_[i].size()),
              make_string("The inputs anchor and shape must have one value for each axis, ", sample_axes_[i].size(),
                          " in all, not ", count));
      const T *data = list.tensor<T>(i);
      values[i].assign(data, data + count);
    }
  };
  const auto read_both = [&](auto element) {
    read(element, 1, anchors_);
    read(element, 2, shapes_);
  };
  switch (type) {
    case DALI_FLOAT: return read_both(float{});
    case DALI_INT32: return read_both(int32_t{});
    case DALI_INT64: return read_both(int64_t{});
    default:
      throw std::invalid_argument(make_string("The inputs anchor and shape must be int32, int64 or float, not ", type));
  }
}

Interval SliceArguments::Window(int sample, int axis, int64_t extent) const {
  const auto &axes = sample_axes_[sample];
  const auto found = std::find(axes.begin(), axes.end(), axis);
  if (found == axes.end()) return {0, extent};
  const auto index = static_cast<int>(found - axes.begin());
  return positional_ ? InputWindow(sample, index, extent) : NamedWindow(sample, index, extent);
}

Interval SliceArguments::NamedWindow(int sample, int index, int64_t extent) const {
  const auto size = static_cast<double>(extent);
  const auto value = [&](const auto &argument) { return static_cast<double>(argument[sample].data[index]); };
  double start = 0;
  if (start_.HasExplicitValue()) start = value(start_);
  if (rel_start_.HasExplicitValue()) start = value(rel_start_) * size;

  double end = size;
  if (end_.HasExplicitValue()) end = value(end_);
  if (rel_end_.HasExplicitValue()) end = value(rel_end_) * size;
  if (shape_.HasExplicitValue()) end = start + value(shape_);
  if (rel_shape_.HasExplicitValue()) end = start + value(rel_shape_) * size;
  return {ToPixel(start), ToPixel(end)};
}

Interval SliceArguments::InputWindow(int sample, int index, int64_t extent) const {
  const auto size = static_cast<double>(extent);
  const double start = anchors_[sample][index] * (normalized_anchor_ && !integer_inputs_ ? size : 1);
  const double end = start + shapes_[sample][index] * (normalized_shape_ && !integer_inputs_ ? size : 1);
  return {ToPixel(start), ToPixel(end)};
}

// ---- Either ---------------------------------------------------------------------------------------------------------

RoiArguments::RoiArguments(const dali::OpSpec &spec) : crop_(spec), slice_(spec) {
  const std::string crop = FirstGiven(spec, kCropArguments);
  const std::string slice = spec.NumRegularInput() > 1 ? "the input `anchor`" : FirstGiven(spec, kSliceArguments);
  Require(crop.empty() || slice.empty(),
          make_string("A region is given either by crop arguments or by slice arguments, not by both: ", crop,
                      " is one of the former, ", slice, " of the latter"));
}

void RoiArguments::Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size) {
  if (crop_.NamesRegion()) crop_.Acquire(spec, ws, batch_size);
  if (slice_.NamesRegion()) slice_.Acquire(spec, ws, batch_size);
}

Interval RoiArguments::Window(int sample, int axis, int64_t extent) const {
  if (crop_.NamesRegion()) return crop_.Window(sample, axis, extent);
  if (slice_.NamesRegion()) return slice_.Window(sample, axis, extent);
  return {0, extent};
}

l3_rect RoiArguments::Region(int sample, uint32_t height, uint32_t width) const {
  const Interval y = Window(sample, 0, height), x = Window(sample, 1, width);
  Require(y.start >= 0 && y.start < y.end && y.end <= height && x.start >= 0 && x.start < x.end && x.end <= width,
          make_string("the region of rows ", y.start, "..", y.end, " and columns ", x.start, "..", x.end,
                      " is empty or not inside the image, whose height is ", height, " and width ", width));
  return {static_cast<uint32_t>(x.start), static_cast<uint32_t>(y.start), static_cast<uint32_t>(x.end - x.start),
          static_cast<uint32_t>(y.end - y.start)};
}

l3_rect RoiArguments::RegionOfNoImage(int sample) const {
  const Interval y = Window(sample, 0, 1), x = Window(sample, 1, 1);
  const int64_t height = std::max<int64_t>(1, y.end - y.start), width = std::max<int64_t>(1, x.end - x.start);
  Require(height <= L3_MAX_DIMENSION && width <= L3_MAX_DIMENSION &&
              static_cast<uint64_t>(height * width) <= L3_MAX_RAW_SIZE,
          make_string("a region of height ", height, " and width ", width, " is larger than any image can be"));
  return {0, 0, static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
}

}  // namespace dali_l3
