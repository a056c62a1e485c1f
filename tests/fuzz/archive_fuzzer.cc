// Lists whatever libFuzzer comes up with as a tar archive, reads it as an index, and as a label. Checksums of headers
// are made right after most mutations, or few would get past the first.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "loader/archives/archive_index.h"
#include "loader/archives/tar.h"
#include "loader/dataset/archive_labels.h"

using namespace dali_l3::loader;

namespace {

constexpr uint64_t kArchiveSize = uint64_t{1} << 40;

void require(bool condition) {
  if (!condition) abort();
}

void repair(uint8_t *archive, size_t size) {
  for (size_t at = 0; size - at >= kTarBlock; at += kTarBlock) {
    unsigned sum = 0;
    for (size_t i = 0; i < kTarBlock; i++) sum += i >= 148 && i < 156 ? ' ' : archive[at + i];
    char text[8] = {};
    std::snprintf(text, sizeof text, "%06o", sum);
    if (archive[at + 156] != 0) std::copy_n(text, sizeof text, archive + at + 148);
  }
}

void list(const uint8_t *data, size_t size) {
  const ReadAt read = read_at(std::span(data, size));
  ArchiveIndex index = group(list_tar("fuzz.tar", size, read));
  for (const TarMember &member : index.members) require(member.offset <= size && member.size <= size - member.offset);
  require(index.samples() == 0 || parse_index("fuzz.idx", write_index(index, size), size) == index);
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 != 0) repair(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  try {
    list(data, size);
  } catch (const std::runtime_error &) {
  }
  try {
    for (const TarMember &member : parse_index("fuzz.idx", text, kArchiveSize).members)
      require(member.offset % kTarBlock == 0 && member.offset + member.size <= kArchiveSize);
  } catch (const std::runtime_error &) {
  }
  for (const std::optional<std::string> &field : {std::optional<std::string>(), std::optional<std::string>("a.b")}) {
    try {
      label_numbers(text, field);
    } catch (const std::runtime_error &) {
    }
  }
  return 0;
}
