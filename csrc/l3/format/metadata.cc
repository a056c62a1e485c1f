#include "format/metadata.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string_view>

#include "format/bytes.h"
#include "format/container.h"
#include "format/error.h"

namespace l3 {
namespace {

constexpr uint32_t kMaxKey = 255;         // bytes
constexpr uint32_t kEntryHeaderSize = 8;  // the sizes of key and value, u32

std::string_view key_of(const l3_metadata &entry) { return {entry.key, entry.key_size}; }

// Length of the UTF-8 character at the start of `text`, 0 if there is none: over-long forms, surrogates and what lies
// past U+10FFFF are not UTF-8.
size_t utf8_character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return byte(i) >> 6 == 2; };
  const uint32_t first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !follows(1)) return 0;
  if (first < 0xE0) return 2;
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || !follows(2)) return 0;
  if (first < 0xF0) return 3;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) || !follows(3)) return 0;
  return 4;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = utf8_character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

l3_status check_key(std::string_view key, l3_status status, l3_error *error) {
  if (key.empty() || key.size() > kMaxKey)
    return fail(error, status, "a metadata key of %zu bytes: must be 1 to %u", key.size(), kMaxKey);
  return is_utf8(key) ? L3_OK : fail(error, status, "a metadata key is not UTF-8");
}

// Refuses keys that are there twice. `next` returns a number for each of the `count` entries, of which `key_at` gives
// the key. They are sorted, since an area can hold more than a million.
template <typename Next, typename KeyAt>
l3_status check_keys_differ(uint32_t count, Next next, KeyAt key_at, l3_status status, l3_error *error) {
  if (count < 2) return L3_OK;
  const std::unique_ptr<uint32_t[]> numbers(new (std::nothrow) uint32_t[count]);
  if (!numbers) return fail(error, L3_ERROR_CAPACITY, "no memory to compare %u metadata keys", count);
  uint32_t *const begin = numbers.get(), *const end = begin + count;
  std::generate(begin, end, next);
  std::sort(begin, end, [&](uint32_t a, uint32_t b) { return key_at(a) < key_at(b); });
  if (std::adjacent_find(begin, end, [&](uint32_t a, uint32_t b) { return key_at(a) == key_at(b); }) == end)
    return L3_OK;
  return fail(error, status, "a metadata key appears twice");
}

}  // namespace

l3_status check_metadata(const l3_metadata *entries, size_t count, uint32_t *area_size, l3_error *error) {
  uint64_t size = 0;
  for (size_t i = 0; i < count; i++) {
    if (l3_status status = check_key(key_of(entries[i]), L3_ERROR_ARGUMENT, error)) return status;
    if (entries[i].value_size <= L3_MAX_METADATA)
      size += kEntryHeaderSize + aligned4(uint32_t(entries[i].key_size + entries[i].value_size));
    if (entries[i].value_size > L3_MAX_METADATA || size > L3_MAX_METADATA)
      return fail(error, L3_ERROR_LIMIT, "the metadata exceeds the limit of %d bytes", L3_MAX_METADATA);
  }
  *area_size = uint32_t(size);
  const auto key_at = [&](uint32_t i) { return key_of(entries[i]); };
  return check_keys_differ(uint32_t(count), [i = 0u]() mutable { return i++; }, key_at, L3_ERROR_ARGUMENT, error);
}

void write_metadata(const l3_metadata *entries, size_t count, uint8_t *area) {
  for (size_t i = 0; i < count; i++) {
    const l3_metadata &entry = entries[i];
    const uint32_t size = uint32_t(entry.key_size + entry.value_size);
    store(area, uint32_t(entry.key_size));
    store(area + 4, uint32_t(entry.value_size));
    area += kEntryHeaderSize;
    std::memcpy(area, entry.key, entry.key_size);
    if (entry.value_size) std::memcpy(area + entry.key_size, entry.value, entry.value_size);
    std::memset(area + size, 0, aligned4(size) - size);
    area += aligned4(size);
  }
}

l3_status read_metadata_entry(const uint8_t *area, uint32_t size, size_t *cursor, l3_metadata *entry, l3_error *error) {
  *entry = {};
  if (*cursor >= size) return L3_OK;
  const uint8_t *start = area + *cursor;
  const size_t left = size - *cursor;
  if (left < kEntryHeaderSize) return fail(error, L3_ERROR_CORRUPT, "metadata ends within an entry");
  const uint32_t key_size = load<uint32_t>(start), value_size = load<uint32_t>(start + 4);
  const uint64_t entry_size = kEntryHeaderSize + (uint64_t(key_size) + value_size + 3) / 4 * 4;
  if (entry_size > left) return fail(error, L3_ERROR_CORRUPT, "metadata ends within an entry");
  const std::string_view key(reinterpret_cast<const char *>(start + kEntryHeaderSize), key_size);
  if (l3_status status = check_key(key, L3_ERROR_CORRUPT, error)) return status;
  *entry = {key.data(), key_size, start + kEntryHeaderSize + key_size, value_size};
  *cursor += size_t(entry_size);
  return L3_OK;
}

l3_status check_metadata_area(const uint8_t *area, uint32_t size, l3_error *error) {
  uint32_t count = 0;
  l3_metadata entry;
  for (size_t cursor = 0; cursor < size; count++)
    if (l3_status status = read_metadata_entry(area, size, &cursor, &entry, error)) return status;
  size_t cursor = 0;
  const auto next = [&] {
    const size_t position = cursor;
    read_metadata_entry(area, size, &cursor, &entry, nullptr);
    return uint32_t(position);
  };
  const auto key_at = [&](uint32_t position) {
    const char *const key = reinterpret_cast<const char *>(area + position + kEntryHeaderSize);
    return std::string_view(key, load<uint32_t>(area + position));
  };
  return check_keys_differ(count, next, key_at, L3_ERROR_CORRUPT, error);
}

}  // namespace l3
