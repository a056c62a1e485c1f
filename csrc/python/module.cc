// The Python module dali_l3._core: arrays and bytes-likes to and from the codec core. dali_l3/codec.py is its public
// face.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "l3/l3.h"
#include "loader/dataset/file_format.h"
#include "loader/input/arena.h"

namespace py = pybind11;

namespace {

using Roi = std::array<py::int_, 4>;  // top, left, height, width
using Shape = std::vector<py::ssize_t>;

constexpr std::array<const char *, 3> kProfiles = {"raw", "paper", "fast"};  // indexed by l3_profile

// A failure of the core on its way to Python, where it becomes dali_l3.L3Error.
struct Failure : std::runtime_error {
  Failure(l3_status status, const std::string &message) : std::runtime_error(message), status(status) {}
  l3_status status;
};

void check(l3_status status, const l3_error &error) {
  if (status != L3_OK) throw Failure(status, error.message);
}

// The bytes of any contiguous bytes-like object, kept in place for the lifetime of this object.
class BytesView {
 public:
  explicit BytesView(const py::handle &object) {
    if (!PyObject_CheckBuffer(object.ptr())) {
      throw py::type_error(std::string("data must be bytes-like, not ") + Py_TYPE(object.ptr())->tp_name);
    }
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  }
  ~BytesView() { PyBuffer_Release(&view_); }
  BytesView(const BytesView &) = delete;
  BytesView &operator=(const BytesView &) = delete;

  const void *data() const { return view_.buf; }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_;
};

l3_file open(const BytesView &bytes) {
  l3_file file;
  l3_error error{};
  check(l3_open(bytes.data(), bytes.size(), &file, &error), error);
  return file;
}

py::dtype sample_dtype(uint32_t bits) { return bits == 8 ? py::dtype::of<uint8_t>() : py::dtype::of<uint16_t>(); }

// Shape of the decoded array: (height, width) or (height, width, channels), as the array was when it was encoded.
Shape array_shape(const l3_info &info, uint32_t height, uint32_t width) {
  Shape shape{height, width};
  if (!info.two_dimensional) shape.push_back(info.channels);
  return shape;
}

// Bytes from one row to the next when the array's samples are aligned and contiguous within a row and its rows do not
// overlap; otherwise nothing. Strides along axes of length one mean nothing and are not looked at.
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

template <typename Sequence>
std::string tuple_text(const Sequence &values) {
  return py::str(py::tuple(py::cast(values)));
}

void check_output(const py::array &out, const py::dtype &dtype, const Shape &shape) {
  if (!out.dtype().equal(dtype)) {
    throw py::type_error("out has dtype " + std::string(py::str(out.dtype())) + ", but the image has " +
                         std::string(py::str(dtype)));
  }
  const Shape out_shape(out.shape(), out.shape() + out.ndim());
  if (out_shape != shape)
    throw py::value_error("out has shape " + tuple_text(out_shape) + ", but " + tuple_text(shape) + " is decoded");
  if (!out.writeable()) throw py::value_error("out is read-only");
  if (!row_stride(out)) throw py::value_error("out must be aligned and contiguous within a row");
}

l3_rect checked_rect(const Roi &roi, const l3_info &info) {
  std::array<int64_t, 4> numbers;
  for (size_t i = 0; i < roi.size(); ++i)
    numbers[i] = PyNumber_AsSsize_t(roi[i].ptr(), nullptr);  // clipped where it does not fit
  const auto [top, left, height, width] = numbers;
  const bool inside = top >= 0 && left >= 0 && height >= 1 && width >= 1 && height <= info.height &&
                      width <= info.width && top <= info.height - height && left <= info.width - width;
  if (!inside) {
    throw Failure(L3_ERROR_ARGUMENT, "roi (top, left, height, width) = " + tuple_text(roi) +
                                         " is not inside the image, whose height is " + std::to_string(info.height) +
                                         " and width " + std::to_string(info.width));
  }
  return {static_cast<uint32_t>(left), static_cast<uint32_t>(top), static_cast<uint32_t>(width),
          static_cast<uint32_t>(height)};
}

const char *profile_name(l3_profile profile) { return kProfiles[profile]; }

l3_profile profile_of(const std::string &name) {
  const auto found = std::find(kProfiles.begin(), kProfiles.end(), name);
  if (found == kProfiles.end()) {
    const std::string problem =
        name == "dense" ? "profile 'dense' is reserved for a later version" : "unknown profile '" + name + "'";
    throw Failure(L3_ERROR_ARGUMENT, problem + ": expected 'fast', 'raw' or 'paper'");
  }
  return static_cast<l3_profile>(found - kProfiles.begin());
}

// The fields of dali_l3.ImageInfo.
py::dict peek(const py::object &data) {
  const BytesView bytes(data);
  l3_info info;
  l3_error error{};
  check(l3_peek(bytes.data(), bytes.size(), &info, &error), error);

  py::object version = py::none();
  if (!info.prototype) version = py::str(std::to_string(info.version_major) + "." + std::to_string(info.version_minor));
  using namespace py::literals;
  return py::dict(
      "width"_a = info.width, "height"_a = info.height, "channels"_a = info.channels,
      "dtype"_a = sample_dtype(info.bits), "shape"_a = py::tuple(py::cast(array_shape(info, info.height, info.width))),
      "profile"_a = profile_name(info.profile), "version"_a = version, "tiles"_a = info.tiles_x * info.tiles_y,
      "has_checksums"_a = info.has_checksums != 0, "prototype"_a = info.prototype != 0,
      "metadata_size"_a = info.metadata_size, "payload_size"_a = info.payload_size, "file_size"_a = info.file_size);
}

py::dict metadata(const py::object &data) {
  const BytesView bytes(data);
  const l3_file file = open(bytes);
  py::dict entries;
  l3_error error{};
  size_t cursor = 0;
  for (;;) {
    l3_metadata entry{};
    check(l3_next_metadata(&file, &cursor, &entry, &error), error);
    if (!entry.key) return entries;
    entries[py::str(entry.key, entry.key_size)] = py::bytes(static_cast<const char *>(entry.value), entry.value_size);
  }
}

// An array at a cache line: numpy's own large arrays are aligned to 16 bytes, and whole lines are quicker to write.
py::array new_image(const py::dtype &dtype, const Shape &shape) {
  constexpr size_t line = 64;
  size_t size = dtype.itemsize();
  for (py::ssize_t extent : shape) size *= size_t(extent);
  py::array memory(py::dtype::of<uint8_t>(), size + line - 1);
  auto *start = static_cast<uint8_t *>(memory.mutable_data());
  return py::array(dtype, shape, start + (-reinterpret_cast<uintptr_t>(start)) % line, memory);
}

py::array decode(const py::object &data, const std::optional<py::array> &out, const std::optional<Roi> &roi,
                 std::optional<bool> verify) {
  const BytesView bytes(data);
  const l3_file file = open(bytes);
  const l3_info &info = file.info;
  const l3_rect rect = roi ? checked_rect(*roi, info) : l3_rect{0, 0, info.width, info.height};

  const py::dtype dtype = sample_dtype(info.bits);
  const Shape shape = array_shape(info, rect.height, rect.width);
  if (out) check_output(*out, dtype, shape);
  py::array pixels = out ? *out : new_image(dtype, shape);

  l3_output output{};
  output.data = pixels.mutable_data();
  output.row_stride = row_stride(pixels).value();
  output.bypass_cache = pixels.nbytes() >= L3_BYPASS_CACHE_SIZE;
  const uint32_t options = !verify ? L3_VERIFY_UNLESS_STORED : *verify ? L3_VERIFY : 0;
  l3_error error{};
  l3_status status;
  {
    py::gil_scoped_release release;
    status = l3_decode(&file, &rect, &output, options, &error);
  }
  check(status, error);
  return pixels;
}

// `array` is (height, width) or (height, width, channels), uint8 or uint16 in native byte order; codec.py sees to that.
py::bytes encode(py::array array, const std::string &profile, uint32_t effort,
                 const std::vector<std::pair<py::bytes, py::bytes>> &metadata, bool checksums) {
  std::vector<l3_metadata> entries;
  for (const auto &[key, value] : metadata) {
    const std::string_view key_bytes = key, value_bytes = value;
    entries.push_back({key_bytes.data(), key_bytes.size(), value_bytes.data(), value_bytes.size()});
  }
  l3_encode_options options{};
  options.profile = profile_of(profile);
  options.effort = effort;
  options.checksums = checksums;
  options.metadata = entries.data();
  options.metadata_count = entries.size();

  // The core judges extents, but has 32 bits for each.
  const auto extent = [&](py::ssize_t axis) {
    if (array.shape(axis) > UINT32_MAX) {
      throw Failure(L3_ERROR_LIMIT, "an image of shape " +
                                        tuple_text(Shape(array.shape(), array.shape() + array.ndim())) +
                                        ": width and height must be 1 to " + std::to_string(L3_MAX_DIMENSION) +
                                        ", with 1 to " + std::to_string(L3_MAX_CHANNELS) + " channels");
    }
    return static_cast<uint32_t>(array.shape(axis));
  };
  l3_image image{};
  image.data = array.data();
  image.height = extent(0);
  image.width = extent(1);
  image.channels = array.ndim() == 3 ? extent(2) : 1;
  image.bits = static_cast<uint32_t>(8 * array.itemsize());
  image.two_dimensional = array.ndim() == 2;
  image.row_stride = size_t{image.width} * image.channels * static_cast<size_t>(array.itemsize());

  l3_error error{};
  size_t written = 0;
  const size_t capacity = l3_encode_bound(&image, &options);
  if (capacity == 0) check(l3_encode(&image, &options, nullptr, 0, &written, &error), error);

  // Only now, when the image is known to be within the limits, may it be copied.
  if (!row_stride(array)) array = array.attr("copy")("C");
  image.data = array.data();
  image.row_stride = row_stride(array).value();

  // Encoded straight into the bytes object that is returned, then cut to size.
  PyObject *file = PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(capacity));
  if (!file) throw py::error_already_set();
  char *const buffer = PyBytes_AS_STRING(file);
  l3_status status;
  {
    py::gil_scoped_release release;
    status = l3_encode(&image, &options, buffer, capacity, &written, &error);
  }
  if (status != L3_OK) Py_DECREF(file);
  check(status, error);
  if (_PyBytes_Resize(&file, static_cast<py::ssize_t>(written)) != 0) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(file);
}

std::optional<std::string> sniff(const py::bytes &head) {
  const std::string_view bytes = head;
  const char *name = dali_l3::loader::sniffed_name({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  return name ? std::optional<std::string>(name) : std::nullopt;
}

void set_backend(const std::string &name) {
  const l3_status status = l3_set_backend(name.c_str());
  if (status == L3_ERROR_ARGUMENT)
    throw Failure(status, "unknown back end '" + name + "': expected 'avx512', 'avx2' or 'portable'");
  if (status != L3_OK) throw Failure(status, "this CPU cannot run the back end '" + name + "'");
}

void translate(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const Failure &failure) {
    const py::object type = py::module_::import("dali_l3.errors").attr("L3Error");
    const py::object error = type(failure.what(), l3_status_text(failure.status));
    PyErr_SetObject(type.ptr(), error.ptr());
  }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The L3 codec core. Use it through dali_l3, which checks and completes the arguments.";
  py::register_local_exception_translator(translate);
  module.def("encode", &encode, py::arg("array"), py::arg("profile"), py::arg("effort"), py::arg("metadata"),
             py::arg("checksums"));
  module.def("decode", &decode, py::arg("data"), py::arg("out"), py::arg("roi"), py::arg("verify"));
  module.def("peek", &peek, py::arg("data"));
  module.def("metadata", &metadata, py::arg("data"));
  module.def("version", &l3_version);
  module.def("sniff", &sniff, py::arg("head"));
  module.attr("SNIFFED_BYTES") = dali_l3::loader::kSniffedBytes;
  module.attr("EXTENT") = dali_l3::loader::kExtent;
  module.attr("MAX_METADATA") = static_cast<int>(L3_MAX_METADATA);
  module.def("backend", &l3_backend);
  module.def("set_backend", &set_backend, py::arg("name"));
}
