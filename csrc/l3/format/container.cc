#include "format/container.h"

#include <algorithm>

#include "format/bytes.h"
#include "format/crc32.h"
#include "format/error.h"
#include "format/geometry.h"
#include "format/git_lfs.h"
#include "format/metadata.h"

namespace l3 {
namespace {

// Positions of the header's fields.
enum Field : uint32_t {
  kMajor = 8,
  kMinor = 9,
  kHeaderSize = 10,
  kWidth = 12,
  kHeight = 16,
  kChannels = 20,
  kBits = 21,
  kProfile = 22,
  kFlags = 23,
  kTileWidthExponent = 24,
  kTileHeightExponent = 25,
  kReserved = 26,
  kMetadataSize = 28,
  kPayloadSize = 32,
  kTableChecksum = 36,
  kMetadataChecksum = 40,
  kHeaderChecksum = 44,
};

enum Flag : uint8_t { kTwoDimensional = 1, kHasChecksums = 2, kKnownFlags = 3 };

uint32_t header_checksum(const uint8_t *header, uint32_t size) {
  constexpr uint8_t zero[4] = {};
  uint32_t crc = crc32c(header, kHeaderChecksum);
  crc = crc32c(zero, sizeof zero, crc);
  return crc32c(header + kHeaderChecksum + 4, size - kHeaderChecksum - 4, crc);
}

// The header's fields, of which only the profile, an enumeration, has been judged.
l3_info read_fields(const uint8_t *header) {
  l3_info info{};
  info.version_major = header[kMajor];
  info.version_minor = header[kMinor];
  info.width = load<uint32_t>(header + kWidth);
  info.height = load<uint32_t>(header + kHeight);
  info.channels = header[kChannels];
  info.bits = header[kBits];
  info.profile = static_cast<l3_profile>(header[kProfile]);
  info.two_dimensional = (header[kFlags] & kTwoDimensional) != 0;
  info.has_checksums = (header[kFlags] & kHasChecksums) != 0;
  info.metadata_size = load<uint32_t>(header + kMetadataSize);
  info.payload_size = load<uint32_t>(header + kPayloadSize);
  return info;
}

l3_status check_header(const uint8_t *header, size_t size, l3_info *info, l3_error *error) {
  if (header[kMajor] != kVersionMajor)
    return fail(error, L3_ERROR_UNSUPPORTED, "format version %u is not supported, only version %u", header[kMajor],
                kVersionMajor);
  uint32_t header_size = load<uint16_t>(header + kHeaderSize);
  if (header_size < L3_HEADER_SIZE || header_size % 4)
    return fail(error, L3_ERROR_CORRUPT, "header size %u is not a multiple of 4 from %d up", header_size,
                L3_HEADER_SIZE);
  // A longer header of a later minor version may lie beyond the bytes at hand when only the known part was asked for.
  if (size >= header_size) {
    if (header_checksum(header, header_size) != load<uint32_t>(header + kHeaderChecksum))
      return fail(error, L3_ERROR_CHECKSUM, "the header's checksum does not match");
  }
  // First what is unsupported, then limits, then contradictions.
  if (header[kProfile] > L3_PROFILE_DENSE)
    return fail(error, L3_ERROR_UNSUPPORTED, "unknown profile %u", header[kProfile]);
  *info = read_fields(header);
  if (info->profile == L3_PROFILE_DENSE)
    return fail(error, L3_ERROR_UNSUPPORTED, "profile `dense` is reserved for a later version");
  if (header[kFlags] & ~kKnownFlags) return fail(error, L3_ERROR_UNSUPPORTED, "unknown flags 0x%02x", header[kFlags]);
  if (header[kTileWidthExponent] != kTileExponent || header[kTileHeightExponent] != kTileExponent)
    return fail(error, L3_ERROR_UNSUPPORTED, "tiles of 2^%u by 2^%u pixels are not supported, only 64 by 64",
                header[kTileWidthExponent], header[kTileHeightExponent]);
  if (l3_status status = check_shape(info, error)) return status;
  if (info->metadata_size > L3_MAX_METADATA)
    return fail(error, L3_ERROR_LIMIT, "%u bytes of metadata exceed the limit of %d", info->metadata_size,
                L3_MAX_METADATA);
  if (info->two_dimensional && info->channels != 1)
    return fail(error, L3_ERROR_CORRUPT, "marked two-dimensional but has %u channels", info->channels);
  if (load<uint16_t>(header + kReserved)) return fail(error, L3_ERROR_CORRUPT, "reserved header bytes are not zero");
  if (info->metadata_size % 4)
    return fail(error, L3_ERROR_CORRUPT, "metadata size %u is not a multiple of 4", info->metadata_size);
  if (info->payload_size % 4)
    return fail(error, L3_ERROR_CORRUPT, "payload size %u is not a multiple of 4", info->payload_size);
  info->file_size = layout_of(*info, header_size).end;
  return L3_OK;
}

l3_status check_offsets(const l3_file &file, l3_error *error) {
  const uint32_t tiles = tile_count(file.info);
  if (uint32_t first = load<uint32_t>(file.offsets))
    return fail(error, L3_ERROR_CORRUPT, "the first tile's offset is %u, not 0", first);
  uint32_t previous = 0;
  for (uint32_t tile = 1; tile <= tiles; tile++) {
    uint32_t offset = load<uint32_t>(file.offsets + 4 * size_t(tile));
    if (offset <= previous || offset % 4)
      return fail(error, L3_ERROR_CORRUPT, "offset %u of tile %u does not follow %u in steps of 4", offset, tile,
                  previous);
    previous = offset;
  }
  if (previous != file.info.payload_size)
    return fail(error, L3_ERROR_CORRUPT, "the offsets end at %u, the payload at %u", previous, file.info.payload_size);
  return L3_OK;
}

}  // namespace

Layout layout_of(const l3_info &info, uint32_t header_size) {
  const uint64_t tiles = tile_count(info);
  Layout layout;
  layout.offsets = header_size;
  layout.checksums = layout.offsets + 4 * (tiles + 1);
  layout.metadata = layout.checksums + (info.has_checksums ? 4 * tiles : 0);
  layout.payload = layout.metadata + info.metadata_size;
  layout.end = layout.payload + info.payload_size + kTrailerSize;
  return layout;
}

l3_status check_shape(l3_info *info, l3_error *error) {
  if (info->bits != 8 && info->bits != 16)
    return fail(error, L3_ERROR_UNSUPPORTED, "a depth of %u: must be 8 or 16 bits per sample", info->bits);
  if (info->width < 1 || info->height < 1 || info->width > L3_MAX_DIMENSION || info->height > L3_MAX_DIMENSION)
    return fail(error, L3_ERROR_LIMIT, "%u x %u pixels: width and height must be 1 to %d", info->width, info->height,
                L3_MAX_DIMENSION);
  if (info->channels < 1 || info->channels > L3_MAX_CHANNELS)
    return fail(error, L3_ERROR_LIMIT, "%u channels: must be 1 to %d", info->channels, L3_MAX_CHANNELS);
  uint64_t raw_size = uint64_t(info->width) * info->height * pixel_size(*info);
  if (raw_size > L3_MAX_RAW_SIZE)
    return fail(error, L3_ERROR_LIMIT, "%u x %u pixels take %llu bytes, more than the limit of %llu", info->width,
                info->height, static_cast<unsigned long long>(raw_size),
                static_cast<unsigned long long>(L3_MAX_RAW_SIZE));
  info->tiles_x = (info->width + L3_TILE - 1) / L3_TILE;
  info->tiles_y = (info->height + L3_TILE - 1) / L3_TILE;
  return L3_OK;
}

void write_header(const l3_info &info, uint8_t *file) {
  const Layout layout = layout_of(info);
  std::memset(file, 0, L3_HEADER_SIZE);
  std::memcpy(file, kSignature, sizeof kSignature);
  file[kMajor] = kVersionMajor;
  file[kMinor] = kVersionMinor;
  store<uint16_t>(file + kHeaderSize, L3_HEADER_SIZE);
  store(file + kWidth, info.width);
  store(file + kHeight, info.height);
  file[kChannels] = uint8_t(info.channels);
  file[kBits] = uint8_t(info.bits);
  file[kProfile] = uint8_t(info.profile);
  file[kFlags] = uint8_t((info.two_dimensional ? kTwoDimensional : 0) | (info.has_checksums ? kHasChecksums : 0));
  file[kTileWidthExponent] = file[kTileHeightExponent] = kTileExponent;
  store(file + kMetadataSize, info.metadata_size);
  store(file + kPayloadSize, info.payload_size);
  store(file + kTableChecksum, crc32c(file + layout.offsets, layout.metadata - layout.offsets));
  store(file + kMetadataChecksum, crc32c(file + layout.metadata, info.metadata_size));
  store(file + kHeaderChecksum, header_checksum(file, L3_HEADER_SIZE));
}

l3_status peek_container(const uint8_t *bytes, size_t size, l3_info *info, l3_error *error) {
  if (!size) return fail(error, L3_ERROR_TRUNCATED, "empty");
  if (is_lfs_pointer(bytes, size)) return fail(error, L3_ERROR_SIGNATURE, "it %s", kIsLfsPointer);
  if (std::memcmp(bytes, kSignature, std::min(size, sizeof kSignature)))
    return fail(error, L3_ERROR_SIGNATURE, "not an L3 file: the signature does not match");
  if (size < L3_HEADER_SIZE)
    return fail(error, L3_ERROR_TRUNCATED, "truncated: %zu of the header's %d bytes", size, L3_HEADER_SIZE);
  return check_header(bytes, size, info, error);
}

l3_status open_container(l3_file *file, l3_error *error) {
  const uint8_t *const bytes = file->data;
  const Layout layout = layout_of(file->info, load<uint16_t>(bytes + kHeaderSize));
  if (crc32c(bytes + layout.offsets, layout.metadata - layout.offsets) != load<uint32_t>(bytes + kTableChecksum))
    return fail(error, L3_ERROR_CHECKSUM, "the tables' checksum does not match");
  file->offsets = bytes + layout.offsets;
  file->checksums = file->info.has_checksums ? bytes + layout.checksums : nullptr;
  file->metadata = bytes + layout.metadata;
  file->payload = bytes + layout.payload;
  return check_offsets(*file, error);
}

}  // namespace l3

using namespace l3;

extern "C" l3_status l3_next_metadata(const l3_file *file, size_t *cursor, l3_metadata *entry, l3_error *error) {
  *entry = {};
  const uint32_t size = file->info.metadata_size;
  if (*cursor == 0 && file->metadata) {
    if (crc32c(file->metadata, size) != load<uint32_t>(file->data + kMetadataChecksum))
      return fail(error, L3_ERROR_CHECKSUM, "the metadata's checksum does not match");
    if (l3_status status = check_metadata_area(file->metadata, size, error)) return status;
  }
  return read_metadata_entry(file->metadata, size, cursor, entry, error);
}
