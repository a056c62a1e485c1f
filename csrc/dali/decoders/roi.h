// The regions of interest that an operator's arguments ask for: those of fn.decoders.image_crop, those of
// fn.decoders.image_slice, or `windows`.
//
// DALI ships the headers of the classes behind those operators but does not export their code, so the arguments are
// read here, for images alone; csrc/roi says what they mean.
#pragma once

#include <vector>

#include "dali/pipeline/operator/arg_helper.h"
#include "dali/pipeline/operator/op_spec.h"
#include "dali/pipeline/workspace/workspace.h"
#include "l3/l3.h"
#include "roi/arguments.h"
#include "roi/region.h"

namespace dali_l3 {

// `crop` or `crop_h` and `crop_w`; `crop_pos_x`, `crop_pos_y`, `rounding`.
class CropArguments {
 public:
  explicit CropArguments(const dali::OpSpec &spec);
  void Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size);
  roi::Interval Window(int sample, int axis, int64_t extent) const;

 private:
  dali::ArgValue<float, 1> crop_;
  dali::ArgValue<float> height_, width_, position_y_, position_x_;
  roi::Rounding rounding_;
};

// `start`, `end`, `shape` or their `rel_` forms, or the inputs anchor and shape with `normalized_anchor` and
// `normalized_shape`; `axes` or `axis_names`.
class SliceArguments {
 public:
  explicit SliceArguments(const dali::OpSpec &spec);
  void Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size);
  roi::Interval Window(int sample, int axis, int64_t extent) const;

 private:
  void AcquireAxes(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size);
  void AcquireInputs(const dali::Workspace &ws, int batch_size);
  roi::Slice NamedSlice(int sample, int index) const;
  roi::Slice InputSlice(int sample, int index) const;

  dali::ArgValue<int, 1> start_, end_, shape_, axes_;
  dali::ArgValue<float, 1> rel_start_, rel_end_, rel_shape_;
  bool by_inputs_;
  bool normalized_anchor_, normalized_shape_;
  std::vector<int> axis_names_;  // as axes; empty where `axes` rules
  std::vector<std::vector<int>>
      sample_axes_;  // of each sample of the batch: the axes that its values are for, in their order
  std::vector<std::vector<double>> anchors_, shapes_;  // of each sample: the values of the two inputs
  bool integer_inputs_ = false;
};

// `windows`: of each sample rows of y, x, height and width, all of one size.
class WindowArguments {
 public:
  explicit WindowArguments(const dali::OpSpec &spec);
  void Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size);

  const std::vector<roi::Window> &operator[](int sample) const { return windows_[sample]; }

 private:
  bool by_tensor_;
  std::vector<std::vector<roi::Window>> windows_;  // of each sample of the batch
};

// One of the three, or the whole image.
class RoiArguments {
 public:
  // Throws std::invalid_argument when the arguments contradict each other.
  explicit RoiArguments(const dali::OpSpec &spec);

  // Reads the arguments of a batch.
  void Acquire(const dali::OpSpec &spec, const dali::Workspace &ws, int batch_size);

  // Whether a sample may have any number of regions; else it has one.
  bool has_windows() const { return source_ == roi::Source::windows; }

  // The regions of one sample, all of one size. Throws std::invalid_argument when one is empty or does not lie inside
  // the image, or when they differ in size.
  std::vector<l3_rect> Regions(int sample, uint32_t height, uint32_t width) const;

  // Regions of the size that the arguments give where there is no image: that of an image of one pixel, and at least
  // that. Throws std::invalid_argument when no image can be so large, or when they differ in size.
  std::vector<l3_rect> RegionsOfNoImage(int sample) const;

 private:
  // Calls region(y, x) for the windows of a sample in an image of this height and width.
  template <typename Region>
  std::vector<l3_rect> ForEachWindow(int sample, uint32_t height, uint32_t width, Region region) const;
  roi::Interval Window(int sample, int axis, int64_t extent) const;

  roi::Source source_;
  CropArguments crop_;
  SliceArguments slice_;
  WindowArguments windows_;
};

}  // namespace dali_l3
