#include "batch.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "encoded_image.h"
#include "threads.h"

namespace dali_l3::python {
namespace {

// Tiles in a piece. The first pieces are large: threads that work on different images take less CPU time than threads
// that share one. The last are small, so that all threads end at about the same time; yet each is some 100 microseconds
// of work, beside which taking it costs nothing.
constexpr uint64_t kLeastTiles = 64, kMostTiles = 1024;

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

std::vector<Piece> pieces_of(const Images &images, int threads) {
  uint64_t left = 0;
  for (const EncodedImage &image : images) left += image.tile_count();
  std::vector<Piece> pieces;
  for (size_t i = 0; i < images.size(); ++i) {
    const uint32_t count = images[i].tile_count();
    for (uint32_t first = 0, tiles; first < count; first += tiles, left -= tiles) {
      const uint64_t share = std::clamp(left / 4 / uint64_t(threads), kLeastTiles, kMostTiles);
      tiles = uint32_t(std::min<uint64_t>(share, count - first));
      pieces.push_back({i, first, tiles});
    }
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

  const std::vector<Piece> pieces = pieces_of(encoded, threads);
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
