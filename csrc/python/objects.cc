#include "objects.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "encoded_image.h"
#include "loader/input/object_store.h"
#include "loader/input/uri.h"

namespace dali_l3::python {
namespace {

loader::Failure kind_of(const py::error_already_set &error) {
  if (error.matches(PyExc_FileNotFoundError)) return loader::Failure::missing;
  if (error.matches(PyExc_PermissionError)) return loader::Failure::forbidden;
  const py::object storage_error = py::module_::import("dali_l3.errors").attr("StorageError");
  if (!error.matches(storage_error)) return loader::Failure::permanent;
  const bool is_refused = py::object(error.value().attr("errno")).equal(py::int_(EACCES));  // for want of credentials
  return is_refused ? loader::Failure::locked_out : loader::Failure::passing;
}

std::string words_of(const py::error_already_set &error) {
  const py::object words = py::getattr(error.value(), "strerror", py::none());
  return fs_encoded(py::str(words.is_none() ? error.value() : words));  // they may hold a name
}

// What `work` returns, which calls Python.
template <typename Work>
auto asked(const Work &work) {
  const py::gil_scoped_acquire lock;
  try {
    return work();
  } catch (const py::error_already_set &error) {
    throw loader::ObjectError(kind_of(error), words_of(error));
  } catch (const py::cast_error &error) {
    throw loader::ObjectError(loader::Failure::permanent, error.what());
  }
}

class PythonObjects final : public loader::ObjectStore {
 public:
  explicit PythonObjects(const py::object &objects) : objects_(objects) {}

  // As the readers have it, who are going to ask for the same.
  std::string refusal(const std::string &uri) override { return std::string(loader::refusal_of(uri)); }

  uint64_t size(const std::string &uri) override {
    return asked([&] { return py::cast<uint64_t>(objects_.attr("size")(to_str(uri))); });
  }

  size_t read(const std::string &uri, uint64_t offset, std::span<uint8_t> bytes) override {
    return asked([&] {
      const py::bytes data = objects_.attr("read")(to_str(uri), offset, bytes.size());
      const std::string_view found = data;
      const size_t count = std::min(found.size(), bytes.size());
      std::memcpy(bytes.data(), found.data(), count);
      return count;
    });
  }

  std::vector<loader::StoredObject> list(const std::string &folder) override {
    return asked([&] {
      std::vector<loader::StoredObject> objects;
      for (const py::handle &item : objects_.attr("objects_in")(to_str(folder))) {
        const auto [path, size] = py::cast<std::pair<py::str, uint64_t>>(item);
        objects.push_back({fs_encoded(path), size});
      }
      return objects;
    });
  }

 private:
  const py::object &objects_;
};

}  // namespace

std::shared_ptr<loader::Storage> storage_of(const py::object &objects, const std::atomic<bool> *interrupted) {
  if (objects.is_none()) return loader::Storage::local();
  return std::make_shared<loader::Storage>(std::make_shared<PythonObjects>(objects), interrupted);
}

}  // namespace dali_l3::python
