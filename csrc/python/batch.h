// Decoding many images at once, in threads of their own.
#pragma once

#include <optional>

#include "arrays.h"

namespace dali_l3::python {

// Decodes images: bytes-likes, and files whose paths are str, of which no more is read than their regions need.
//
// out: None, or what returns an array for each image, given a list of their shapes and one of their dtypes
// rois: for each image, a region or None
// threads: at least 1, the caller's among them
//
// Throws for the first image that cannot be decoded, by its path or its number, and what a signal's handler raises.
py::list decode_batch(const py::list &images, const py::object &out, const py::list &rois, int threads,
                      std::optional<bool> verify);

// The shape and the dtype of the image in a file, of which no more than the header is read.
py::tuple read_header(const py::str &path);

}  // namespace dali_l3::python
