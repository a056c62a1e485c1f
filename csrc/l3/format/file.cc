#include "format/file.h"

#include "format/bytes.h"
#include "format/container.h"
#include "format/error.h"

namespace l3 {
namespace {

uint32_t offset_of(const l3_file &file, uint32_t tile) { return load<uint32_t>(file.offsets + 4 * size_t(tile)); }

}  // namespace

l3_info info_of_tiles(const l3_info &info) {
  l3_info described = info;
  if (info.prototype) described.profile = L3_PROFILE_RAW;
  return described;
}

uint64_t size_of_tiles(const l3_file &file, uint32_t first, uint32_t count) {
  if (file.info.prototype) return uint64_t(count) * kPrototypeTileSize;
  return offset_of(file, first + count) - offset_of(file, first);
}

l3_status FileTiles::copy(uint32_t first, uint32_t count, uint8_t *out, l3_error *error) {
  if (!file_.info.prototype) {
    std::memcpy(out, file_.payload + offset_of(file_, first), size_of_tiles(file_, first, count));
    return L3_OK;
  }
  decoded_ = out;
  first_decoded_ = first;
  decoded_count_ = count;
  for (uint32_t i = 0; i < count; i++, out += kPrototypeTileSize)
    if (l3_status status = prototype_.decode(first + i, out, error)) return status;
  return L3_OK;
}

l3_status FileTiles::read(uint32_t tile, TileBytes *found, l3_error *error) {
  if (!file_.info.prototype) return find_tile(file_, tile, verify_, found, error);
  if (tile - first_decoded_ >= decoded_count_)
    if (l3_status status = copy(tile, 1, scratch_, error)) return status;
  *found = {decoded_ + size_t(tile - first_decoded_) * kPrototypeTileSize, kPrototypeTileSize};
  return L3_OK;
}

}  // namespace l3

using namespace l3;

extern "C" l3_status l3_peek(const void *data, size_t size, l3_info *info, l3_error *error) {
  if (!info || (size && !data)) return fail(error, L3_ERROR_ARGUMENT, "data or the result is NULL");
  const uint8_t *bytes = static_cast<const uint8_t *>(data);
  return is_prototype(bytes, size) ? peek_prototype(bytes, size, info, error)
                                   : peek_container(bytes, size, info, error);
}

extern "C" l3_status l3_open(const void *data, size_t size, l3_file *file, l3_error *error) {
  if (!file) return fail(error, L3_ERROR_ARGUMENT, "the result is NULL");
  l3_info info;
  if (l3_status status = l3_peek(data, size, &info, error)) return status;
  if (size < info.file_size)
    return fail(error, L3_ERROR_TRUNCATED, "truncated: %zu of %llu bytes", size,
                static_cast<unsigned long long>(info.file_size));
  *file = {info, static_cast<const uint8_t *>(data), size, nullptr, nullptr, nullptr, nullptr};
  return info.prototype ? open_prototype(file, error) : open_container(file, error);
}
