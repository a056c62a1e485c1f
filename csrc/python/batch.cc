#include "batch.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "encoded_image.h"
#include "threads.h"

namespace dali_l3::python {
namespace {

// Tiles in a piece: some 100 microseconds of work, so that taking a piece costs nothing beside it and one image still
// occupies all threads.
constexpr uint32_t kTilesPerPiece = 64;

// A run of tiles of one image: the unit of work that threads take.
struct Piece {
  size_t image;
  uint32_t first_tile, tiles;
};

using Images = std::deque<EncodedImage>;  // which are not moved

Images parse(const py::list &images, const py::list &rois) {
  Images parsed;
  for (size_t i = 0; i < images.size(); ++i) {
    const py::object roi = rois[i];
    parsed.emplace_back(images[i], i, roi.is_none() ? std::nullopt : std::optional(to_roi(roi)));
  }
  return parsed;
}

[[noreturn]] void raise(PyObject *type, const std::string &message) {
  PyErr_SetObject(type, to_str(message).ptr());
  throw py::error_already_set();
}

std::vector<py::array> outputs_for(const Images &images, const py::object &out) {
  py::list memory;
  if (!out.is_none()) {
    py::list shapes, dtypes;
    for (const EncodedImage &image : images) {
      shapes.append(py::tuple(py::cast(shape_of(image.info(), image.region().height, image.region().width))));
      dtypes.append(dtype_of(image.info()));
    }
    memory = out(shapes, dtypes);
  }
  std::vector<py::array> outputs;
  for (size_t i = 0; i < images.size(); ++i) {
    const py::object array = out.is_none() ? py::none() : py::object(memory[i]);
    try {
      outputs.push_back(output_for(array, images[i].info(), images[i].region()));
    } catch (const py::type_error &error) {
      raise(PyExc_TypeError, images[i].named(error.what()));
    } catch (const py::value_error &error) {
      raise(PyExc_ValueError, images[i].named(error.what()));
    }
  }
  return outputs;
}

std::vector<Piece> pieces_of(const Images &images) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < images.size(); ++i) {
    const uint32_t tiles = images[i].tile_count();
    for (uint32_t first = 0; first < tiles; first += kTilesPerPiece)
      pieces.push_back({i, first, std::min(kTilesPerPiece, tiles - first)});
  }
  return pieces;
}

}  // namespace

py::list decode_batch(const py::list &images, const py::object &out, const py::list &rois, int threads,
                      std::optional<bool> verify) {
  Images encoded = parse(images, rois);
  const bool reads = std::any_of(encoded.begin(), encoded.end(), [](const auto &image) { return image.is_file(); });
  run_in_threads(encoded.size(), reads ? threads : 1, [&](size_t i) { encoded[i].open(); });

  std::vector<py::array> outputs = outputs_for(encoded, out);
  size_t bytes = 0;
  for (const py::array &output : outputs) bytes += output.nbytes();
  std::vector<l3_output> destinations;
  for (py::array &output : outputs) destinations.push_back(destination(output, bytes >= L3_BYPASS_CACHE_SIZE));

  const std::vector<Piece> pieces = pieces_of(encoded);
  run_in_threads(pieces.size(), threads, [&](size_t i) {
    const auto &[image, first, tiles] = pieces[i];
    encoded[image].decode(destinations[image], decode_options(verify), first, tiles);
  });
  py::list result;
  for (const py::array &output : outputs) result.append(output);
  return result;
}

py::tuple read_header(const py::str &path) {
  const std::string name = fs_encoded(path);
  l3_info info;
  {
    py::gil_scoped_release release;
    const loader::OpenFile file(name);
    file.size();  // refuses what is no file
    info = peek_file(file, name);
  }
  return py::make_tuple(py::tuple(py::cast(shape_of(info, info.height, info.width))), dtype_of(info));
}

}  // namespace dali_l3::python
