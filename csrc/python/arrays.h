// Arrays, bytes-likes and errors between Python and the codec core.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "l3/l3.h"

namespace dali_l3::python {

namespace py = pybind11;

using Shape = std::vector<py::ssize_t>;

// A failure of the core on its way to Python, where it becomes dali_l3.L3Error.
struct Failure : std::runtime_error {
  Failure(l3_status status, const std::string &message) : std::runtime_error(message), status(status) {}
  l3_status status;
};

// Throws Failure unless `status` is L3_OK.
void check(l3_status status, const l3_error &error);

// Text for Python; it may hold a path, which need not be UTF-8.
py::str to_str(const std::string &text);

// Raises a Python error of this type, whose message may hold such a path.
[[noreturn]] void raise(PyObject *type, const std::string &message);

// The bytes of any contiguous bytes-like object, kept in place for the lifetime of this object. Needs the GIL, except
// for reading.
class BytesView {
 public:
  explicit BytesView(const py::handle &object);
  ~BytesView() { PyBuffer_Release(&view_); }
  BytesView(const BytesView &) = delete;
  BytesView &operator=(const BytesView &) = delete;

  const void *data() const { return view_.buf; }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_;
};

// A region as Python has it: top, left, height, width; clipped to 64 bits where it does not fit.
using Roi = std::array<int64_t, 4>;
Roi to_roi(const py::handle &numbers);

// The region as the core has it, the whole image without one. Throws Failure if it is not inside the image.
l3_rect region_of(const l3_info &info, const std::optional<Roi> &roi);

py::dtype dtype_of(const l3_info &info);

// Shape of the decoded array: (height, width) or (height, width, channels), as the array was when it was encoded.
Shape shape_of(const l3_info &info, uint32_t height, uint32_t width);

std::string to_text(const Shape &shape);

// Bytes from one row to the next when the array's samples are aligned and contiguous within a row and its rows do not
// overlap; otherwise nothing. Strides along axes of length one mean nothing and are not looked at.
std::optional<size_t> row_stride(const py::array &array);

// Memory for a decoded image: `out`, which must suit it, or, if that is None, a new array; or what `out` returns for
// (shape, dtype), if it can be called.
py::array output_for(const py::object &out, const l3_info &info, const l3_rect &region);

// Where the core writes an array that output_for() returned.
l3_output destination(py::array &pixels, bool bypass_cache);

// The core's options for verify=True, False or None.
uint32_t decode_options(std::optional<bool> verify);

}  // namespace dali_l3::python
