#include "checksums.h"

#include "format/bytes.h"
#include "format/container.h"
#include "format/crc32.h"

namespace l3 {
namespace {

// Positions in the header (docs/format.md).
constexpr uint32_t kHeaderSizeAt = 10, kWidthAt = 12, kHeightAt = 16, kFlagsAt = 23, kMetadataSizeAt = 28,
                   kTableChecksumAt = 36, kMetadataChecksumAt = 40, kHeaderChecksumAt = 44;

bool has_header(const uint8_t *file, size_t size) {
  return size >= L3_HEADER_SIZE && !std::memcmp(file, kSignature, sizeof kSignature);
}

}  // namespace

void repair_header_checksum(uint8_t *file, size_t size) {
  if (!has_header(file, size)) return;
  const uint32_t header_size = load<uint16_t>(file + kHeaderSizeAt);
  if (header_size < L3_HEADER_SIZE || header_size > size) return;
  store<uint32_t>(file + kHeaderChecksumAt, 0);
  store(file + kHeaderChecksumAt, crc32c(file, header_size));
}

void repair_checksums(uint8_t *file, size_t size) {
  if (!has_header(file, size)) return;
  const uint64_t width = load<uint32_t>(file + kWidthAt), height = load<uint32_t>(file + kHeightAt);
  const uint64_t tiles = (width + L3_TILE - 1) / L3_TILE * ((height + L3_TILE - 1) / L3_TILE);
  const bool has_checksums = file[kFlagsAt] & 2;
  if (tiles < size) {
    const uint64_t offsets = load<uint16_t>(file + kHeaderSizeAt), checksums = offsets + 4 * (tiles + 1);
    const uint64_t metadata = checksums + (has_checksums ? 4 * tiles : 0),
                   payload = metadata + load<uint32_t>(file + kMetadataSizeAt);
    for (uint64_t tile = 0; has_checksums && tile < tiles && metadata <= size; tile++) {
      const uint8_t *entry = file + offsets + 4 * tile;
      const uint64_t start = payload + load<uint32_t>(entry), end = payload + load<uint32_t>(entry + 4);
      if (start <= end && end <= size) store(file + checksums + 4 * tile, crc32c(file + start, end - start));
    }
    if (metadata <= size && offsets >= L3_HEADER_SIZE)
      store(file + kTableChecksumAt, crc32c(file + offsets, metadata - offsets));
    if (payload <= size) store(file + kMetadataChecksumAt, crc32c(file + metadata, payload - metadata));
  }
  repair_header_checksum(file, size);
}

}  // namespace l3
