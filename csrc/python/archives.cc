#include "archives.h"

#include <pybind11/stl.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.h"
#include "encoded_image.h"
#include "interruptible.h"
#include "loader/archives/archive_index.h"
#include "loader/archives/archive_paths.h"
#include "loader/archives/indexing.h"
#include "loader/input/open_file.h"
#include "objects.h"

namespace dali_l3::python {
namespace {

py::list expand_paths(const std::vector<py::str> &paths, const py::object &objects) {
  std::vector<std::string> encoded;
  for (const py::str &path : paths) encoded.push_back(fs_encoded(path));
  std::vector<std::string> expanded;
  try {
    expanded = interruptibly([&](const std::atomic<bool> *cancelled) {
      return loader::expand_paths("SHARD", encoded, *storage_of(objects, cancelled));
    });
  } catch (const loader::StorageError &) {
    throw;
  } catch (const std::runtime_error &error) {
    raise(PyExc_RuntimeError, error.what());
  }
  py::list found;
  for (const std::string &path : expanded) found.append(to_str(path));
  return found;
}

// What `work` returns, which looks into an archive. A ValueError says what is wrong with that.
template <class Work>
auto look_into(const std::string &archive, const Work &work) {
  try {
    py::gil_scoped_release release;
    return work();
  } catch (const loader::FileError &error) {
    if (error.number) throw;
    throw py::value_error(error.path == archive ? error.problem : error.what());
  }
}

// Whether the index was kept, and how many samples have the name of another one.
py::tuple update_index(const py::str &archive, const py::str &index, bool overwrite) {
  const std::string archive_path = fs_encoded(archive), index_path = fs_encoded(index);
  const loader::IndexUpdate update =
      look_into(archive_path, [&] { return loader::update_index(archive_path, index_path, overwrite); });
  return py::make_tuple(update.was_current, update.repeated_keys);
}

// Whether a text is that of an index which fits the archive still.
bool is_index_of(const py::str &archive, const py::bytes &text, const py::object &objects) {
  const std::string path = fs_encoded(archive), index = text;
  return interruptibly([&](const std::atomic<bool> *cancelled) {
    return loader::is_index_of(path, index, *storage_of(objects, cancelled));
  });
}

// The text of the index of an archive, which is written nowhere.
py::bytes index_text(const py::str &archive) {
  const std::string path = fs_encoded(archive);
  return look_into(path, [&] { return loader::write_index(loader::make_index(path), loader::OpenFile(path).size()); });
}

}  // namespace

void define_archives(py::module_ &module) {
  module.def("expand_paths", &expand_paths, py::arg("paths"), py::arg("objects") = py::none());
  module.def(
      "default_index_path",
      [](const py::str &archive) { return to_str(loader::default_index_path(fs_encoded(archive))); },
      py::arg("archive"));
  module.def("is_index_of", &is_index_of, py::arg("archive"), py::arg("text"), py::arg("objects") = py::none());
  module.def("index_text", &index_text, py::arg("archive"));
  module.def("update_index", &update_index, py::arg("archive"), py::arg("index"), py::arg("overwrite"));
}

}  // namespace dali_l3::python
