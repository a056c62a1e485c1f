// Checks and times the GPU decoder; benchmarks/gpu_decode.py runs it and explains the figures.
//
//     gpu_decode device | copies | check IMAGES | decode IMAGES PROFILE | published IMAGES | nvcomp IMAGES
//
// each in a process of its own, for after some failures a process cannot use the device any more. IMAGES is a folder of
// files N.ppm. Prints a JSON object a line: what was measured, seconds as "seconds", bytes a second as "..._per_s".
// Where pixels differ from the CPU's, it says so and fails.
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>

#include "check.h"
#include "cuda/batch.h"
#include "cuda/launch.h"
#include "device.h"
#include "images.h"
#include "published.h"
#include "report.h"
#include "workers.h"
#ifdef WITH_NVCOMP
#include "nvcomp_decoders.h"
#endif

namespace benchmark {
namespace {

constexpr uint32_t kBatches[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr double kSeconds = 0.1;                     // least time of the device for each figure
constexpr size_t kBeyondCaches = size_t{512} << 20;  // bytes that no cache holds
constexpr size_t kMaxBuffer = size_t{4} << 30;       // of a batch, a limit of the decoder
constexpr size_t kAlignment = 256;                   // of images in memory, as cudaMalloc gives
constexpr uint32_t kBatchesUnderWay = 2;             // as many outputs take turns

// ---- Time -----------------------------------------------------------------------------------------------------------

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Seconds of CPU time that the process has used, on all its threads.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval &time) { return double(time.tv_sec) + double(time.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The last part of a folder's path.
std::string name_of(const std::string &folder) { return std::filesystem::path(folder).filename(); }

size_t aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// ---- Checking -------------------------------------------------------------------------------------------------------

__global__ void count_differences(const uint8_t *a, const uint8_t *b, size_t size, unsigned long long *count) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += stride)
    if (a[i] != b[i]) atomicAdd(count, 1ull);
}

// Compares device memory; throws where it differs.
class Comparison {
 public:
  void expect_equal(const uint8_t *a, const uint8_t *b, size_t size, const Stream &stream) {
    unsigned long long count = 0, *const counter = reinterpret_cast<unsigned long long *>(counter_.data());
    check(cudaMemsetAsync(counter, 0, sizeof count, stream), "cudaMemset");
    count_differences<<<1024, 256, 0, stream>>>(a, b, size, counter);
    check(cudaGetLastError(), "launching the comparison");
    check(cudaMemcpyAsync(&count, counter, sizeof count, cudaMemcpyDeviceToHost, stream), "copying a result");
    stream.wait();
    if (count) throw std::runtime_error(std::to_string(count) + " bytes differ from the CPU's");
  }

 private:
  DeviceBuffer counter_{sizeof(unsigned long long)};
};

// ---- A batch --------------------------------------------------------------------------------------------------------

// Whole images, as arguments of the decoder.
std::vector<l3_cuda_image> whole_images(const std::vector<l3_file> &files, uint8_t *out) {
  std::vector<l3_cuda_image> images;
  for (const l3_file &file : files) {
    const l3_info &info = file.info;
    const size_t row = size_t{info.channels} * info.width;
    images.push_back({file, {0, 0, info.width, info.height}, {out, row, L3_COLOR_NATIVE, L3_SAMPLE_NATIVE, 0}});
    out += aligned(row * info.height);
  }
  return images;
}

// A batch in device memory, ready for the kernels.
class ResidentBatch {
 public:
  ResidentBatch(const std::vector<l3_file> &files, size_t output_size)
      : output_(output_size), images_(whole_images(files, output_.data())) {
    l3_error error{};
    size_t failed = 0;
    check(plan_.plan(images_.data(), images_.size(), &failed, &error), error);
    Bytes gathered(plan_.layout().end);
    for (size_t i = 0; i < images_.size(); i++) check(plan_.gather(i, false, gathered.data(), &error), error);
    plan_.finish(gathered.data());
    input_ = std::make_unique<DeviceBuffer>(gathered.size());
    input_->upload(gathered.data(), gathered.size());
  }

  void launch(cudaStream_t stream) const {
    check(l3::launch_batch(input_->data(), plan_.layout(), stream), "launching a kernel");
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

// ---- The parts ------------------------------------------------------------------------------------------------------

void report_device() {
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
  const Stream stream;
  const DeviceBuffer from(kBeyondCaches), to(kBeyondCaches);
  uint8_t *pinned = nullptr;
  check(cudaHostAlloc(reinterpret_cast<void **>(&pinned), kBeyondCaches, cudaHostAllocWriteCombined), "cudaHostAlloc");
  std::memset(pinned, 1, kBeyondCaches);
  const auto report = [&](const char *what, void *target, const void *source, double bytes) {
    const double time = median_seconds(stream, kSeconds, [&](size_t) {
      check(cudaMemcpyAsync(target, source, kBeyondCaches, cudaMemcpyDefault, stream), what);
    });
    Line(what).add("seconds", time).add("bytes_per_s", bytes / time);
  };
  report("device copy", to.data(), from.data(), 2.0 * kBeyondCaches);  // read and written
  report("host to device", to.data(), pinned, kBeyondCaches);
  check(cudaFreeHost(pinned), "cudaFreeHost");
}

void report_check(const std::string &folder) {
  const size_t images = check_decoder(read_ppm(folder + "/0.ppm"));
  Line("check").add("images", double(images));
}

// The decoder on images of one size, as files of one profile.
class DecodeBenchmark {
 public:
  DecodeBenchmark(const std::string &folder, std::string profile)
      : size_(name_of(folder)), profile_(std::move(profile)), images_(read_images(folder)) {
    for (const Image &image : images_) {
      files_.push_back(encode(image, profile_of(profile_)));
      if (decode_on_cpu(files_.back()) != image.pixels) throw std::runtime_error("the CPU decoder is wrong");
      originals_.emplace_back(image.pixels.size());
      originals_.back().upload(image.pixels.data(), image.pixels.size());
    }
  }

  void run() {
    for (uint32_t batch : kBatches) {
      if (!fits(batch)) {
        std::cerr << "a batch of " << batch << " does not fit" << std::endl;
        break;
      }
      measure_kernels(batch);
      measure_end_to_end(batch);
    }
  }

 private:
  static l3_profile profile_of(const std::string &name) {
    if (name == "fast") return L3_PROFILE_FAST;
    if (name == "raw") return L3_PROFILE_RAW;
    if (name == "paper") return L3_PROFILE_PAPER;
    throw std::runtime_error("there is no profile " + name);
  }

  // Whether the device has room for a batch; estimated with what `paper` and `raw` take at most.
  bool fits(uint32_t batch) const {
    size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    const size_t input = batch * (files_[0].size() + files_[0].size() / 16), output = output_size(batch);
    // End to end: two inputs, each with a quarter to spare, and kBatchesUnderWay outputs.
    return input < kMaxBuffer && 3 * input + kBatchesUnderWay * output < available / 10 * 9;
  }

  size_t output_size(uint32_t batch) const { return batch * aligned(images_[0].pixels.size()); }

  // The files of a batch: a copy for each of its images.
  std::vector<Bytes> copies(uint32_t batch) const {
    std::vector<Bytes> result;
    for (uint32_t i = 0; i < batch; i++) result.push_back(files_[i % files_.size()]);
    return result;
  }

  static std::vector<l3_file> open_all(const std::vector<Bytes> &files) {
    std::vector<l3_file> parsed;
    for (const Bytes &file : files) parsed.push_back(open(file));
    return parsed;
  }

  void expect_original(uint32_t image, const void *pixels) {
    const size_t original = image % images_.size();
    comparison_.expect_equal(static_cast<const uint8_t *>(pixels), originals_[original].data(),
                             images_[original].pixels.size(), stream_);
  }

  // Adds to a line what it is about.
  Line &about(uint32_t batch, Line &&line) const {
    return line.add("size", size_).add("profile", profile_).add("batch", batch);
  }

  // The kernels alone, the bytes being on the device. Enough batches take turns that caches hold nothing of the next
  // one.
  void measure_kernels(uint32_t batch) {
    const std::vector<Bytes> batch_files = copies(batch);
    const std::vector<l3_file> parsed = open_all(batch_files);
    std::vector<std::unique_ptr<ResidentBatch>> batches;
    size_t footprint = 0;
    do {
      batches.push_back(std::make_unique<ResidentBatch>(parsed, output_size(batch)));
      footprint += output_size(batch) + batches.back()->input_size();
    } while (footprint < kBeyondCaches);

    for (const auto &resident : batches)
      check(cudaMemsetAsync(resident->output(), 0xA5, output_size(batch), stream_), "cudaMemset");
    const double time =
        median_seconds(stream_, kSeconds, [&](size_t round) { batches[round % batches.size()]->launch(stream_); });
    const ResidentBatch &first = *batches[0];
    for (uint32_t i = 0; i < batch; i++) expect_original(i, first.output(i));
    about(batch, Line("kernel"))
        .add("bytes_in", double(first.input_size()))
        .add("bytes_out", double(batch) * double(images_[0].pixels.size()))
        .add("seconds", time);
  }

  // From encoded bytes in host memory to pixels in device memory, batch after batch.
  void measure_end_to_end(uint32_t batch) {
    const std::vector<Bytes> batch_files = copies(batch);
    std::vector<DeviceBuffer> outputs;
    std::vector<std::vector<l3_cuda_image>> arguments;
    for (uint32_t i = 0; i < kBatchesUnderWay; i++) {
      outputs.emplace_back(output_size(batch));
      check(cudaMemsetAsync(outputs.back().data(), 0xA5, output_size(batch), stream_), "cudaMemset");
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
    while (rounds < 5 || now() - start < kSeconds) decode();
    stream_.wait();
    const double time = now() - start, cpu_time = cpu_seconds() - cpu_start, decoded = double(rounds) * batch;
    for (uint32_t i = 0; i < batch; i++) expect_original(i, arguments[0][i].output.data);
    double file_bytes = 0;
    for (const Bytes &file : batch_files) file_bytes += double(file.size());
    about(batch, Line("end to end"))
        .add("images_per_s", decoded / time)
        .add("file_bytes_per_s", double(rounds) * file_bytes / time)
        .add("cpu_seconds_per_image", cpu_time / decoded);
  }

  const std::string size_, profile_;
  const std::vector<Image> images_;
  std::vector<Bytes> files_;
  std::vector<DeviceBuffer> originals_;  // the images' pixels
  Stream stream_;
  Comparison comparison_;
  Workers workers_{std::max(1u, std::thread::hardware_concurrency())};
};

void measure_published(const std::string &folder) {
  const Stream stream;
  const std::vector<Image> images = read_images(folder);
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
  const double kernel_time = median_seconds(stream, kSeconds, [&](size_t) {
    for (uint32_t repeat = 0; repeat < kRepeats; repeat++)
      for (size_t i = 0; i < images.size(); i++) {
        const auto *table = reinterpret_cast<const uint32_t *>(offsets[i].data());
        launch_published(prototypes[i], table, payloads[i].data(), outputs[i].data(), stream);
      }
  });
  Bytes decoded(prototypes[0].pixel_bytes());
  for (size_t i = 0; i < images.size(); i++) {
    check(cudaMemcpyAsync(decoded.data(), outputs[i].data(), decoded.size(), cudaMemcpyDeviceToHost, stream),
          "copying pixels");
    stream.wait();
    if (decoded != decode_on_cpu(prototypes[i].file))
      throw std::runtime_error("the published mapping differs from the CPU");
  }
  decode_as_published(prototypes[0], decoded.data(), stream);
  if (decoded != decode_on_cpu(prototypes[0].file))
    throw std::runtime_error("the published procedure differs from the CPU");
  size_t count = 0;
  const double start = now();
  while (count < 5 * images.size() || now() - start < kSeconds)
    decode_as_published(prototypes[count++ % images.size()], decoded.data(), stream);
  const double time = now() - start;
  Line("published")
      .add("size", name_of(folder))
      .add("bytes_in", file_bytes / double(images.size()))
      .add("bytes_out", pixel_bytes / double(images.size()))
      .add("kernel_seconds", kernel_time / launches)
      .add("seconds", time / double(count));
}

void report_nvcomp([[maybe_unused]] const std::string &folder) {
#ifdef WITH_NVCOMP
  for (const NvcompFigures &figures : measure_nvcomp(read_images(folder), Stream(), kSeconds))
    Line("nvcomp")
        .add("size", name_of(folder))
        .add("algorithm", figures.algorithm)
        .add("data", figures.data)
        .add("bytes_in", figures.bytes_in)
        .add("bytes_out", figures.bytes_out)
        .add("seconds", figures.seconds);
#else
  throw std::runtime_error("built without nvCOMP");
#endif
}

void run(const std::vector<std::string> &arguments) {
  const auto is = [&](const char *part, size_t count) { return arguments.size() == count && arguments[0] == part; };
  if (is("device", 1))
    report_device();
  else if (is("copies", 1))
    measure_copies();
  else if (is("check", 2))
    report_check(arguments[1]);
  else if (is("decode", 3))
    DecodeBenchmark(arguments[1], arguments[2]).run();
  else if (is("published", 2))
    measure_published(arguments[1]);
  else if (is("nvcomp", 2))
    report_nvcomp(arguments[1]);
  else
    throw std::runtime_error(
        "usage: gpu_decode device | copies | check IMAGES | decode IMAGES PROFILE | published IMAGES | nvcomp IMAGES");
}

}  // namespace
}  // namespace benchmark

int main(int argc, char **argv) {
  try {
    benchmark::run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "gpu_decode: " << error.what() << std::endl;
    return 1;
  }
}
