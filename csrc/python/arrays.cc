#include "arrays.h"

namespace dali_l3::python {
namespace {

void check_output(const py::array &out, const py::dtype &dtype, const Shape &shape) {
  if (!out.dtype().equal(dtype)) {
    throw py::type_error("out has dtype " + std::string(py::str(out.dtype())) + ", but the image has " +
                         std::string(py::str(dtype)));
  }
  const Shape out_shape(out.shape(), out.shape() + out.ndim());
  if (out_shape != shape)
    throw py::value_error("out has shape " + to_text(out_shape) + ", but " + to_text(shape) + " is decoded");
  if (!out.writeable()) throw py::value_error("out is read-only");
  if (!row_stride(out)) throw py::value_error("out must be aligned and contiguous within a row");
}

// An array at a cache line: numpy's own large arrays are aligned to 16 bytes, and whole lines are quicker to write.
py::array new_image(const py::dtype &dtype, const Shape &shape) {
  constexpr size_t line = 64;
  size_t size = dtype.itemsize();
  for (py::ssize_t dimension : shape) size *= size_t(dimension);
  py::array memory(py::dtype::of<uint8_t>(), size + line - 1);
  auto *start = static_cast<uint8_t *>(memory.mutable_data());
  return py::array(dtype, shape, start + (-reinterpret_cast<uintptr_t>(start)) % line, memory);
}

}  // namespace

void check(l3_status status, const l3_error &error) {
  if (status != L3_OK) throw Failure(status, error.message);
}

py::str to_str(const std::string &text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<py::ssize_t>(text.size())));
}

void raise(PyObject *type, const std::string &message) {
  PyErr_SetObject(type, to_str(message).ptr());
  throw py::error_already_set();
}

BytesView::BytesView(const py::handle &object) {
  if (!PyObject_CheckBuffer(object.ptr())) {
    throw py::type_error(std::string("data must be bytes-like, not ") + Py_TYPE(object.ptr())->tp_name);
  }
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
}

Roi to_roi(const py::handle &numbers) {
  Roi roi;
  const auto sequence = py::cast<py::sequence>(numbers);
  for (size_t i = 0; i < roi.size(); ++i) roi[i] = PyNumber_AsSsize_t(py::object(sequence[i]).ptr(), nullptr);
  return roi;
}

l3_rect region_of(const l3_info &info, const std::optional<Roi> &roi) {
  if (!roi) return {0, 0, info.width, info.height};
  const auto [top, left, height, width] = *roi;
  const bool inside = top >= 0 && left >= 0 && height >= 1 && width >= 1 && height <= info.height &&
                      width <= info.width && top <= info.height - height && left <= info.width - width;
  if (!inside) {
    throw Failure(L3_ERROR_ARGUMENT, "roi (top, left, height, width) = " + to_text({roi->begin(), roi->end()}) +
                                         " is not inside the image, whose height is " + std::to_string(info.height) +
                                         " and width " + std::to_string(info.width));
  }
  return {static_cast<uint32_t>(left), static_cast<uint32_t>(top), static_cast<uint32_t>(width),
          static_cast<uint32_t>(height)};
}

py::dtype dtype_of(const l3_info &info) {
  return info.bits == 8 ? py::dtype::of<uint8_t>() : py::dtype::of<uint16_t>();
}

Shape shape_of(const l3_info &info, uint32_t height, uint32_t width) {
  Shape shape{height, width};
  if (!info.two_dimensional) shape.push_back(info.channels);
  return shape;
}

std::string to_text(const Shape &shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::optional<size_t> row_stride(const py::array &array) {
  py::ssize_t row_size = array.itemsize();
  for (py::ssize_t axis = array.ndim() - 1; axis > 0; --axis) {
    if (array.shape(axis) != 1 && array.strides(axis) != row_size) return std::nullopt;
    row_size *= array.shape(axis);
  }
  const py::ssize_t stride = array.shape(0) == 1 ? row_size : array.strides(0);
  const bool aligned =
      reinterpret_cast<uintptr_t>(array.data()) % array.itemsize() == 0 && stride % array.itemsize() == 0;
  if (stride < row_size || !aligned) return std::nullopt;
  return static_cast<size_t>(stride);
}

py::array output_for(const py::object &out, const l3_info &info, const l3_rect &region) {
  const py::dtype dtype = dtype_of(info);
  const Shape shape = shape_of(info, region.height, region.width);
  if (out.is_none()) return new_image(dtype, shape);
  const py::object memory = PyCallable_Check(out.ptr()) ? out(py::tuple(py::cast(shape)), dtype) : out;
  const auto pixels = py::cast<py::array>(memory);
  check_output(pixels, dtype, shape);
  return pixels;
}

l3_output destination(py::array &pixels, bool bypass_cache) {
  l3_output output{};
  output.data = pixels.mutable_data();
  output.row_stride = row_stride(pixels).value();
  output.bypass_cache = bypass_cache;
  return output;
}

uint32_t decode_options(std::optional<bool> verify) {
  if (!verify) return L3_VERIFY_UNLESS_STORED;
  return *verify ? L3_VERIFY : 0;
}

}  // namespace dali_l3::python
