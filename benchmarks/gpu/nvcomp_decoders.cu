#include <nvcomp/ans.h>
#include <nvcomp/bitcomp.h>
#include <nvcomp/gdeflate.h>
#include <nvcomp/lz4.h>
#include <nvcomp/snappy.h>
#include <nvcomp/zstd.h>

#include "nvcomp_decoders.h"

namespace benchmark {
namespace {

constexpr size_t kChunk = 65536;
constexpr uint32_t kBatch = 32;

void check(nvcompStatus_t status, const char *action) {
  if (status) throw std::runtime_error(std::string("nvCOMP, ") + action + ": status " + std::to_string(status));
}

// An algorithm of nvCOMP's low-level interface, which is the same for all but the types of the options.
template <typename CompressOptions, typename DecompressOptions>
struct Algorithm {
  const char *name;
  CompressOptions compress_options;
  DecompressOptions decompress_options;
  nvcompStatus_t (*compress_temp)(size_t, size_t, CompressOptions, size_t *, size_t, cudaStream_t);
  nvcompStatus_t (*max_output)(size_t, CompressOptions, size_t *);
  nvcompStatus_t (*compress)(const void *const *, const size_t *, size_t, size_t, void *, size_t, void *const *,
                             size_t *, CompressOptions, nvcompStatus_t *, cudaStream_t);
  nvcompStatus_t (*decompress_temp)(size_t, size_t, DecompressOptions, size_t *, size_t, cudaStream_t);
  nvcompStatus_t (*decompress)(const void *const *, const size_t *, const size_t *, size_t *, size_t, void *, size_t,
                               void *const *, DecompressOptions, nvcompStatus_t *, cudaStream_t);
};

// An array in device memory.
template <typename Item>
struct DeviceArray {
  explicit DeviceArray(const std::vector<Item> &items) : buffer(items.size() * sizeof(Item)) {
    buffer.upload(items.data(), items.size() * sizeof(Item));
  }
  explicit DeviceArray(size_t count) : DeviceArray(std::vector<Item>(count)) {}
  Item *data() const { return reinterpret_cast<Item *>(buffer.data()); }
  std::vector<Item> download(size_t count) const {
    std::vector<Item> items(count);
    benchmark::check(cudaMemcpy(items.data(), buffer.data(), count * sizeof(Item), cudaMemcpyDeviceToHost),
                     "copying from the device");
    return items;
  }
  DeviceBuffer buffer;
};

// Addresses that are `stride` bytes apart.
std::vector<void *> addresses(uint8_t *first, size_t count, size_t stride) {
  std::vector<void *> result;
  for (size_t i = 0; i < count; i++) result.push_back(first + i * stride);
  return result;
}

template <typename CompressOptions, typename DecompressOptions>
NvcompFigures measure(const Algorithm<CompressOptions, DecompressOptions> &algorithm, const Bytes &data,
                      const char *data_name, const Stream &stream, double seconds) {
  const size_t chunks = (data.size() + kChunk - 1) / kChunk;
  std::vector<size_t> sizes(chunks, kChunk);
  sizes.back() = data.size() - (chunks - 1) * kChunk;
  DeviceBuffer original(data.size()), decoded(chunks * kChunk);
  original.upload(data.data(), data.size());
  const DeviceArray<size_t> original_sizes(sizes), compressed_sizes(chunks), decoded_sizes(chunks);
  const DeviceArray<nvcompStatus_t> statuses(chunks);
  size_t largest = 0, temp_size = 0;
  check(algorithm.max_output(kChunk, algorithm.compress_options, &largest), "asking for the size of the output");
  largest = (largest + 255) / 256 * 256;
  const DeviceBuffer compressed(chunks * largest);
  const DeviceArray<void *> original_chunks(addresses(original.data(), chunks, kChunk));
  const DeviceArray<void *> compressed_chunks(addresses(compressed.data(), chunks, largest));
  const DeviceArray<void *> decoded_chunks(addresses(decoded.data(), chunks, kChunk));

  check(algorithm.compress_temp(chunks, kChunk, algorithm.compress_options, &temp_size, data.size(), stream),
        "asking for memory");
  {
    const DeviceBuffer temp(std::max<size_t>(temp_size, 1));
    check(algorithm.compress(original_chunks.data(), original_sizes.data(), kChunk, chunks, temp.data(), temp_size,
                             compressed_chunks.data(), compressed_sizes.data(), algorithm.compress_options,
                             statuses.data(), stream),
          "compressing");
    stream.wait();
  }
  for (nvcompStatus_t status : statuses.download(chunks)) check(status, "compressing a chunk");
  check(algorithm.decompress_temp(chunks, kChunk, algorithm.decompress_options, &temp_size, data.size(), stream),
        "asking for memory");
  const DeviceBuffer temp(std::max<size_t>(temp_size, 1));
  const double time = median_seconds(stream, seconds, [&](size_t) {
    check(algorithm.decompress(compressed_chunks.data(), compressed_sizes.data(), original_sizes.data(),
                               decoded_sizes.data(), chunks, temp.data(), temp_size, decoded_chunks.data(),
                               algorithm.decompress_options, statuses.data(), stream),
          "decompressing");
  });
  for (nvcompStatus_t status : statuses.download(chunks)) check(status, "decompressing a chunk");
  Bytes got(data.size());
  benchmark::check(cudaMemcpy(got.data(), decoded.data(), got.size(), cudaMemcpyDeviceToHost),
                   "copying from the device");
  if (got != data) throw std::runtime_error(std::string("nvCOMP ") + algorithm.name + " does not give the same bytes");
  double bytes_in = 0;
  for (size_t size : compressed_sizes.download(chunks)) bytes_in += double(size);
  return {algorithm.name, data_name, bytes_in, double(data.size()), time};
}

// A batch's pixels, or for each sample the difference from that of the pixel to the left.
Bytes batch_of(const std::vector<Image> &images, bool differences) {
  Bytes result;
  for (uint32_t i = 0; i < kBatch; i++) {
    const Image &image = images[i % images.size()];
    const size_t start = result.size(), row = size_t{3} * image.width;
    result.insert(result.end(), image.pixels.begin(), image.pixels.end());
    if (!differences) continue;
    for (size_t k = image.pixels.size(); k-- > 0;)
      if (k % row >= 3) result[start + k] = uint8_t(image.pixels[k] - image.pixels[k - 3]);
  }
  return result;
}

}  // namespace

std::vector<NvcompFigures> measure_nvcomp(const std::vector<Image> &images, const Stream &stream, double seconds) {
  std::vector<NvcompFigures> figures;
  for (bool differences : {false, true}) {
    const Bytes data = batch_of(images, differences);
    const auto add = [&](const auto &algorithm) {
      figures.push_back(measure(algorithm, data, differences ? "differences" : "pixels", stream, seconds));
    };
    add(Algorithm{"LZ4", nvcompBatchedLZ4CompressDefaultOpts, nvcompBatchedLZ4DecompressDefaultOpts,
                  nvcompBatchedLZ4CompressGetTempSize, nvcompBatchedLZ4CompressGetMaxOutputChunkSize,
                  nvcompBatchedLZ4CompressAsync, nvcompBatchedLZ4DecompressGetTempSize,
                  nvcompBatchedLZ4DecompressAsync});
    add(Algorithm{"Snappy", nvcompBatchedSnappyCompressDefaultOpts, nvcompBatchedSnappyDecompressDefaultOpts,
                  nvcompBatchedSnappyCompressGetTempSize, nvcompBatchedSnappyCompressGetMaxOutputChunkSize,
                  nvcompBatchedSnappyCompressAsync, nvcompBatchedSnappyDecompressGetTempSize,
                  nvcompBatchedSnappyDecompressAsync});
    add(Algorithm{"zstd", nvcompBatchedZstdCompressDefaultOpts, nvcompBatchedZstdDecompressDefaultOpts,
                  nvcompBatchedZstdCompressGetTempSize, nvcompBatchedZstdCompressGetMaxOutputChunkSize,
                  nvcompBatchedZstdCompressAsync, nvcompBatchedZstdDecompressGetTempSize,
                  nvcompBatchedZstdDecompressAsync});
    add(Algorithm{"GDeflate", nvcompBatchedGdeflateCompressDefaultOpts, nvcompBatchedGdeflateDecompressDefaultOpts,
                  nvcompBatchedGdeflateCompressGetTempSize, nvcompBatchedGdeflateCompressGetMaxOutputChunkSize,
                  nvcompBatchedGdeflateCompressAsync, nvcompBatchedGdeflateDecompressGetTempSize,
                  nvcompBatchedGdeflateDecompressAsync});
    add(Algorithm{"ANS", nvcompBatchedANSCompressDefaultOpts, nvcompBatchedANSDecompressDefaultOpts,
                  nvcompBatchedANSCompressGetTempSize, nvcompBatchedANSCompressGetMaxOutputChunkSize,
                  nvcompBatchedANSCompressAsync, nvcompBatchedANSDecompressGetTempSize,
                  nvcompBatchedANSDecompressAsync});
    add(Algorithm{"Bitcomp", nvcompBatchedBitcompCompressDefaultOpts, nvcompBatchedBitcompDecompressDefaultOpts,
                  nvcompBatchedBitcompCompressGetTempSize, nvcompBatchedBitcompCompressGetMaxOutputChunkSize,
                  nvcompBatchedBitcompCompressAsync, nvcompBatchedBitcompDecompressGetTempSize,
                  nvcompBatchedBitcompDecompressAsync});
  }
  return figures;
}

}  // namespace benchmark
