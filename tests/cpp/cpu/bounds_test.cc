// Encoding and decoding touch nothing but the caller's memory: pages around it cannot be touched, and gaps between rows
// stay what they were.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "backends.h"
#include "images.h"
#include "testing.h"

using namespace l3;

namespace {

// Where memory lies between the pages that cannot be touched.
enum class Side { kBegin, kEnd };

class GuardedMemory {
 public:
  GuardedMemory(size_t size, Side side) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE)), room = (size + page - 1) / page * page;
    mapped_size_ = room + 2 * page;
    mapped_ = mmap(nullptr, mapped_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) testing::fail(__FILE__, __LINE__, "no memory can be mapped");
    uint8_t *const begin = static_cast<uint8_t *>(mapped_) + page;
    if (mprotect(begin, room, PROT_READ | PROT_WRITE)) testing::fail(__FILE__, __LINE__, "no memory can be written");
    data_ = side == Side::kBegin ? begin : begin + room - size;
  }
  GuardedMemory(const Bytes &bytes, Side side) : GuardedMemory(bytes.size(), side) {
    std::copy(bytes.begin(), bytes.end(), data_);
  }
  ~GuardedMemory() { munmap(mapped_, mapped_size_); }
  GuardedMemory(const GuardedMemory &) = delete;
  GuardedMemory &operator=(const GuardedMemory &) = delete;

  uint8_t *data() const { return data_; }

 private:
  void *mapped_;
  size_t mapped_size_;
  uint8_t *data_;
};

Bytes encode_guarded(const Image &image, const l3_encode_options &options, Side side) {
  const GuardedMemory pixels(image.pixels, side);
  l3_image view = view_of(image);
  view.data = pixels.data();
  const size_t bound = l3_encode_bound(&view, &options);
  const GuardedMemory file(bound, side);
  size_t written = 0;
  l3_error error{};
  l3_encode(&view, &options, file.data(), bound, &written, &error);
  CHECK_EQUAL(std::string(error.message), "");
  return Bytes(file.data(), file.data() + written);
}

void check_decoding(const Bytes &bytes, const Image &image, size_t gap, bool bypass_cache, Side side) {
  const GuardedMemory file(bytes, side);
  const size_t row_size = image.row_size(), stride = row_size + gap;
  Bytes expected(stride * (image.height - 1) + row_size, 0xA5);
  const GuardedMemory pixels(expected, side);
  for (size_t y = 0; y < image.height; y++)
    std::copy_n(image.pixels.begin() + ptrdiff_t(y * row_size), row_size, expected.begin() + ptrdiff_t(y * stride));
  l3_file parsed;
  CHECK_EQUAL(l3_open(file.data(), bytes.size(), &parsed, nullptr), L3_OK);
  l3_output output{};
  output.data = pixels.data();
  output.row_stride = stride;
  output.bypass_cache = bypass_cache;
  CHECK_EQUAL(l3_decode(&parsed, nullptr, &output, L3_VERIFY, nullptr), L3_OK);
  CHECK(std::equal(expected.begin(), expected.end(), pixels.data()));
}

}  // namespace

TEST(nothing_but_the_callers_memory_is_touched) {
  Random random(13);
  for (const Kernels *kernels : runnable_backends()) {
    const UseBackend use(*kernels);
    for (const uint32_t bits : {8, 16})
      for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++)
        for (const uint32_t width : {1, 5, 31, 32, 33, 63, 64, 65, 127, 128})
          for (const Kind kind : {Kind::kNoise, Kind::kSlope, Kind::kLabels, Kind::kConstant})
            for (const Side side : {Side::kBegin, Side::kEnd}) {
              const uint32_t height = random.between(1, 9), effort = random.between(1, 3);
              const testing::Context context("%s, %u bits, %u channels, kind %d, %u x %u, effort %u", kernels->name,
                                             bits, channels, int(kind), width, height, effort);
              const Image image = make_image(random, width, height, channels, bits, kind);
              const Bytes file = encode_guarded(image, encode_options(L3_PROFILE_FAST, effort), side);
              const size_t line = 64 - image.row_size() % 64;
              for (const size_t gap : {size_t(0), size_t(1), line})
                check_decoding(file, image, gap, random.below(2), side);
            }
  }
}
