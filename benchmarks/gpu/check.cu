#include <algorithm>
#include <memory>
#include <random>

#include "check.h"
#include "device.h"
#include "l3/l3_cuda.h"
#include "published.h"

namespace benchmark {
namespace {

constexpr uint32_t kWidth = 201, kHeight = 150;  // tiles that are cut off in both directions
constexpr uint8_t kUntouched = 0xA5;

using Random = std::mt19937;

uint32_t below(Random &random, uint32_t limit) { return uint32_t(random() % limit); }

// The top left of an image.
Image part_of(const Image &image) {
  if (image.width < kWidth || image.height < kHeight) throw std::runtime_error("the image to check with is too small");
  Image part{kWidth, kHeight, Bytes(size_t{3} * kWidth * kHeight)};
  for (uint32_t y = 0; y < kHeight; y++)
    std::copy_n(&image.pixels[size_t{3} * image.width * y], size_t{3} * kWidth, &part.pixels[size_t{3} * kWidth * y]);
  return part;
}

// The image with other channels and bits. Label maps have few values.
Bytes encode_variant(const Image &image, uint32_t channels, uint32_t bits, l3_profile profile, bool labels) {
  const uint32_t sample_size = bits / 8;
  const uint8_t mask = labels ? 0xC0 : 0xFF;
  Bytes pixels;
  for (size_t pixel = 0; pixel < image.pixels.size(); pixel += 3)
    for (uint32_t c = 0; c < channels; c++) {
      if (bits == 16) pixels.push_back(image.pixels[pixel + (c + 1) % 3] & mask);  // the low byte
      pixels.push_back(image.pixels[pixel + c % 3] & mask);
    }
  const l3_image view{pixels.data(), size_t{kWidth} * channels * sample_size, kWidth, kHeight, channels, bits, 0};
  return encode(view, profile);
}

std::vector<Bytes> variants(const Image &image) {
  std::vector<Bytes> files;
  for (const l3_profile profile : {L3_PROFILE_RAW, L3_PROFILE_PAPER, L3_PROFILE_FAST})
    for (const uint32_t bits : {8, 16})
      for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++)
        for (const bool labels : {false, true}) files.push_back(encode_variant(image, channels, bits, profile, labels));
  files.push_back(PrototypeImage(image).file);
  return files;
}

// An image to decode; `output.data` is its place in a buffer, not yet an address.
struct Case {
  l3_file file;
  l3_rect region;
  l3_output output;
  size_t place;
};

// Each file unchanged and converted; sizes, gaps and places at random. Sets *size to that of the buffer for all.
std::vector<Case> cases(const std::vector<Bytes> &files, size_t *size) {
  constexpr uint32_t kConversions = (L3_COLOR_YCBCR + 1) * (L3_SAMPLE_F16 + 1), kTimes = 5;
  Random random(1);
  uint32_t conversions = 0;
  std::vector<Case> result;
  *size = 0;
  for (const Bytes &file : files)
    for (uint32_t time = 0; time < kTimes; time++) {
      const l3_file parsed = open(file);
      const l3_info &info = parsed.info;
      const uint32_t conversion = time == 0 ? 0 : conversions++ % kConversions;
      const auto color = l3_color(conversion % (L3_COLOR_YCBCR + 1));
      const auto sample = l3_sample(conversion / (L3_COLOR_YCBCR + 1));
      l3_rect region{0, 0, info.width, info.height};
      if (time % 2) region.x = below(random, info.width), region.y = below(random, info.height);
      region.width -= region.x;
      region.height -= region.y;
      const size_t sample_size = l3_output_sample_size(&info, sample);
      const size_t row = (region.width * l3_output_channels(&info, color) + time * below(random, 9)) * sample_size;
      *size += sample_size * below(random, 17);
      *size = (*size + 3) / 4 * 4 + (sample_size < 4 ? sample_size * below(random, 4) : 0);
      result.push_back({parsed, region, {nullptr, row, color, sample, 0}, *size});
      *size += row * region.height;
    }
  return result;
}

Bytes expected_bytes(const std::vector<Case> &cases, size_t size) {
  Bytes memory(size, kUntouched);
  for (const Case &one : cases) {
    l3_output output = one.output;
    output.data = memory.data() + one.place;
    l3_error error{};
    check(l3_decode(&one.file, &one.region, &output, L3_VERIFY, &error), error);
  }
  return memory;
}

class Checker {
 public:
  explicit Checker(const std::vector<Case> &cases, size_t size)
      : cases_(cases), expected_(expected_bytes(cases, size)), memory_(size) {
    l3_error error{};
    l3_cuda_decoder *decoder = nullptr;
    check(l3_cuda_create(&decoder, &error), error);
    decoder_.reset(decoder);
  }

  // Cases first, first + 1, ..., last - 1 in a batch.
  void check_batch(size_t first, size_t last, const Stream &stream) {
    const size_t begin = cases_[first].place, end = last < cases_.size() ? cases_[last].place : expected_.size();
    check(cudaMemsetAsync(memory_.data() + begin, kUntouched, end - begin, stream), "cudaMemset");
    const std::vector<l3_cuda_image> images = images_of(first, last);
    size_t failed = 0;
    l3_error error{};
    check(decode(images, stream, &failed, &error), error);
    Bytes got(end - begin);
    check(cudaMemcpyAsync(got.data(), memory_.data() + begin, got.size(), cudaMemcpyDeviceToHost, stream),
          "copying pixels");
    stream.wait();
    const auto wrong = std::mismatch(got.begin(), got.end(), expected_.begin() + ptrdiff_t(begin)).first;
    if (wrong != got.end()) throw std::runtime_error(describe(first, last, begin + size_t(wrong - got.begin())));
  }

  // A broken file must be refused by its number.
  void check_refusal(const Stream &stream) {
    std::vector<l3_cuda_image> images = images_of(0, cases_.size());
    const size_t broken = images.size() / 2;
    const l3_file &whole = images[broken].file;
    const l3_info info = whole.info;
    Bytes file(whole.data, whole.data + whole.size);
    file[size_t(whole.payload - whole.data) + info.payload_size - 1] ^= 1;
    images[broken].file = open(file);
    images[broken].region = {info.width - 1, info.height - 1, 1, 1};  // of the last tile
    size_t failed = 0;
    if (decode(images, stream, &failed, nullptr) != L3_ERROR_CHECKSUM || failed != broken)
      throw std::runtime_error("a broken file is not refused");
  }

 private:
  std::vector<l3_cuda_image> images_of(size_t first, size_t last) const {
    std::vector<l3_cuda_image> images;
    for (size_t i = first; i < last; i++) {
      images.push_back({cases_[i].file, cases_[i].region, cases_[i].output});
      images.back().output.data = memory_.data() + cases_[i].place;
    }
    return images;
  }

  l3_status decode(const std::vector<l3_cuda_image> &images, const Stream &stream, size_t *failed, l3_error *error) {
    const l3_cuda_options options{1, nullptr, nullptr};
    return l3_cuda_decode(decoder_.get(), images.data(), images.size(), &options, stream, failed, error);
  }

  // Of the byte at `position` of the memory.
  std::string describe(size_t first, size_t last, size_t position) const {
    const auto after = std::find_if(cases_.begin() + ptrdiff_t(first), cases_.begin() + ptrdiff_t(last),
                                    [&](const Case &one) { return one.place > position; });
    const Case &one = after == cases_.begin() ? *after : *std::prev(after);
    const l3_info &info = one.file.info;
    const auto number = [](size_t value) { return std::to_string(value); };
    return "byte " + number(position - one.place) + " differs from the CPU's: profile " + number(info.profile) + ", " +
           number(info.bits) + " bits, " + number(info.channels) + " channels, " + number(one.region.width) + " x " +
           number(one.region.height) + " at (" + number(one.region.x) + ", " + number(one.region.y) + "), color " +
           number(one.output.color) + ", sample " + number(one.output.sample) + ", rows of " +
           number(one.output.row_stride) + " bytes, in a batch of " + number(last - first);
  }

  struct Destroy {
    void operator()(l3_cuda_decoder *decoder) const { l3_cuda_destroy(decoder); }
  };

  const std::vector<Case> &cases_;
  const Bytes expected_;
  const DeviceBuffer memory_;
  std::unique_ptr<l3_cuda_decoder, Destroy> decoder_;
};

}  // namespace

size_t check_decoder(const Image &image) {
  const std::vector<Bytes> files = variants(part_of(image));
  size_t size = 0;
  const std::vector<Case> all = cases(files, &size);
  Checker checker(all, size);
  const Stream streams[2];
  size_t decoded = 0, turn = 0;
  for (const size_t batch : {size_t{1}, all.size() / 3, all.size(), all.size(), all.size() / 7, size_t{2}})
    for (size_t first = 0; first < all.size(); first += std::max(batch, all.size() / 20)) {  // of small batches, some
      const size_t last = std::min(first + batch, all.size());
      checker.check_batch(first, last, streams[turn++ % 2]);
      decoded += last - first;
    }
  checker.check_refusal(streams[0]);
  checker.check_batch(0, all.size(), streams[1]);
  return decoded + all.size();
}

}  // namespace benchmark
