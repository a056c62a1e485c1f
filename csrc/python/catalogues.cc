#include "catalogues.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "arrays.h"
#include "encoded_image.h"
#include "interruptible.h"
#include "loader/dataset/catalogue_file.h"
#include "loader/dataset/comparison.h"
#include "loader/input/open_file.h"
#include "objects.h"

namespace dali_l3::python {
namespace {

using loader::CatalogueOptions;

// What is wrong with a file itself is a RuntimeError in Python, and what the system says an OSError.
template <typename Function>
auto with_errors(const Function &function) {
  try {
    return function();
  } catch (const loader::FileError &error) {
    if (error.number) throw;
    throw std::runtime_error(error.what());
  }
}

std::string as_text(const py::handle &value) { return fs_encoded(value); }
std::vector<std::string> as_texts(const py::handle &values) {
  std::vector<std::string> texts;
  for (const py::handle &value : values) texts.push_back(fs_encoded(value));
  return texts;
}

// The options of a listing, by the names of the readers' arguments.
CatalogueOptions options_of(const py::dict &source) {
  CatalogueOptions options{.file_filters = loader::kImageFilters};
  loader::ArchiveOptions archives;
  for (const auto &[key, value] : source) {
    const auto name = py::cast<std::string>(key);
    if (name == "file_root")
      options.file_root = as_text(value);
    else if (name == "file_list")
      options.file_list = as_text(value);
    else if (name == "file_filters")
      options.file_filters = as_texts(value);
    else if (name == "catalogue")
      options.catalogue = as_text(value);
    else if (name == "label_columns")
      options.label_columns = py::cast<int>(value);
    else if (name == "companions")
      options.companions = as_texts(value);
    else if (name == "missing_companions")
      options.missing_companions = as_texts(value);
    else if (name == "paths")
      archives.paths = as_texts(value);
    else if (name == "ext")
      archives.ext = as_texts(value);
    else if (name == "missing_component_behavior")
      archives.missing_component_behavior = as_text(value);
    else if (name == "label_ext")
      archives.label_ext = as_text(value);
    else if (name == "label_field")
      archives.label_field = as_text(value);
    else if (name == "skip_bad")
      options.on_error = py::cast<bool>(value) ? loader::OnError::skip : loader::OnError::raise;
    else if (name == "subset_indices")
      options.subset.indices = py::cast<std::vector<int64_t>>(value);
    else if (name == "subset_files")
      options.subset.files = as_texts(value);
    else if (name == "subset_range")
      options.subset.range = py::cast<std::vector<float>>(value);
    else if (name == "subset_seed")
      options.subset.seed = py::cast<int64_t>(value);
    else
      throw py::key_error(name);
  }
  if (source.contains("paths")) options.archives = std::move(archives);
  return options;
}

// Lists a dataset and writes its catalogue, with another root if one is given; returns how many samples it has, and
// what users may not expect.
py::tuple write_catalogue(const py::str &output, const py::dict &source, const std::string &origin,
                          const std::optional<py::str> &root, int threads, const py::object &objects) {
  CatalogueOptions options = options_of(source);
  options.sniff = options.sizes = true;
  options.threads = threads;
  const std::string path = fs_encoded(output);
  std::optional<std::string> new_root;
  if (root) new_root = fs_encoded(*root);
  const bool has_labels = options.catalogue
                              ? with_errors([&] { return loader::read_catalogue_facts(*options.catalogue); }).has_labels
                          : options.archives ? options.archives->label_ext.has_value()
                                             : true;
  const loader::Catalogue catalogue = with_errors([&] {
    loader::check_can_hold(path, 0, companion_count(options),
                           static_cast<uint64_t>(std::max(options.label_columns, 0)));
    return interruptibly([&](const std::atomic<bool> *cancelled) {
      options.cancelled = cancelled;
      options.storage = storage_of(objects, cancelled);
      loader::Catalogue listed = list_dataset(options);
      save_catalogue(listed, has_labels, origin, path, new_root, *options.storage);
      return listed;
    });
  });
  py::list problems;
  for (const std::string &problem : catalogue.problems) problems.append(to_str(problem));
  return py::make_tuple(catalogue.entries.size(), problems);
}

// A catalogue's file.
class CatalogueReader {
 public:
  explicit CatalogueReader(const py::str &path)
      : path_(fs_encoded(path)), file_(with_errors([this] {
          const py::gil_scoped_release release;
          return loader::open_catalogue(path_);
        })) {}

  size_t size() const { return entries().size(); }

  py::dict facts() const {
    py::list archives;
    for (const std::string &archive : file_.catalogue.archives) archives.append(to_str(archive));
    py::dict facts;
    facts["samples"] = file_.facts.samples;
    facts["companions"] = file_.facts.companions;
    facts["has_labels"] = file_.facts.has_labels;
    facts["label_columns"] = file_.facts.label_columns;
    facts["root"] = to_str(file_.catalogue.root);
    facts["archives"] = archives;
    facts["origin"] = to_str(file_.origin);
    return facts;
  }

  py::array_t<int32_t> labels() const {
    return column<int32_t>([&](size_t i) { return entries().label(i); });
  }
  py::array_t<float> label_values() const {
    const std::span<const float> values = file_.catalogue.label_values.values();
    const auto columns = static_cast<py::ssize_t>(file_.facts.label_columns);
    py::array_t<float> made(Shape{static_cast<py::ssize_t>(size()), columns});
    float *const data = made.mutable_data();
    const py::gil_scoped_release release;
    std::ranges::copy(values, data);
    return made;
  }
  py::array_t<uint8_t> formats() const {
    return column<uint8_t>([&](size_t i) { return static_cast<uint8_t>(entries().format(i)); });
  }
  py::array_t<uint64_t> sizes(size_t component) const {
    return column<uint64_t>([&, c = checked(component)](size_t i) { return entries().file(i, c).size; });
  }
  py::array_t<uint64_t> offsets(size_t component) const {
    return column<uint64_t>([&, c = checked(component)](size_t i) { return entries().file(i, c).offset; });
  }

  py::list names(size_t begin, size_t end, size_t component) const {
    py::list names;
    for (size_t i = begin; i < std::min(end, size()); i++)
      names.append(to_str(name_of(file_.catalogue.archives, entries().file(i, checked(component)))));
    return names;
  }

  void check() const {
    const py::gil_scoped_release release;
    with_errors([&] { loader::check_sections(path_); });
  }

  py::list compare(int threads, const py::object &objects) const {
    const std::vector<std::string> problems = interruptibly([&](const std::atomic<bool> *cancelled) {
      return loader::compare_with_files(file_.catalogue, threads, cancelled, storage_of(objects, cancelled));
    });
    py::list lines;
    for (const std::string &problem : problems) lines.append(to_str(problem));
    return lines;
  }

  // The names of what a listing finds now and the catalogue does not have.
  py::list new_files(const py::dict &source, int threads, const py::object &objects) const {
    CatalogueOptions options = options_of(source);
    options.threads = threads;
    options.sniff = options.sizes = options.on_error == loader::OnError::skip;  // so that bad files are none
    const std::vector<std::string> names = interruptibly([&](const std::atomic<bool> *cancelled) {
      options.cancelled = cancelled;
      options.storage = storage_of(objects, cancelled);
      std::unordered_set<std::string> known;
      for (size_t i = 0; i < size(); i++) known.insert(name_of(file_.catalogue.archives, entries().file(i, 0)));
      const loader::Catalogue listed = list_dataset(options);
      std::vector<std::string> names;
      for (size_t i = 0; i < listed.entries.size(); i++)
        if (std::string name = name_of(listed.archives, listed.entries.file(i, 0)); !known.contains(name))
          names.push_back(std::move(name));
      return names;
    });
    py::list found;
    for (const std::string &name : names) found.append(to_str(name));
    return found;
  }

 private:
  const loader::Entries &entries() const { return file_.catalogue.entries; }

  size_t checked(size_t component) const {
    if (component > entries().companions()) throw py::index_error("no such component");
    return component;
  }

  // Other threads run Python meanwhile, since there may be many millions of samples.
  template <typename T>
  py::array_t<T> column(const auto &value) const {
    py::array_t<T> made(static_cast<py::ssize_t>(size()));
    T *const data = made.mutable_data();
    const py::gil_scoped_release release;
    for (size_t i = 0; i < size(); i++) data[i] = value(i);
    return made;
  }

  const std::string path_;
  const loader::CatalogueFile file_;
};

py::list format_names() {
  py::list names;
  for (size_t i = 0; i < loader::kFormats; i++) names.append(loader::format_name(static_cast<loader::FileFormat>(i)));
  return names;
}

}  // namespace

void define_catalogues(py::module_ &module) {
  module.attr("FORMATS") = format_names();
  module.def("write_catalogue", &write_catalogue, py::arg("path"), py::arg("source"), py::arg("origin"),
             py::arg("root") = py::none(), py::arg("threads") = CatalogueOptions{}.threads,
             py::arg("objects") = py::none());
  py::class_<CatalogueReader>(module, "Catalogue")
      .def(py::init<const py::str &>(), py::arg("path"))
      .def("__len__", &CatalogueReader::size)
      .def("facts", &CatalogueReader::facts)
      .def("labels", &CatalogueReader::labels)
      .def("label_values", &CatalogueReader::label_values)
      .def("formats", &CatalogueReader::formats)
      .def("sizes", &CatalogueReader::sizes, py::arg("component") = 0)
      .def("offsets", &CatalogueReader::offsets, py::arg("component") = 0)
      .def("names", &CatalogueReader::names, py::arg("begin"), py::arg("end"), py::arg("component") = 0)
      .def("check", &CatalogueReader::check)
      .def("compare", &CatalogueReader::compare, py::arg("threads"), py::arg("objects") = py::none())
      .def("new_files", &CatalogueReader::new_files, py::arg("source"), py::arg("threads"),
           py::arg("objects") = py::none());
}

}  // namespace dali_l3::python
