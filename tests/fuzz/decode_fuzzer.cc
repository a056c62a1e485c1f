// Decodes whatever libFuzzer comes up with. Checksums are made right after most mutations, or few would get past the
// header.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backends.h"
#include "checksums.h"
#include "format/crc32.h"
#include "format/geometry.h"

using namespace l3;

namespace {

constexpr uint64_t kMaxOutput = 1 << 20;  // bytes; small files of large images would take all the time

struct Result {
  l3_error error;
  std::vector<uint8_t> pixels;
};

Result decode(const l3_file &file, const l3_rect &roi, l3_color color, l3_sample sample, uint32_t options) {
  const size_t row_size =
      size_t(roi.width) * l3_output_channels(&file.info, color) * l3_output_sample_size(&file.info, sample);
  Result result{{}, std::vector<uint8_t>(row_size * roi.height)};
  const l3_output output = {result.pixels.data(), row_size, color, sample, 1};
  l3_decode(&file, &roi, &output, options, &result.error);
  return result;
}

void require(bool condition, const char *what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// And l3_verify, which does not decode.
void check_backends(const l3_file &file) {
  const l3_rect whole = {0, 0, file.info.width, file.info.height};
  const bool passes = l3_verify(&file, nullptr) == L3_OK;
  Result first;
  for (const Kernels *kernels : runnable_backends()) {
    const UseBackend use(*kernels);
    Result result = decode(file, whole, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0);
    if (kernels == runnable_backends().front()) {
      first = std::move(result);
      continue;
    }
    require(!std::strcmp(result.error.message, first.error.message), "back ends differ about what is wrong");
    require(result.error.status || result.pixels == first.pixels, "back ends differ about the pixels");
  }
  require(!passes || first.error.status == L3_OK, "l3_verify passes what does not decode");
}

// A region, in a colour and a type, that follow from `choice`.
void check_conversion(const l3_file &file, uint32_t choice) {
  const auto choose = [&choice](uint32_t count) {
    const uint32_t chosen = choice % count;
    choice = choice / count * 2654435761u + chosen;
    return chosen;
  };
  const uint32_t x = choose(file.info.width), y = choose(file.info.height);
  const l3_rect roi = {x, y, 1 + choose(file.info.width - x), 1 + choose(file.info.height - y)};
  const auto color = static_cast<l3_color>(choose(L3_COLOR_YCBCR + 1));
  const auto sample = static_cast<l3_sample>(choose(L3_SAMPLE_F16 + 1));
  decode(file, roi, color, sample, L3_VERIFY);
}

void read_metadata(const l3_file &file) {
  size_t cursor = 0;
  l3_metadata entry;
  while (!l3_next_metadata(&file, &cursor, &entry, nullptr) && entry.key) {
    std::vector<uint8_t> copy(entry.key, entry.key + entry.key_size);
    copy.insert(copy.end(), static_cast<const uint8_t *>(entry.value),
                static_cast<const uint8_t *>(entry.value) + entry.value_size);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 16) repair_checksums(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  l3_file file;
  l3_error error;
  if (l3_open(data, size, &file, &error)) return 0;
  if (uint64_t(file.info.width) * file.info.height * pixel_size(file.info) > kMaxOutput) return 0;
  check_backends(file);
  check_conversion(file, crc32c(data, size));
  read_metadata(file);
  return 0;
}
