// The Python module dali_l3._core: arrays and bytes-likes to and from the codec core. dali_l3/codec.py is its public
// face.
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

#include "archives.h"
#include "arrays.h"
#include "batch.h"
#include "catalogues.h"
#include "l3/l3.h"
#include "loader/dataset/file_format.h"
#include "loader/input/arena.h"
#include "loader/input/open_file.h"
#include "loader/input/storage.h"

namespace {

using namespace dali_l3::python;

constexpr std::array<const char *, 3> kProfiles = {"raw", "paper", "fast"};  // indexed by l3_profile

l3_file open(const BytesView &bytes) {
  l3_file file;
  l3_error error{};
  check(l3_open(bytes.data(), bytes.size(), &file, &error), error);
  return file;
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
  return py::dict("width"_a = info.width, "height"_a = info.height, "channels"_a = info.channels,
                  "dtype"_a = dtype_of(info), "shape"_a = py::tuple(py::cast(shape_of(info, info.height, info.width))),
                  "profile"_a = profile_name(info.profile), "version"_a = version,
                  "tiles"_a = info.tiles_x * info.tiles_y, "has_checksums"_a = info.has_checksums != 0,
                  "prototype"_a = info.prototype != 0, "metadata_size"_a = info.metadata_size,
                  "payload_size"_a = info.payload_size, "file_size"_a = info.file_size);
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

py::array decode(const py::object &data, const py::object &out, const py::object &roi, std::optional<bool> verify) {
  const BytesView bytes(data);
  const l3_file file = open(bytes);
  const l3_rect region = region_of(file.info, roi.is_none() ? std::nullopt : std::optional(to_roi(roi)));
  py::array pixels = output_for(out, file.info, region);
  const l3_output output = destination(pixels, pixels.nbytes() >= L3_BYPASS_CACHE_SIZE);
  l3_error error{};
  l3_status status;
  {
    py::gil_scoped_release release;
    status = l3_decode(&file, &region, &output, decode_options(verify), &error);
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

  // The core judges dimensions, but has 32 bits for each.
  const auto dimension = [&](py::ssize_t axis) {
    if (array.shape(axis) > UINT32_MAX) {
      throw Failure(L3_ERROR_LIMIT, "an image of shape " + to_text(Shape(array.shape(), array.shape() + array.ndim())) +
                                        ": width and height must be 1 to " + std::to_string(L3_MAX_DIMENSION) +
                                        ", with 1 to " + std::to_string(L3_MAX_CHANNELS) + " channels");
    }
    return static_cast<uint32_t>(array.shape(axis));
  };
  l3_image image{};
  image.data = array.data();
  image.height = dimension(0);
  image.width = dimension(1);
  image.channels = array.ndim() == 3 ? dimension(2) : 1;
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

void raise_l3_error(const std::string &message, l3_status status) {
  const py::object type = py::module_::import("dali_l3.errors").attr("L3Error");
  PyErr_SetObject(type.ptr(), type(to_str(message), l3_status_text(status)).ptr());
}

void raise_os_error(const py::handle &type, const dali_l3::loader::FileError &error) {
  const py::tuple arguments = py::make_tuple(error.number, error.problem, to_str(error.path));
  PyErr_SetObject(type.ptr(), arguments.ptr());
}

void translate(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const Failure &failure) {
    raise_l3_error(failure.what(), failure.status);
  } catch (const dali_l3::loader::StorageError &error) {
    raise_os_error(py::module_::import("dali_l3.errors").attr("StorageError"), error);
  } catch (const dali_l3::loader::FileError &error) {
    if (!error.number) return raise_l3_error(error.what(), L3_ERROR_TRUNCATED);
    raise_os_error(PyExc_OSError, error);
  }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The L3 codec core. Use it through dali_l3, which checks and completes the arguments.";
  py::register_local_exception_translator(translate);
  module.def("encode", &encode, py::arg("array"), py::arg("profile"), py::arg("effort"), py::arg("metadata"),
             py::arg("checksums"));
  module.def("decode", &decode, py::arg("data"), py::arg("out"), py::arg("roi"), py::arg("verify"));
  module.def("decode_batch", &decode_batch, py::arg("images"), py::arg("out"), py::arg("rois"), py::arg("threads"),
             py::arg("verify"));
  module.def("read_header", &read_header, py::arg("path"));
  module.def("peek", &peek, py::arg("data"));
  module.def("metadata", &metadata, py::arg("data"));
  module.def("version", &l3_version);
  module.def("sniff", &sniff, py::arg("head"));
  module.attr("SNIFFED_BYTES") = dali_l3::loader::kSniffedBytes;
  module.attr("PAGE_SIZE") = dali_l3::loader::kPage;
  module.attr("MAX_METADATA") = static_cast<int>(L3_MAX_METADATA);
  define_archives(module);
  define_catalogues(module);
  module.def("backend", &l3_backend);
  module.def("set_backend", &set_backend, py::arg("name"));
}
