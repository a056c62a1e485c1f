#include <algorithm>

#include "paper.h"
#include "published.h"

namespace benchmark {
namespace {

constexpr uint32_t kPatch = L3_TILE, kChannels = 3;
constexpr size_t kSlack = 16;  // bytes that may be read past the payload's end

__global__ void __launch_bounds__(kPatch)
    decode_patches(const uint32_t *offsets, const uint8_t *payload, uint32_t tiles_x, uint32_t tiles, uint8_t *out) {
  __shared__ uint8_t above[kPatch];
  const uint32_t channel = blockIdx.x / tiles, tile = blockIdx.x % tiles, x = threadIdx.x;
  const uint8_t *row = payload + offsets[blockIdx.x];
  const size_t width = size_t{tiles_x} * kPatch;
  uint8_t *sample = out + (size_t{tile / tiles_x} * kPatch * width + tile % tiles_x * kPatch + x) * kChannels + channel;
  for (uint32_t y = 0; y < kPatch; y++) {
    const uint32_t head = row[0] | uint32_t(row[1]) << 8, bits = head & 15, base = head >> 4 & 255,
                   position = 12 + x * bits;
    const uint32_t field =
        (row[position / 8] | uint32_t(row[position / 8 + 1]) << 8) >> position % 8 & ((1u << bits) - 1);
    int32_t prediction = 0;
    if (y > 0) prediction = l3::paper_prediction(x > 0 ? above[x - 1] : 0, above[x], x + 1 < kPatch ? above[x + 1] : 0);
    const uint8_t value = uint8_t(field + base + uint32_t(prediction));
    __syncthreads();
    above[x] = value;
    __syncthreads();
    *sample = value;
    sample += width * kChannels;
    row += 8 * bits + 2;
  }
}

// Appends the low `count` bits of `value` at bit *position of `row`.
void put_bits(uint8_t *row, uint32_t *position, uint32_t count, uint32_t value) {
  for (uint32_t i = 0; i < count; i++, ++*position) row[*position / 8] |= uint8_t((value >> i & 1) << *position % 8);
}

void append_row(const uint8_t (&residuals)[kPatch], Bytes &payload) {
  // As signed numbers, which are small where the prediction is good.
  const auto [low, high] =
      std::minmax_element(residuals, residuals + kPatch, [](uint8_t a, uint8_t b) { return int8_t(a) < int8_t(b); });
  const uint32_t base = *low, span = uint8_t(*high - *low);
  uint32_t bits = 0;
  while (span >> bits) bits++;
  const size_t start = payload.size();
  payload.resize(start + 8 * bits + 2);
  uint32_t position = 0;
  put_bits(&payload[start], &position, 4, bits);
  put_bits(&payload[start], &position, 8, base);
  for (uint8_t residual : residuals) put_bits(&payload[start], &position, bits, uint8_t(residual - base));
}

void append_patch(const Image &image, uint32_t left, uint32_t top, uint32_t channel, Bytes &payload) {
  uint8_t plane[kPatch * kPatch], prediction[kPatch], residuals[kPatch];
  for (uint32_t y = 0; y < kPatch; y++) {
    for (uint32_t x = 0; x < kPatch; x++)
      plane[y * kPatch + x] = image.pixels[(size_t{top + y} * image.width + left + x) * kChannels + channel];
    l3::predict_paper_row(plane, y, kPatch, prediction);
    for (uint32_t x = 0; x < kPatch; x++) residuals[x] = uint8_t(plane[y * kPatch + x] - prediction[x]);
    append_row(residuals, payload);
  }
}

template <typename Number>
void append(Bytes &bytes, Number value) {
  const uint8_t *begin = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

}  // namespace

PrototypeImage::PrototypeImage(const Image &image)
    : width(image.width / kPatch * kPatch), height(image.height / kPatch * kPatch) {
  Bytes sizes;
  for (uint32_t channel = 0; channel < kChannels; channel++)
    for (uint32_t top = 0; top < height; top += kPatch)
      for (uint32_t left = 0; left < width; left += kPatch) {
        offsets.push_back(uint32_t(payload.size()));
        append_patch(image, left, top, channel, payload);
        append(sizes, uint16_t(payload.size() - offsets.back()));
      }
  file = {'L', 'L', 'L', '.'};
  append(file, width);
  append(file, height);
  append(file, uint8_t(kPatch));
  file.insert(file.end(), sizes.begin(), sizes.end());
  file.insert(file.end(), payload.begin(), payload.end());
  payload.resize(payload.size() + kSlack);
}

void launch_published(const PrototypeImage &image, const uint32_t *offsets, const uint8_t *payload, uint8_t *out,
                      cudaStream_t stream) {
  const uint32_t patches = uint32_t(image.offsets.size());
  decode_patches<<<patches, kPatch, 0, stream>>>(offsets, payload, image.width / kPatch, patches / kChannels, out);
  check(cudaGetLastError(), "launching the published mapping");
}

void decode_as_published(const PrototypeImage &image, uint8_t *out, const Stream &stream) {
  const size_t table_size = image.offsets.size() * sizeof image.offsets[0];
  const DeviceBuffer offsets(table_size), payload(image.payload.size()), pixels(image.pixel_bytes());
  const auto copy = [&](void *to, const void *from, size_t size) {
    check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream), "copying an image");
  };
  copy(offsets.data(), image.offsets.data(), table_size);
  copy(payload.data(), image.payload.data(), image.payload.size());
  launch_published(image, reinterpret_cast<const uint32_t *>(offsets.data()), payload.data(), pixels.data(), stream);
  copy(out, pixels.data(), image.pixel_bytes());
  stream.wait();
}

}  // namespace benchmark
