// Reading of crop and slice arguments.

#include "roi.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "dali/core/format.h"
#include "dali/pipeline/data/views.h"
#include "roi/require.h"

namespace dali_l3 {

using dali::make_string;
using roi::require;

// ---- Crop -----------------------------------------------------------------------------------------------------------

CropArguments::CropArguments(const dali::OpSpec &spec)
    : crop_("crop", spec),
      height_("crop_h", spec),
      width_("crop_w", spec),
      position_y_("crop_pos_y", spec),
      position_x_("crop_pos_x", spec),
      rounding_(roi::parse_rounding(spec.GetArgument<std::string>("rounding"))) {}

void CropArguments::Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size) {
  if (crop_.HasExplicitValue()) {
    crop_.Acquire(spec, ws, batch_size);
    for (int i = 0; i < batch_size; i++) {
      require(crop_[i].num_elements() == 2, "`crop` must have two elements, the height and the width");
    }
  } else {
    height_.Acquire(spec, ws, batch_size);
    width_.Acquire(spec, ws, batch_size);
  }
  position_y_.Acquire(spec, ws, batch_size);
  position_x_.Acquire(spec, ws, batch_size);
}

roi::Interval CropArguments::Window(int sample, int axis, int64_t extent) const {
  const float size = crop_.HasExplicitValue() ? crop_[sample].data[axis] : *(axis == 0 ? height_ : width_)[sample].data;
  const float position = *(axis == 0 ? position_y_ : position_x_)[sample].data;
  return roi::crop_window(axis, size, position, rounding_, extent);
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
      by_inputs_(spec.NumRegularInput() > 1),
      normalized_anchor_(spec.GetArgument<bool>("normalized_anchor")),
      normalized_shape_(spec.GetArgument<bool>("normalized_shape")) {
  if (!axes_.HasExplicitValue())
    axis_names_ = roi::parse_axis_names(spec.GetArgument<dali::TensorLayout>("axis_names").str());
}

void SliceArguments::Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size) {
  AcquireAxes(spec, ws, batch_size);
  if (by_inputs_) return AcquireInputs(ws, batch_size);

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
  sample_axes_.assign(batch_size, axis_names_);
  if (!axis_names_.empty()) return;
  axes_.Acquire(spec, ws, batch_size);
  for (int i = 0; i < batch_size; i++)
    sample_axes_[i] = roi::parse_axes({axes_[i].data, static_cast<size_t>(axes_[i].num_elements())});
}

void SliceArguments::AcquireInputs(const dali::Workspace &ws, int batch_size) {
  const auto type = ws.GetInputDataType(1);
  require(type == ws.GetInputDataType(2), "The inputs anchor and shape must have the same type");
  integer_inputs_ = type != DALI_FLOAT;
  anchors_.resize(batch_size);
  shapes_.resize(batch_size);
  const auto read = [&](auto element, int input, std::vector<std::vector<double>> &values) {
    using T = decltype(element);
    const auto &list = ws.Input<dali::CPUBackend>(input);
    for (int i = 0; i < batch_size; i++) {
      const int64_t count = dali::volume(list.tensor_shape_span(i));
      require(count == static_cast<int64_t>(sample_axes_[i].size()),
              "The inputs anchor and shape must have one value for each axis, ", sample_axes_[i].size(),
              " in all, not ", count);
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

roi::Interval SliceArguments::Window(int sample, int axis, int64_t extent) const {
  const auto &axes = sample_axes_[sample];
  const auto found = std::find(axes.begin(), axes.end(), axis);
  if (found == axes.end()) return {0, extent};
  const auto index = static_cast<int>(found - axes.begin());
  return roi::slice_window(by_inputs_ ? InputSlice(sample, index) : NamedSlice(sample, index), extent);
}

roi::Slice SliceArguments::NamedSlice(int sample, int index) const {
  roi::Slice slice;
  const auto read = [&](const auto &argument, bool is_relative, roi::Coordinate &coordinate) {
    if (argument.HasExplicitValue()) coordinate = {static_cast<double>(argument[sample].data[index]), is_relative};
  };
  read(start_, false, slice.start);
  read(rel_start_, true, slice.start);
  read(end_, false, slice.end);
  read(rel_end_, true, slice.end);
  read(shape_, false, slice.end);
  read(rel_shape_, true, slice.end);
  slice.end_is_length = shape_.HasExplicitValue() || rel_shape_.HasExplicitValue();
  return slice;
}

roi::Slice SliceArguments::InputSlice(int sample, int index) const {
  return {.start = {anchors_[sample][index], normalized_anchor_ && !integer_inputs_},
          .end = {shapes_[sample][index], normalized_shape_ && !integer_inputs_},
          .end_is_length = true};
}

// ---- Windows --------------------------------------------------------------------------------------------------------

namespace {

constexpr size_t kWindowSize = 4;  // numbers: y, x, height, width

using Windows = std::vector<roi::Window>;

template <typename T>
Windows ToWindows(const T *values, size_t count) {
  Windows windows(count);
  for (size_t i = 0; i < count; i++, values += kWindowSize) windows[i] = {values[0], values[1], values[2], values[3]};
  return windows;
}

template <typename T>
std::vector<Windows> ToWindows(const dali::TensorList<dali::CPUBackend> &list) {
  std::vector<Windows> windows(list.num_samples());
  for (int i = 0; i < list.num_samples(); i++) {
    const auto shape = list.tensor_shape(i);
    require(shape.size() == 2 && shape[1] == kWindowSize,
            "`windows` must have the shape (N, 4), of y, x, height and width; that of sample #", i, " is ", shape);
    windows[i] = ToWindows(list.tensor<T>(i), shape[0]);
  }
  return windows;
}

}  // namespace

WindowArguments::WindowArguments(const dali::OpSpec &spec) : by_tensor_(spec.HasTensorArgument("windows")) {}

void WindowArguments::Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size) {
  if (!by_tensor_) {
    const auto values = spec.GetRepeatedArgument<int64_t>("windows");
    require(values.size() % kWindowSize == 0, "`windows` must have four numbers for each: y, x, height and width");
    windows_.assign(batch_size, ToWindows(values.data(), values.size() / kWindowSize));
    return;
  }
  const auto &list = ws.ArgumentInput("windows");
  switch (list.type()) {
    case DALI_INT32: windows_ = ToWindows<int32_t>(list); break;
    case DALI_INT64: windows_ = ToWindows<int64_t>(list); break;
    default: throw std::invalid_argument(make_string("`windows` must be int32 or int64, not ", list.type()));
  }
  require(windows_.size() == static_cast<size_t>(batch_size), "`windows` has ", windows_.size(),
          " samples in a batch of ", batch_size);
}

// ---- Any ------------------------------------------------------------------------------------------------------------

RoiArguments::RoiArguments(const dali::OpSpec &spec)
    : source_(
          roi::source_of_region([&](const char *name) { return spec.ArgumentDefined(name); }, spec.NumRegularInput())),
      crop_(spec),
      slice_(spec),
      windows_(spec) {}

void RoiArguments::Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size) {
  switch (source_) {
    case roi::Source::none: return;
    case roi::Source::crop: return crop_.Acquire(spec, ws, batch_size);
    case roi::Source::slice:
    case roi::Source::inputs: return slice_.Acquire(spec, ws, batch_size);
    case roi::Source::windows: return windows_.Acquire(spec, ws, batch_size);
  }
}

roi::Interval RoiArguments::Window(int sample, int axis, int64_t extent) const {
  if (source_ == roi::Source::none) return {0, extent};
  return source_ == roi::Source::crop ? crop_.Window(sample, axis, extent) : slice_.Window(sample, axis, extent);
}

template <typename Region>
std::vector<l3_rect> RoiArguments::ForEachWindow(int sample, uint32_t height, uint32_t width, Region region) const {
  if (!has_windows()) return {region(Window(sample, 0, height), Window(sample, 1, width))};
  std::vector<l3_rect> regions;
  const auto &windows = windows_[sample];
  roi::require_one_size(windows);
  for (const roi::Window &window : windows) regions.push_back(region(window.y(), window.x()));
  return regions;
}

std::vector<l3_rect> RoiArguments::Regions(int sample, uint32_t height, uint32_t width) const {
  return ForEachWindow(sample, height, width, [&](const roi::Interval &y, const roi::Interval &x) {
    return roi::region_inside(y, x, height, width);
  });
}

std::vector<l3_rect> RoiArguments::RegionsOfNoImage(int sample) const {
  return ForEachWindow(sample, 1, 1, roi::region_without_image);
}

}  // namespace dali_l3
