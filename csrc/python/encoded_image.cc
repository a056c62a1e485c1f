#include "encoded_image.h"

#include <algorithm>
#include <span>

#include "loader/checks/read_at.h"
#include "loader/input/file_reading.h"

namespace dali_l3::python {
namespace {

using loader::OpenFile;

void read(const OpenFile &file, const std::string &path, uint64_t offset, std::span<uint8_t> bytes) {
  if (file.read_at(offset, bytes) != bytes.size()) loader::fail_file(path, "changed its size while it was read");
}

// Reads the tiles that a region touches to where they belong in the file's memory.
void read_tiles(const OpenFile &open, const std::string &path, const l3_file &file, const l3_rect &region,
                uint8_t *memory) {
  const auto start_of = [&](uint32_t tile) { return loader::little_endian({file.offsets + 4 * size_t{tile}, 4}); };
  const uint64_t payload = file.payload - file.data;
  const uint32_t left = region.x / L3_TILE, right = (region.x + region.width - 1) / L3_TILE;
  const uint32_t top = region.y / L3_TILE, bottom = (region.y + region.height - 1) / L3_TILE;
  for (uint32_t row = top; row <= bottom; ++row) {
    const uint64_t start = start_of(row * file.info.tiles_x + left),
                   end = start_of(row * file.info.tiles_x + right + 1);
    read(open, path, payload + start, {memory + payload + start, end - start});
  }
}

}  // namespace

l3_info peek_file(const loader::OpenFile &file, const std::string &path) {
  uint8_t head[L3_HEADER_SIZE];
  const size_t size = file.read_at(0, head);
  l3_info info;
  l3_error error{};
  if (const l3_status status = l3_peek(head, size, &info, &error)) throw Failure(status, path + ": " + error.message);
  return info;
}

std::string fs_encoded(const py::handle &path) {
  const auto bytes = py::reinterpret_steal<py::bytes>(PyUnicode_EncodeFSDefault(path.ptr()));
  if (!bytes) throw py::error_already_set();
  std::string text = bytes;
  if (text.find('\0') != std::string::npos) throw py::value_error("embedded null character in a path");
  return text;
}

EncodedImage::EncodedImage(const py::handle &image, size_t number, const std::optional<Roi> &roi) : roi_(roi) {
  if (py::isinstance<py::str>(image)) {
    name_ = fs_encoded(image);
  } else {
    name_ = "image " + std::to_string(number);
    bytes_.emplace(image);
  }
}

void EncodedImage::open() {
  if (!bytes_) return open_file();
  open_bytes(bytes_->data(), bytes_->size());
}

void EncodedImage::open_bytes(const void *data, size_t size) {
  l3_error error{};
  if (const l3_status status = l3_open(data, size, &file_, &error)) throw Failure(status, named(error.message));
  try {
    region_ = region_of(file_.info, roi_);
  } catch (const Failure &failure) {
    throw Failure(failure.status, named(failure.what()));
  }
}

void EncodedImage::open_file() {
  const OpenFile file(name_);
  const uint64_t size = file.size();
  loader::check_size(name_, size);
  const l3_info info = peek_file(file, name_);

  // The whole file, unless there is a region, and tables that say where its tiles are.
  const uint64_t used = info.prototype ? size : std::min(size, info.file_size);
  const bool in_parts = roi_ && !info.prototype && used == info.file_size;
  const uint64_t head = in_parts ? used - info.payload_size : used;
  memory_ = std::make_unique_for_overwrite<uint8_t[]>(used);
  read(file, name_, 0, {memory_.get(), head});
  open_bytes(memory_.get(), used);
  if (in_parts) read_tiles(file, name_, file_, region_, memory_.get());
}

void EncodedImage::decode(const l3_output &output, uint32_t options, uint32_t first, uint32_t count) const {
  l3_error error{};
  const l3_status status = l3_decode_tiles(&file_, &region_, &output, options, first, count, &error);
  if (status) throw Failure(status, named(error.message));
}

}  // namespace dali_l3::python
