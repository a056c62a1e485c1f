// From a number in the file to the specialisation of a template for it.
#pragma once

#include <type_traits>

#include "format/fast_tile.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::generic {
namespace {

template <uint32_t value>
using Constant = std::integral_constant<uint32_t, value>;

// Calls function(Constant<predictor>()) for any predictor but the label map.
template <typename Function>
inline auto with_predictor(uint32_t predictor, Function function) {
  switch (predictor) {
    case kAbove: return function(Constant<kAbove>());
    case kSmoothAbove: return function(Constant<kSmoothAbove>());
    case kLeft: return function(Constant<kLeft>());
    case kPlane: return function(Constant<kPlane>());
    default: return function(Constant<kSmoothPlane>());
  }
}

// Calls function(Constant<transform>()) for a colour transform.
template <typename Function>
inline auto with_color_transform(uint32_t transform, Function function) {
  switch (transform) {
    case kTransformNone: return function(Constant<kTransformNone>());
    case kSubtractGreen: return function(Constant<kSubtractGreen>());
    default: return function(Constant<kSubtractGreenAndMean>());
  }
}

}  // namespace
}  // namespace l3::generic
