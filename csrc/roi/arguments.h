// Which of the arguments of fn.decoders.image_crop, of fn.decoders.image_slice, and `windows` give a region, and to
// which axes they belong.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roi/region.h"

namespace dali_l3::roi {

/** What gives the region of an operator. */
enum class Source {
  none,     ///< it is the whole image
  crop,     ///< `crop`, or `crop_h` and `crop_w`
  slice,    ///< `start`, `end`, `shape` or their `rel_` forms
  inputs,   ///< the inputs anchor and shape
  windows,  ///< `windows`, any number of them
};

/**
 * @param is_given whether the user has set the argument of a name
 * @param inputs of the operator, with the encoded images
 * @throws std::invalid_argument where arguments exclude each other, or one lacks another
 */
Source source_of_region(const std::function<bool(const char *name)> &is_given, int inputs);

/** The argument `rounding`. */
Rounding parse_rounding(std::string_view name);

/** @name The axes that the values of a slice belong to, in their order: 0 is the height, 1 the width.
 *
 * Both throw std::invalid_argument unless they are one or two axes of an image, each once. @{ */
std::vector<int> parse_axis_names(std::string_view names);  ///< H and W
std::vector<int> parse_axes(std::span<const int> axes);     ///< negative ones count from the last
/** @} */

}  // namespace dali_l3::roi
