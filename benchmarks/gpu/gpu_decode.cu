// Checks and times the GPU decoder; benchmarks/gpu_decode.py runs it and explains the figures.
//
//     gpu_decode FOLDER [--seconds S]
//
// reads FOLDER/SIZE/N.ppm and prints a JSON object a line: what was measured, seconds as "seconds", bytes a second as "..._per_s".
// Where pixels differ from the CPU's, it says so and fails. S is the least time of the device for each figure.
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "cuda/batch.h"
#include "cuda/fast8_kernel.h"
#include "cuda/general_kernel.h"
#include "device.h"
#include "images.h"
#include "published.h"
#include "workers.h"
#ifdef WITH_NVCOMP
#include "nvcomp_decoders.h"
#endif

namespace benchmark {
namespace {

constexpr uint32_t kBatches[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr struct {
  const char *name;
  l3_profile profile;
} kProfiles[] = {{"fast", L3_PROFILE_FAST}, {"raw", L3_PROFILE_RAW}, {"paper", L3_PROFILE_PAPER}};
constexpr size_t kBeyondCaches = size_t{512} << 20;  // bytes that no cache holds
constexpr size_t kMaxBuffer = size_t{4} << 30;       // of a batch, a limit of the decoder
constexpr size_t kAlignment = 256;                   // of images in memory, as cudaMalloc gives
constexpr uint32_t kBatchesUnderWay = 2;             // as many outputs take turns

// ---- Reporting -----------------------------------------------------------------------------------------------------------------

// A line of JSON.
class Line {
 public:
  explicit Line(const char *what) { text_ << std::setprecision(9) << "{\"what\": \"" << what << '"'; }
  ~Line() { std::cout << text_.str() << "}" << std::endl; }

  Line &add(const char *key, const std::string &value) {
    text_ << ", \"" << key << "\": \"" << value << '"';
    return *this;
  }
  Line &add(const char *key, double value) {
    text_ << ", \"" << key << "\": " << value;
    return *this;
  }

 private:
  std::ostringstream text_;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Seconds of CPU time that the process has used, on all its threads.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval &time) { return double(time.tv_sec) + double(time.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

size_t aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// ---- Checking ------------------------------------------------------------------------------------------------------------------

__global__ void count_differences(const uint8_t *a, const uint8_t *b, size_t size, unsigned long long *count) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += stride)
    if (a[i] != b[i]) atomicAdd(count, 1ull);
}

// Compares device memory; throws where it differs.
class Comparison {
 public:
  void expect_equal(const uint8_t *a, const uint8_t *b, size_t size, const Stream &stream, const std::string &what) {
    unsigned long long count = 0, *const counter = reinterpret_cast<unsigned long long *>(counter_.data());
    check(cudaMemsetAsync(counter, 0, sizeof count, stream), "cudaMemset");
    count_differences<<<1024, 256, 0, stream>>>(a, b, size, counter);
    check(cudaGetLastError(), "launching the comparison");
    check(cudaMemcpyAsync(&count, counter, sizeof count, cudaMemcpyDeviceToHost, stream), "copying a result");
    stream.wait();
    if (count) throw std::runtime_error(what + ": " + std::to_string(count) + " bytes differ from the CPU's");
  }

 private:
  DeviceBuffer counter_{sizeof(unsigned long long)};
};

// ---- A batch -------------------------------------------------------------------------------------------------------------------

// Whole images, as arguments of the decoder.
std::vector<l3_cuda_image> whole_images(const std::vector<l3_stream> &streams, uint8_t *out) {
  std::vector<l3_cuda_image> images;
  for (const l3_stream &stream : streams) {
    const l3_info &info = stream.info;
    const size_t row = size_t{info.channels} * info.width;
    images.push_back({stream, {0, 0, info.width, info.height}, {out, row, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0}});
    out += aligned(row * info.height);
  }
  return images;
}

// A batch in device memory, ready for the kernels.
class ResidentBatch {
 public:
  ResidentBatch(const std::vector<l3_stream> &streams, size_t output_size)
      : output_(output_size), images_(whole_images(streams, output_.data())) {
    l3_error error{};
    size_t failed = 0;
    check(plan_.plan(images_.data(), images_.size(), &failed, &error), error);
    Bytes gathered(plan_.layout().end);
    for (size_t i = 0; i < images_.size(); i++) check(plan_.gather(i, false, gathered.data(), &error), error);
    plan_.finish(gathered.data());
    input_ = std::make_unique<DeviceBuffer>(gathered.size());
    input_->upload(gathered.data(), gathered.size());
  }

  // As l3_cuda_decode does after its copy.
  void launch(cudaStream_t stream) const {
    const l3::BatchLayout &layout = plan_.layout();
    for (uint32_t kind = 0; kind < l3::kTileKinds; kind++) {
      const uint32_t first = layout.kind_begin[kind], tiles = layout.kind_begin[kind + 1] - first;
      if (tiles == 0) continue;
      const uint32_t channels = l3::fast8_channels(l3::TileKind(kind));
      check(channels ? l3::launch_fast8(channels, input_->data(), layout, first, tiles, stream)
                     : l3::launch_general(input_->data(), layout, first, tiles, stream),
            "launching a kernel");
    }
  }

  size_t input_size() const { return plan_.layout().end; }
  uint8_t *output() const { return output_.data(); }
  uint8_t *output(size_t image) const { return static_cast<uint8_t *>(images_[image].output.data); }

 private:
  DeviceBuffer output_;
  std::vector<l3_cuda_image> images_;
  l3::BatchPlan plan_;
  std::unique_ptr<DeviceBuffer> input_;
};

// ---- Measuring -----------------------------------------------------------------------------------------------------------------

class Benchmark {
 public:
  Benchmark(std::string folder, double seconds) : folder_(std::move(folder)), seconds_(seconds) {
    cudaDeviceProp device{};
    check(cudaGetDeviceProperties(&device, 0), "looking for a device");
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    Line("device")
        .add("card", device.name)
        .add("compute_capability", std::to_string(device.major) + "." + std::to_string(device.minor))
        .add("multiprocessors", device.multiProcessorCount)
        .add("memory_bytes", double(device.totalGlobalMem))
        .add("l2_bytes", device.l2CacheSize)
        .add("cuda_driver", driver)
        .add("cuda_runtime", runtime)
        .add("cpu_threads", std::thread::hardware_concurrency());
  }

  void measure_copies() {
    const DeviceBuffer from(kBeyondCaches), to(kBeyondCaches);
    uint8_t *pinned = nullptr;
    check(cudaHostAlloc(reinterpret_cast<void **>(&pinned), kBeyondCaches, cudaHostAllocWriteCombined), "cudaHostAlloc");
    std::memset(pinned, 1, kBeyondCaches);
    const auto report = [&](const char *what, void *target, const void *source, double bytes) {
      const double time = median_seconds(stream_, seconds_, [&](size_t) {
        check(cudaMemcpyAsync(target, source, kBeyondCaches, cudaMemcpyDefault, stream_), what);
      });
      Line(what).add("seconds", time).add("bytes_per_s", bytes / time);
    };
    report("device copy", to.data(), from.data(), 2.0 * kBeyondCaches);  // read and written
    report("host to device", to.data(), pinned, kBeyondCaches);
    check(cudaFreeHost(pinned), "cudaFreeHost");
  }

  void measure_size(const std::string &size) {
    const std::vector<Image> images = read_images(folder_ + "/" + size);
    for (const auto &[name, profile] : kProfiles) {
      std::vector<Bytes> files;
      for (const Image &image : images) {
        files.push_back(encode(image, profile));
        if (decode_on_cpu(files.back()) != image.pixels) throw std::runtime_error(size + ": the CPU decoder is wrong");
      }
      const auto originals = upload(images);
      check_parts(size, name, images, files);
      for (uint32_t batch : kBatches) {
        if (!fits(images[0], files[0], batch)) {
          std::cerr << size << " " << name << ": a batch of " << batch << " does not fit" << std::endl;
          break;
        }
        measure_kernels(size, name, images, files, originals, batch);
        measure_end_to_end(size, name, images, files, originals, batch);
      }
    }
    measure_published(size, images);
#ifdef WITH_NVCOMP
    try {
      report_nvcomp(size, images);
    } catch (const std::exception &error) {  // somebody else's library: no reason to lose our own figures
      std::cerr << size << ": " << error.what() << std::endl;
    }
#endif
  }

 private:
  using Originals = std::vector<DeviceBuffer>;

  Originals upload(const std::vector<Image> &images) {
    Originals result;
    for (const Image &image : images) {
      result.emplace_back(image.pixels.size());
      result.back().upload(image.pixels.data(), image.pixels.size());
    }
    return result;
  }

  // Whether the device has room for a batch; estimated with what `paper` and `raw` take at most.
  static bool fits(const Image &image, const Bytes &file, uint32_t batch) {
    size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    const size_t input = batch * (file.size() + file.size() / 16), output = batch * aligned(image.pixels.size());
    // End to end: two inputs, each with a quarter to spare, and kBatchesUnderWay outputs.
    return input < kMaxBuffer && 3 * input + kBatchesUnderWay * output < available / 10 * 9;
  }

  // Parts of images and rows at odd places in memory, which take other paths than whole tiles.
  void check_parts(const std::string &size, const std::string &profile, const std::vector<Image> &images, const std::vector<Bytes> &files) {
    constexpr l3_rect kParts[] = {{0, 0, 1, 1}, {63, 63, 2, 2}, {5, 7, 131, 200}, {64, 64, 128, 64}, {1, 0, 640, 65}};
    constexpr size_t kGap = 13;  // bytes between rows: no row but the first is aligned
    const DeviceBuffer memory(images[0].pixels.size() + kGap * images[0].height);
    l3_cuda_decoder *decoder = nullptr;
    l3_error error{};
    check(l3_cuda_create(&decoder, &error), error);
    const std::unique_ptr<l3_cuda_decoder, decltype(&l3_cuda_destroy)> owner(decoder, l3_cuda_destroy);
    for (size_t i = 0; i < images.size(); i++) {
      for (const l3_rect &part : kParts) {
        const size_t row = size_t{3} * part.width, stride = row + kGap;
        Bytes wanted(stride * part.height, 0xA5), got(wanted.size());
        check(cudaMemsetAsync(memory.data(), 0xA5, wanted.size(), stream_), "cudaMemset");
        const l3_cuda_image image{open(files[i]), part, {memory.data(), stride, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0}};
        size_t failed = 0;
        check(l3_cuda_decode(decoder, &image, 1, nullptr, stream_, &failed, &error), error);
        check(cudaMemcpyAsync(got.data(), memory.data(), got.size(), cudaMemcpyDeviceToHost, stream_), "copying pixels");
        stream_.wait();
        for (size_t y = 0; y < part.height; y++)
          std::memcpy(&wanted[y * stride], &images[i].pixels[(size_t{part.y + y} * images[i].width + part.x) * 3], row);
        if (got != wanted) throw std::runtime_error(size + ", " + profile + ": a part of an image differs from the CPU's");
      }
    }
  }

  // The files of a batch: a copy for each of its images.
  static std::vector<Bytes> copies(const std::vector<Bytes> &files, uint32_t batch) {
    std::vector<Bytes> result;
    for (uint32_t i = 0; i < batch; i++) result.push_back(files[i % files.size()]);
    return result;
  }

  static std::vector<l3_stream> open_all(const std::vector<Bytes> &files) {
    std::vector<l3_stream> streams;
    for (const Bytes &file : files) streams.push_back(open(file));
    return streams;
  }

  // The kernels alone, the bytes being on the device. Enough batches take turns that caches hold nothing of the next one.
  void measure_kernels(const std::string &size, const char *profile, const std::vector<Image> &images, const std::vector<Bytes> &files,
                       const Originals &originals, uint32_t batch) {
    const std::vector<Bytes> batch_files = copies(files, batch);
    const std::vector<l3_stream> streams = open_all(batch_files);
    const size_t output_size = batch * aligned(images[0].pixels.size());
    std::vector<std::unique_ptr<ResidentBatch>> batches;
    size_t footprint = 0;
    do {
      batches.push_back(std::make_unique<ResidentBatch>(streams, output_size));
      footprint += output_size + batches.back()->input_size();
    } while (footprint < kBeyondCaches);

    for (const auto &resident : batches) check(cudaMemsetAsync(resident->output(), 0xA5, output_size, stream_), "cudaMemset");
    const double time = median_seconds(stream_, seconds_, [&](size_t round) { batches[round % batches.size()]->launch(stream_); });
    const ResidentBatch &first = *batches[0];
    for (uint32_t i = 0; i < batch; i++)
      comparison_.expect_equal(first.output(i), originals[i % images.size()].data(), images[i % images.size()].pixels.size(), stream_,
                               size + ", " + profile + ", batch of " + std::to_string(batch));
    Line("kernel")
        .add("size", size)
        .add("profile", profile)
        .add("batch", batch)
        .add("bytes_in", double(first.input_size()))
        .add("bytes_out", double(batch) * double(images[0].pixels.size()))
        .add("seconds", time);
  }

  // From encoded bytes in host memory to pixels in device memory, batch after batch.
  void measure_end_to_end(const std::string &size, const char *profile, const std::vector<Image> &images, const std::vector<Bytes> &files,
                          const Originals &originals, uint32_t batch) {
    const std::vector<Bytes> batch_files = copies(files, batch);
    const size_t output_size = batch * aligned(images[0].pixels.size());
    std::vector<DeviceBuffer> outputs;
    std::vector<std::vector<l3_cuda_image>> arguments;
    for (uint32_t i = 0; i < kBatchesUnderWay; i++) {
      outputs.emplace_back(output_size);
      check(cudaMemsetAsync(outputs.back().data(), 0xA5, output_size, stream_), "cudaMemset");
      arguments.push_back(whole_images(open_all(batch_files), outputs.back().data()));
    }
    l3_cuda_decoder *decoder = nullptr;
    l3_error error{};
    check(l3_cuda_create(&decoder, &error), error);
    const std::unique_ptr<l3_cuda_decoder, decltype(&l3_cuda_destroy)> owner(decoder, l3_cuda_destroy);
    const l3_cuda_options options{0, Workers::run, &workers_};
    size_t rounds = 0;
    const auto decode = [&] {
      size_t failed = 0;
      const auto &images_of_round = arguments[rounds++ % kBatchesUnderWay];
      check(l3_cuda_decode(decoder, images_of_round.data(), batch, &options, stream_, &failed, &error), error);
    };
    for (uint32_t i = 0; i < 2 * kBatchesUnderWay; i++) decode();  // buffers reach their size
    stream_.wait();
    rounds = 0;
    const double start = now(), cpu_start = cpu_seconds();
    while (rounds < 5 || now() - start < seconds_) decode();
    stream_.wait();
    const double time = now() - start, cpu_time = cpu_seconds() - cpu_start, decoded = double(rounds) * batch;
    for (uint32_t i = 0; i < batch; i++) {
      const auto *pixels = static_cast<const uint8_t *>(arguments[0][i].output.data);
      comparison_.expect_equal(pixels, originals[i % images.size()].data(), images[i % images.size()].pixels.size(), stream_,
                               size + ", " + profile + ", end to end, batch of " + std::to_string(batch));
    }
    double file_bytes = 0;
    for (const Bytes &file : batch_files) file_bytes += double(file.size());
    Line("end to end")
        .add("size", size)
        .add("profile", profile)
        .add("batch", batch)
        .add("images_per_s", decoded / time)
        .add("file_bytes_per_s", double(rounds) * file_bytes / time)
        .add("cpu_seconds_per_image", cpu_time / decoded);
  }

#ifdef WITH_NVCOMP
  void report_nvcomp(const std::string &size, const std::vector<Image> &images) {
    for (const NvcompFigures &figures : measure_nvcomp(images, stream_, seconds_))
      Line("nvcomp")
          .add("size", size)
          .add("algorithm", figures.algorithm)
          .add("data", figures.data)
          .add("bytes_in", figures.bytes_in)
          .add("bytes_out", figures.bytes_out)
          .add("seconds", figures.seconds);
  }
#endif

  void measure_published(const std::string &size, const std::vector<Image> &images) {
    std::vector<PrototypeImage> prototypes;
    std::vector<DeviceBuffer> offsets, payloads, outputs;
    double file_bytes = 0, pixel_bytes = 0;
    for (const Image &image : images) {
      const PrototypeImage &prototype = prototypes.emplace_back(image);
      offsets.emplace_back(prototype.offsets.size() * sizeof(uint32_t));
      offsets.back().upload(prototype.offsets.data(), prototype.offsets.size() * sizeof(uint32_t));
      payloads.emplace_back(prototype.payload.size());
      payloads.back().upload(prototype.payload.data(), prototype.payload.size());
      outputs.emplace_back(prototype.pixel_bytes());
      file_bytes += double(prototype.file.size());
      pixel_bytes += double(prototype.pixel_bytes());
    }
    constexpr uint32_t kRepeats = 8;  // of each image: launches follow each other without a pause
    const double launches = double(kRepeats) * double(images.size());
    const double kernel_time = median_seconds(stream_, seconds_, [&](size_t) {
      for (uint32_t repeat = 0; repeat < kRepeats; repeat++)
        for (size_t i = 0; i < images.size(); i++) {
          const auto *table = reinterpret_cast<const uint32_t *>(offsets[i].data());
          launch_published(prototypes[i], table, payloads[i].data(), outputs[i].data(), stream_);
        }
    });
    Bytes decoded(prototypes[0].pixel_bytes());
    for (size_t i = 0; i < images.size(); i++) {
      check(cudaMemcpyAsync(decoded.data(), outputs[i].data(), decoded.size(), cudaMemcpyDeviceToHost, stream_), "copying pixels");
      stream_.wait();
      if (decoded != decode_on_cpu(prototypes[i].file)) throw std::runtime_error(size + ": the published mapping differs from the CPU");
    }
    decode_as_published(prototypes[0], decoded.data(), stream_);
    if (decoded != decode_on_cpu(prototypes[0].file)) throw std::runtime_error(size + ": the published procedure differs from the CPU");
    size_t count = 0;
    const double start = now();
    while (count < 5 * images.size() || now() - start < seconds_)
      decode_as_published(prototypes[count++ % images.size()], decoded.data(), stream_);
    const double time = now() - start;
    Line("published")
        .add("size", size)
        .add("bytes_in", file_bytes / double(images.size()))
        .add("bytes_out", pixel_bytes / double(images.size()))
        .add("kernel_seconds", kernel_time / launches)
        .add("seconds", time / double(count));
  }

  const std::string folder_;
  const double seconds_;
  Stream stream_;
  Comparison comparison_;
  Workers workers_{std::max(1u, std::thread::hardware_concurrency())};
};

int run(int argc, char **argv) {
  if (argc != 2 && !(argc == 4 && !std::strcmp(argv[2], "--seconds"))) {
    std::cerr << "usage: gpu_decode FOLDER [--seconds S]" << std::endl;
    return 2;
  }
  const std::string folder = argv[1];
  Benchmark benchmark(folder, argc == 4 ? std::atof(argv[3]) : 0.1);
  benchmark.measure_copies();
  for (const char *size : {"HD", "FHD", "UHD"})
    if (std::filesystem::exists(folder + "/" + size)) benchmark.measure_size(size);
  return 0;
}

}  // namespace
}  // namespace benchmark

int main(int argc, char **argv) {
  try {
    return benchmark::run(argc, argv);
  } catch (const std::exception &error) {
    std::cerr << "gpu_decode: " << error.what() << std::endl;
    return 1;
  }
}
