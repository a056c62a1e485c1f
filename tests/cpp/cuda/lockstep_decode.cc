// Decodes files as a GPU would, in lock step on the CPU, for lockstep_oracle.py.
//
// Reads lines "FILE TARGET X Y WIDTH HEIGHT"; a region without width is the whole image. Writes the region's pixels,
// without gaps, to TARGET and answers "decoded", or answers the status for which the file is refused.
#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <memory>

#include "images.h"
#include "lockstep_batch.h"
#include "testing.h"

using namespace l3;

namespace {

constexpr size_t kGap = 14;  // bytes between rows, which must stay as they are
constexpr uint8_t kCanary = 0xc5;

l3_status decode(const Bytes &file, l3_rect region, Bytes *pixels) {
  l3_cuda_image image{};
  if (const l3_status status = l3_open(file.data(), file.size(), &image.file, nullptr)) return status;
  const l3_info &info = image.file.info;
  image.region = region.width ? region : l3_rect{0, 0, info.width, info.height};
  const size_t row_bytes = size_t(image.region.width) * info.channels * info.bits / 8;
  image.output.row_stride = row_bytes + kGap;
  Bytes rows(image.output.row_stride * image.region.height, kCanary);
  image.output.data = rows.data();

  BatchPlan plan;
  size_t failed = 0;
  if (const l3_status status = plan.plan(&image, 1, &failed, nullptr)) return status;
  const auto buffer = std::make_unique<uint64_t[]>((plan.layout().end + 7) / 8);
  uint8_t *const bytes = reinterpret_cast<uint8_t *>(buffer.get());
  if (const l3_status status = plan.gather(0, true, bytes, nullptr)) return status;
  plan.finish(bytes);
  decode_in_lockstep(bytes, plan.layout());
  for (auto row = rows.cbegin(); row != rows.cend();) {
    const auto gap = row + std::ptrdiff_t(row_bytes), next = gap + std::ptrdiff_t(kGap);
    pixels->insert(pixels->end(), row, gap);
    CHECK(std::all_of(gap, next, [](uint8_t byte) { return byte == kCanary; }));
    row = next;
  }
  return L3_OK;
}

}  // namespace

int main() try {
  std::string file, target;
  l3_rect region;
  while (std::cin >> file >> target >> region.x >> region.y >> region.width >> region.height) {
    std::ifstream in(file, std::ios::binary);
    if (!in) testing::fail(__FILE__, __LINE__, "cannot read " + file);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    Bytes pixels;
    const l3_status status = decode(Bytes(bytes.begin(), bytes.end()), region, &pixels);
    if (!status)
      std::ofstream(target, std::ios::binary)
          .write(reinterpret_cast<const char *>(pixels.data()), std::streamsize(pixels.size()));
    std::cout << (status ? l3_status_text(status) : "decoded") << std::endl;
  }
} catch (const testing::Failure &) {
  std::cout << std::flush;  // what failed
  return 1;
}
