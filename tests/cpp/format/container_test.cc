// The container: every field of the header, the tables, metadata, and how much of a file must be there.
#include "format/container.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "checksums.h"
#include "format/bytes.h"
#include "images.h"
#include "testing.h"

using namespace l3;

namespace {

constexpr uint32_t kOffsetsAt = L3_HEADER_SIZE;

// A stored image of four tiles, whose layout is plain: streams of 4096, 64, 128 and 4 bytes.
Bytes four_tiles(const l3_encode_options &options = encode_options(L3_PROFILE_RAW)) {
  Random random(1);
  return encode(make_image(random, 65, 66, 1, 8, Kind::kSlope), options);
}

template <typename Value>
Bytes with(Bytes file, uint32_t at, Value value) {
  store(file.data() + at, value);
  return file;
}

l3_status open_status(const Bytes &file) {
  l3_file parsed;
  l3_error error{};
  const l3_status status = l3_open(file.data(), file.size(), &parsed, &error);
  if (status) {
    CHECK_EQUAL(error.status, status);
    CHECK(error.message[0]);
  }
  return status;
}

// One value of a header field; the file's checksums are right.
struct ForgedField {
  const char *name;
  uint32_t at, size, value;
  l3_status status;
};

constexpr ForgedField kForgedFields[] = {
    {"signature", 0, 1, 0x88, L3_ERROR_SIGNATURE},
    {"signature's end", 7, 1, 0x0D, L3_ERROR_SIGNATURE},
    {"major version", 8, 1, 0, L3_ERROR_UNSUPPORTED},
    {"major version", 8, 1, 2, L3_ERROR_UNSUPPORTED},
    {"minor version", 9, 1, 200, L3_OK},
    {"header size", 10, 2, 0, L3_ERROR_CORRUPT},
    {"header size", 10, 2, 44, L3_ERROR_CORRUPT},
    {"header size", 10, 2, 49, L3_ERROR_CORRUPT},
    {"header size", 10, 2, 0xFFFC, L3_ERROR_TRUNCATED},
    {"width", 12, 4, 0, L3_ERROR_LIMIT},
    {"width", 12, 4, (1 << 20) + 1, L3_ERROR_LIMIT},
    {"width", 12, 4, 0xFFFFFFFF, L3_ERROR_LIMIT},
    {"width", 12, 4, 1 << 20, L3_ERROR_TRUNCATED},
    {"height", 16, 4, 0, L3_ERROR_LIMIT},
    {"height", 16, 4, (1 << 20) + 1, L3_ERROR_LIMIT},
    {"height", 16, 4, 0x80000000, L3_ERROR_LIMIT},
    {"height", 16, 4, 1 << 20, L3_ERROR_TRUNCATED},
    {"channels", 20, 1, 0, L3_ERROR_LIMIT},
    {"channels", 20, 1, 5, L3_ERROR_LIMIT},
    {"bits", 21, 1, 0, L3_ERROR_UNSUPPORTED},
    {"bits", 21, 1, 12, L3_ERROR_UNSUPPORTED},
    {"bits", 21, 1, 32, L3_ERROR_UNSUPPORTED},
    {"profile", 22, 1, 3, L3_ERROR_UNSUPPORTED},
    {"profile", 22, 1, 255, L3_ERROR_UNSUPPORTED},
    {"flags", 23, 1, 2, L3_OK},
    {"flags", 23, 1, 3, L3_OK},
    {"flags", 23, 1, 2 + 4, L3_ERROR_UNSUPPORTED},
    {"flags", 23, 1, 2 + 128, L3_ERROR_UNSUPPORTED},
    {"tile width exponent", 24, 1, 5, L3_ERROR_UNSUPPORTED},
    {"tile height exponent", 25, 1, 7, L3_ERROR_UNSUPPORTED},
    {"reserved", 26, 2, 1, L3_ERROR_CORRUPT},
    {"reserved", 26, 2, 0x100, L3_ERROR_CORRUPT},
    {"metadata size", 28, 4, 2, L3_ERROR_CORRUPT},
    {"metadata size", 28, 4, L3_MAX_METADATA, L3_ERROR_TRUNCATED},
    {"metadata size", 28, 4, L3_MAX_METADATA + 4, L3_ERROR_LIMIT},
    {"metadata size", 28, 4, 0xFFFFFFFC, L3_ERROR_LIMIT},
    {"payload size", 32, 4, 0, L3_ERROR_CORRUPT},
    {"payload size", 32, 4, 4096 + 64 + 128 + 4 - 4, L3_ERROR_CORRUPT},
    {"payload size", 32, 4, 4096 + 64 + 128 + 4 + 2, L3_ERROR_CORRUPT},
    {"payload size", 32, 4, 0xFFFFFFFC, L3_ERROR_TRUNCATED},
};

Bytes forged(const Bytes &file, const ForgedField &field) {
  Bytes bytes = file;
  std::memcpy(bytes.data() + field.at, &field.value, field.size);
  repair_checksums(bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

TEST(header_of_a_file) {
  const Bytes file = four_tiles();
  l3_info info;
  CHECK_EQUAL(l3_peek(file.data(), L3_HEADER_SIZE, &info, nullptr), L3_OK);
  CHECK_EQUAL(info.width, 65u);
  CHECK_EQUAL(info.height, 66u);
  CHECK_EQUAL(info.channels, 1u);
  CHECK_EQUAL(info.bits, 8u);
  CHECK_EQUAL(info.profile, L3_PROFILE_RAW);
  CHECK_EQUAL(info.two_dimensional, 0u);
  CHECK_EQUAL(info.has_checksums, 1u);
  CHECK_EQUAL(info.prototype, 0u);
  CHECK_EQUAL(info.version_major, 1u);
  CHECK_EQUAL(info.version_minor, 0u);
  CHECK_EQUAL(info.tiles_x, 2u);
  CHECK_EQUAL(info.tiles_y, 2u);
  CHECK_EQUAL(info.metadata_size, 0u);
  CHECK_EQUAL(info.payload_size, 4096u + 64 + 128 + 4);
  CHECK_EQUAL(info.file_size, file.size());
  CHECK_EQUAL(file.size(), L3_HEADER_SIZE + 4u * 5 + 4u * 4 + info.payload_size + 16);
}

TEST(every_field_of_the_header) {
  const Bytes file = four_tiles();
  for (const ForgedField &field : kForgedFields) {
    const testing::Context context("%s = %u", field.name, field.value);
    const Bytes bytes = forged(file, field);
    CHECK_EQUAL(open_status(bytes), field.status);
    if (field.status == L3_ERROR_CORRUPT || field.status == L3_ERROR_TRUNCATED)
      continue;  // may take more than the header to see
    l3_info info;
    CHECK_EQUAL(l3_peek(bytes.data(), L3_HEADER_SIZE, &info, nullptr), field.status);
  }
}

// The same order as docs/format.md: what is unsupported, then limits, then contradictions, then the file's size.
TEST(the_first_of_several_faults) {
  Bytes file = four_tiles();
  for (const ForgedField &field :
       {ForgedField{"payload size", 32, 4, 0x7FFFFFFC, L3_ERROR_TRUNCATED},
        ForgedField{"reserved", 26, 2, 1, L3_ERROR_CORRUPT}, ForgedField{"width", 12, 4, 0, L3_ERROR_LIMIT},
        ForgedField{"profile", 22, 1, 3, L3_ERROR_UNSUPPORTED}}) {
    file = forged(file, field);
    CHECK_EQUAL(open_status(file), field.status);
  }
  file[44] ^= 1;  // of the header's checksum
  CHECK_EQUAL(open_status(file), L3_ERROR_CHECKSUM);
  file[10] ^= 1;  // of the header's size
  CHECK_EQUAL(open_status(file), L3_ERROR_CORRUPT);
  file[8] ^= 1;  // of the major version
  CHECK_EQUAL(open_status(file), L3_ERROR_UNSUPPORTED);
  file.resize(L3_HEADER_SIZE - 1);
  CHECK_EQUAL(open_status(file), L3_ERROR_TRUNCATED);
  file[7] ^= 1;  // of the signature
  CHECK_EQUAL(open_status(file), L3_ERROR_SIGNATURE);
}

TEST(two_dimensional_with_channels) {
  Random random(2);
  const Bytes file = encode(make_image(random, 5, 5, 3, 8, Kind::kSlope), encode_options(L3_PROFILE_RAW));
  CHECK_EQUAL(open_status(forged(file, {"flags", 23, 1, 3, L3_ERROR_CORRUPT})), L3_ERROR_CORRUPT);
}

TEST(raw_size_limit) {
  const Bytes file = four_tiles();
  const Bytes least_too_large =
      forged(forged(file, {"width", 12, 4, 1 << 15, L3_OK}), {"height", 16, 4, (1 << 16) + 1, L3_OK});
  CHECK_EQUAL(open_status(least_too_large), L3_ERROR_LIMIT);
  const Bytes largest = forged(forged(file, {"width", 12, 4, 1 << 15, L3_OK}), {"height", 16, 4, 1 << 16, L3_OK});
  CHECK_EQUAL(open_status(largest), L3_ERROR_TRUNCATED);
}

TEST(every_bit_of_the_header_is_covered) {
  const Bytes file = four_tiles();
  for (uint32_t bit = 0; bit < 8 * L3_HEADER_SIZE; bit++) {
    const testing::Context context("bit %u", bit);
    Bytes bytes = file;
    bytes[bit / 8] = uint8_t(bytes[bit / 8] ^ 1u << bit % 8);
    CHECK(open_status(bytes) != L3_OK);
  }
}

TEST(longer_header) {
  const Bytes file = four_tiles();
  Bytes longer(file.size() + 12, 0xEE);
  std::copy_n(file.begin(), L3_HEADER_SIZE, longer.begin());
  std::copy(file.begin() + L3_HEADER_SIZE, file.end(), longer.begin() + L3_HEADER_SIZE + 12);
  longer[9] = 1;
  longer[10] = L3_HEADER_SIZE + 12;
  CHECK_EQUAL(open_status(longer), L3_ERROR_CHECKSUM);
  repair_header_checksum(longer.data(), longer.size());
  CHECK_EQUAL(open_status(longer), L3_OK);
  CHECK(decode(longer, nullptr, L3_VERIFY).pixels == decode(file).pixels);
  longer[L3_HEADER_SIZE + 11] = 0;
  CHECK_EQUAL(open_status(longer), L3_ERROR_CHECKSUM);
}

TEST(offset_table) {
  const Bytes file = four_tiles();
  constexpr uint32_t right[] = {0, 4096, 4160, 4288, 4292};
  for (uint32_t i = 0; i < 5; i++) CHECK_EQUAL(load<uint32_t>(file.data() + kOffsetsAt + 4 * i), right[i]);
  const auto status_with = [&](uint32_t entry, uint32_t offset) {
    Bytes bytes = with(file, kOffsetsAt + 4 * entry, offset);
    CHECK_EQUAL(open_status(bytes), L3_ERROR_CHECKSUM);
    repair_checksums(bytes.data(), bytes.size());
    return open_status(bytes);
  };
  CHECK_EQUAL(status_with(0, 4), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(1, 0), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(1, 4160), L3_ERROR_CORRUPT);  // an empty tile
  CHECK_EQUAL(status_with(1, 4164), L3_ERROR_CORRUPT);  // past the next
  CHECK_EQUAL(status_with(2, 4162), L3_ERROR_CORRUPT);  // between words
  CHECK_EQUAL(status_with(3, 4296), L3_ERROR_CORRUPT);  // past the payload
  CHECK_EQUAL(status_with(3, 0xFFFFFFFC), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(4, 4296), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(4, 4288), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(2, 4164), L3_OK);  // sound as a table, though the tiles' sizes are wrong
}

TEST(truncated_files) {
  for (const bool checksums : {false, true}) {
    const Bytes file = four_tiles(encode_options(L3_PROFILE_FAST, 2, checksums));
    for (size_t size = 0; size < file.size(); size++) {
      const testing::Context context("%zu of %zu bytes", size, file.size());
      CHECK_EQUAL(open_status(Bytes(file.begin(), file.begin() + ptrdiff_t(size))), L3_ERROR_TRUNCATED);
    }
  }
}

TEST(bytes_after_the_file) {
  Bytes file = four_tiles();
  const Bytes pixels = decode(file).pixels;
  file.resize(file.size() + 100, 0xEE);
  CHECK(decode(file, nullptr, L3_VERIFY).pixels == pixels);
}

TEST(metadata) {
  const std::string long_key(255, 'k'), value = "value";
  const l3_metadata entries[] = {{"icc", 3, value.data(), value.size()},
                                 {"exif", 4, nullptr, 0},
                                 {long_key.data(), long_key.size(), value.data(), 1}};
  l3_encode_options options = encode_options(L3_PROFILE_RAW);
  options.metadata = entries;
  options.metadata_count = 3;
  Bytes file = four_tiles(options);
  l3_file parsed;
  CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
  CHECK_EQUAL(parsed.info.metadata_size, 8u + 8 + 8 + 4 + 8 + 256);
  size_t cursor = 0;
  l3_metadata entry;
  for (const l3_metadata &expected : entries) {
    CHECK_EQUAL(l3_next_metadata(&parsed, &cursor, &entry, nullptr), L3_OK);
    CHECK_EQUAL(std::string(entry.key, entry.key_size), std::string(expected.key, expected.key_size));
    CHECK_EQUAL(entry.value_size, expected.value_size);
    CHECK(!entry.value_size || !std::memcmp(entry.value, expected.value, expected.value_size));
  }
  for (int again = 0; again < 2; again++) {
    CHECK_EQUAL(l3_next_metadata(&parsed, &cursor, &entry, nullptr), L3_OK);
    CHECK(!entry.key);
  }

  const size_t area = size_t(parsed.metadata - file.data());
  file[area + 20] ^= 1;
  CHECK_EQUAL(decode(file, nullptr, L3_VERIFY).status, L3_OK);  // pixels do not depend on metadata
  cursor = 0;
  CHECK_EQUAL(l3_next_metadata(&parsed, &cursor, &entry, nullptr), L3_ERROR_CHECKSUM);
}

TEST(forged_metadata) {
  const l3_metadata entries[] = {{"key", 3, "value", 5}, {"next", 4, "", 0}};
  l3_encode_options options = encode_options(L3_PROFILE_RAW);
  options.metadata = entries;
  options.metadata_count = 2;
  const Bytes file = four_tiles(options);
  const uint32_t area = kOffsetsAt + 4 * 5 + 4 * 4;
  const auto status_with = [&](uint32_t at, uint32_t size) {
    Bytes bytes = with(file, area + at, size);
    repair_checksums(bytes.data(), bytes.size());
    l3_file parsed;
    CHECK_EQUAL(l3_open(bytes.data(), bytes.size(), &parsed, nullptr), L3_OK);
    l3_metadata entry;
    l3_status status = L3_OK;
    size_t cursor = 0;
    do {
      status = l3_next_metadata(&parsed, &cursor, &entry, nullptr);
      CHECK(entry.value_size <= parsed.info.metadata_size);
    } while (!status && entry.key);
    return status;
  };
  CHECK_EQUAL(status_with(0, 3), L3_OK);
  CHECK_EQUAL(status_with(0, 0), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(0, 256), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(0, 0xFFFFFFFF), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(4, 0xFFFFFFFD), L3_ERROR_CORRUPT);  // whose sum with the key's size is 0 modulo 2^32
  CHECK_EQUAL(status_with(4, 18), L3_ERROR_CORRUPT);
  CHECK_EQUAL(status_with(4, 17), L3_OK);  // takes in the whole area
  CHECK_EQUAL(status_with(16, 5), L3_ERROR_CORRUPT);
}

// A stored image with these entries, put together without a look at them.
Bytes with_entries(const std::vector<std::pair<std::string, std::string>> &entries) {
  Bytes area;
  for (const auto &[key, value] : entries) {
    const size_t start = area.size(), size = key.size() + value.size();
    area.resize(start + 8 + (size + 3) / 4 * 4);
    store(area.data() + start, uint32_t(key.size()));
    store(area.data() + start + 4, uint32_t(value.size()));
    std::copy(key.begin(), key.end(), area.begin() + ptrdiff_t(start + 8));
    std::copy(value.begin(), value.end(), area.begin() + ptrdiff_t(start + 8 + key.size()));
  }
  Bytes file = four_tiles();
  file.insert(file.begin() + kOffsetsAt + 4 * 5 + 4 * 4, area.begin(), area.end());
  store(file.data() + 28, uint32_t(area.size()));
  repair_checksums(file.data(), file.size());
  return file;
}

// The first call of l3_next_metadata.
l3_status metadata_status(const Bytes &file) {
  l3_file parsed;
  CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
  size_t cursor = 0;
  l3_metadata entry;
  l3_error error{};
  const l3_status status = l3_next_metadata(&parsed, &cursor, &entry, &error);
  CHECK_EQUAL(error.status, status);
  CHECK_EQUAL(cursor == 0, status != L3_OK);
  return status;
}

l3_status encode_status(const std::vector<std::pair<std::string, std::string>> &entries) {
  Random random(1);
  const Image image = make_image(random, 5, 5, 1, 8, Kind::kSlope);
  const l3_image view = view_of(image);
  std::vector<l3_metadata> metadata;
  for (const auto &[key, value] : entries) metadata.push_back({key.data(), key.size(), value.data(), value.size()});
  l3_encode_options options = encode_options(L3_PROFILE_FAST);
  options.metadata = metadata.data();
  options.metadata_count = metadata.size();
  const size_t bound = l3_encode_bound(&view, &options);
  Bytes file(bound);
  size_t written = 0;
  const l3_status status = l3_encode(&view, &options, file.data(), file.size(), &written, nullptr);
  CHECK_EQUAL(bound == 0, status != L3_OK);
  return status;
}

TEST(metadata_keys_are_utf8) {
  using namespace std::string_literals;
  const std::string good[] = {
      "\0"s,           "\x7F"s,         "\xC2\x80"s,         "\xDF\xBF"s,         "\xE0\xA0\x80"s,     "\xED\x9F\xBF"s,
      "\xEE\x80\x80"s, "\xEF\xBF\xBF"s, "\xF0\x90\x80\x80"s, "\xF3\xBF\xBF\xBF"s, "\xF4\x8F\xBF\xBF"s, "k\xC3\xA4s"s};
  for (const std::string &key : good) {
    CHECK_EQUAL(metadata_status(with_entries({{"first", ""}, {key, "value"}})), L3_OK);
    CHECK_EQUAL(encode_status({{"first", ""}, {key, "value"}}), L3_OK);
  }
  // Lone, over-long, of a surrogate, past U+10FFFF, without the rest.
  const std::string bad[] = {"\x80"s,
                             "\xBF"s,
                             "\xC0\x80"s,
                             "\xC1\xBF"s,
                             "\xE0\x9F\xBF"s,
                             "\xED\xA0\x80"s,
                             "\xED\xBF\xBF"s,
                             "\xF0\x8F\xBF\xBF"s,
                             "\xF4\x90\x80\x80"s,
                             "\xF5\x80\x80\x80"s,
                             "\xFE"s,
                             "\xFF"s,
                             "\xC3"s,
                             "\xC3("s,
                             "\xE2\x82"s,
                             "\xE2\x82("s,
                             "\xF0\x9F\x98"s,
                             "\xF0\x9F\x98("s};
  for (const std::string &key : bad)
    for (const std::string &whole : {key, "k" + key, key + "k"}) {
      CHECK_EQUAL(metadata_status(with_entries({{"first", ""}, {whole, "value"}})), L3_ERROR_CORRUPT);
      CHECK_EQUAL(encode_status({{"first", ""}, {whole, "value"}}), L3_ERROR_ARGUMENT);
    }
  // The rest of a character must not come from what follows the key.
  CHECK_EQUAL(metadata_status(with_entries({{"\xC3", "\xA4"}})), L3_ERROR_CORRUPT);
}

TEST(metadata_keys_differ) {
  const std::vector<std::pair<std::string, std::string>> differ = {
      {"k", ""}, {"K", ""}, {"kk", ""}, {"\xC3\xA9", ""}, {"e\xCC\x81", ""}};
  CHECK_EQUAL(metadata_status(with_entries(differ)), L3_OK);
  CHECK_EQUAL(encode_status(differ), L3_OK);
  for (const auto &entry : differ) {
    auto repeated = differ;
    repeated.push_back({entry.first, "another value"});
    CHECK_EQUAL(metadata_status(with_entries(repeated)), L3_ERROR_CORRUPT);
    CHECK_EQUAL(encode_status(repeated), L3_ERROR_ARGUMENT);
  }
}

// Keys are compared in more or less the time that it takes to sort them: areas of 16 MB can hold a million.
TEST(many_metadata_keys) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (uint32_t i = 0; i < 200000; i++) {
    const uint32_t number = i * 2654435761u;  // in no order; the lower 28 bits once each
    entries.push_back(
        {{char(number & 127), char(number >> 7 & 127), char(number >> 14 & 127), char(number >> 21 & 127)}, ""});
  }
  CHECK_EQUAL(metadata_status(with_entries(entries)), L3_OK);
  CHECK_EQUAL(encode_status(entries), L3_OK);
  entries.push_back(entries[1000]);
  CHECK_EQUAL(metadata_status(with_entries(entries)), L3_ERROR_CORRUPT);
  CHECK_EQUAL(encode_status(entries), L3_ERROR_ARGUMENT);
}

TEST(metadata_to_encode) {
  using namespace std::string_literals;
  CHECK_EQUAL(encode_status({}), L3_OK);
  CHECK_EQUAL(encode_status({{"", "value"}}), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(encode_status({{std::string(255, 'k'), ""}}), L3_OK);
  CHECK_EQUAL(encode_status({{std::string(256, 'k'), ""}}), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(encode_status({{"k", std::string(L3_MAX_METADATA - 9, 'v')}}), L3_OK);
  CHECK_EQUAL(encode_status({{"k", std::string(L3_MAX_METADATA - 8, 'v')}}), L3_ERROR_LIMIT);
  CHECK_EQUAL(
      encode_status({{"k", std::string(L3_MAX_METADATA / 2, 'v')}, {"l", std::string(L3_MAX_METADATA / 2, 'v')}}),
      L3_ERROR_LIMIT);
}

TEST(arguments) {
  const Bytes file = four_tiles();
  l3_info info;
  l3_error error{};
  CHECK_EQUAL(l3_peek(file.data(), file.size(), nullptr, &error), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(l3_peek(nullptr, 5, &info, &error), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(l3_peek(nullptr, 0, &info, &error), L3_ERROR_TRUNCATED);
  CHECK_EQUAL(l3_open(file.data(), file.size(), nullptr, &error), L3_ERROR_ARGUMENT);
  CHECK_EQUAL(std::string(l3_status_text(L3_OK)), "ok");
  CHECK_EQUAL(std::string(l3_status_text(L3_ERROR_TRUNCATED)), "truncated");
}
