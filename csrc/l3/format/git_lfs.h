// Git LFS leaves pointers, small text files, in the place of files that have not been fetched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace l3 {

constexpr char kLfsPointer[] = "version https://git-lfs.github.com/spec/v1";

// What users see, after the file's name or "it".
constexpr char kIsLfsPointer[] = "is a Git LFS pointer, not an image: run 'git lfs pull'";

// Whether a file that begins with these bytes is such a pointer.
inline bool is_lfs_pointer(const uint8_t *data, size_t size) {
  constexpr size_t length = sizeof kLfsPointer - 1;
  return size >= length && !std::memcmp(data, kLfsPointer, length);
}

}  // namespace l3
