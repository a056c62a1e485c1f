#include "format/prototype.h"

#include <algorithm>

#include "format/bytes.h"
#include "format/container.h"
#include "format/error.h"
#include "format/geometry.h"
#include "format/paper.h"

namespace l3 {
namespace {

constexpr uint8_t kPrototypeSignature[4] = {'L', 'L', 'L', '.'};
constexpr uint32_t kPrototypeHeader = 13, kPrototypeChannels = 3;

uint64_t patch_count(const l3_info &info) { return uint64_t(tile_count(info)) * kPrototypeChannels; }

uint32_t patch_size(const l3_file &file, uint64_t patch) { return load<uint16_t>(file.offsets + 2 * patch); }

// Bits `count` (at most 16) from bit `position` of a row.
uint32_t read_bits(const uint8_t *row, uint32_t position, uint32_t count) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < count; i++) bits |= (row[(position + i) / 8] >> (position + i) % 8 & 1u) << i;
  return bits;
}

const char *decode_patch(const uint8_t *patch, uint32_t size, uint8_t *plane) {
  const uint8_t *row = patch, *const end = patch + size;
  for (uint32_t y = 0; y < L3_TILE; y++) {
    if (end - row < 2) return "too short for its rows";
    const uint32_t width = read_bits(row, 0, 4), base = read_bits(row, 4, 8);
    if (width > 8) return "a row wider than 8 bits";
    if (uint32_t(end - row) < 8 * width + 2) return "too short for its rows";
    uint8_t prediction[L3_TILE];
    predict_paper_row(plane, y, L3_TILE, prediction);
    for (uint32_t x = 0; x < L3_TILE; x++)
      plane[y * L3_TILE + x] = uint8_t(read_bits(row, 12 + x * width, width) + base + prediction[x]);
    row += 8 * width + 2;
  }
  return row == end ? nullptr : "longer than its rows";
}

}  // namespace

bool is_prototype(const uint8_t *data, size_t size) {
  return size >= sizeof kPrototypeSignature && !std::memcmp(data, kPrototypeSignature, sizeof kPrototypeSignature);
}

l3_status peek_prototype(const uint8_t *data, size_t size, l3_info *info, l3_error *error) {
  if (size < kPrototypeHeader)
    return fail(error, L3_ERROR_TRUNCATED, "truncated: %zu of a prototype header's %u bytes", size, kPrototypeHeader);
  *info = {};
  info->prototype = 1;
  info->width = load<uint32_t>(data + 4);  // a negative one is beyond the limit
  info->height = load<uint32_t>(data + 8);
  info->channels = kPrototypeChannels;
  info->bits = 8;
  info->profile = L3_PROFILE_PAPER;
  if (data[12] != L3_TILE)
    return fail(error, L3_ERROR_UNSUPPORTED, "a prototype file whose patch size is %u, not 64", data[12]);
  if (info->width % L3_TILE || info->height % L3_TILE)
    return fail(error, L3_ERROR_UNSUPPORTED,
                "a prototype file of %u x %u pixels does not hold its whole image: the prototype drops what lies "
                "beyond multiples of 64",
                info->width, info->height);
  if (l3_status status = check_shape(info, error)) return status;
  info->file_size = kPrototypeHeader + 2 * patch_count(*info);  // and the patches, whose sizes only the table tells
  return L3_OK;
}

l3_status open_prototype(l3_file *file, l3_error *error) {
  const uint64_t patches = patch_count(file->info);
  file->offsets = file->data + kPrototypeHeader;
  file->payload = file->offsets + 2 * patches;
  uint64_t payload_size = 0;
  for (uint64_t patch = 0; patch < patches; patch++) payload_size += patch_size(*file, patch);
  file->info.file_size += payload_size;
  file->info.payload_size = uint32_t(payload_size);  // fits unless patches are longer than any that decodes
  if (file->size < file->info.file_size)
    return fail(error, L3_ERROR_TRUNCATED, "truncated: %zu of %llu bytes", file->size,
                static_cast<unsigned long long>(file->info.file_size));
  return L3_OK;
}

l3_status PrototypeTiles::decode(uint32_t tile, uint8_t *pixels, l3_error *error) {
  const uint32_t tiles = tile_count(file_.info);
  uint8_t plane[kPlaneSize];
  for (uint32_t c = 0; c < kPrototypeChannels; c++) {
    Cursor &cursor = cursors_[c];
    if (c && cursor.patch < cursors_[c - 1].patch)
      cursor = cursors_[c - 1];  // to begin with: channels follow each other
    for (const uint64_t patch = uint64_t(c) * tiles + tile; cursor.patch < patch; cursor.patch++)
      cursor.position += patch_size(file_, cursor.patch);
    if (const char *problem = decode_patch(file_.payload + cursor.position, patch_size(file_, cursor.patch), plane))
      return fail(error, L3_ERROR_CORRUPT, "patch %u of channel %u: %s", tile, c, problem);
    for (uint32_t i = 0; i < kPlaneSize; i++) pixels[kPrototypeChannels * i + c] = plane[i];
  }
  return L3_OK;
}

}  // namespace l3
