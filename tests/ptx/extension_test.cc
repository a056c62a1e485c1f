// The nvImageCodec extension's decoder for GPUs, as a framework calls it, over the stand-in for the CUDA runtime.
#include <nvimgcodec.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "batch_cases.h"
#include "cuda_objects.h"
#include "data_files.h"
#include "testing.h"

extern "C" nvimgcodecStatus_t nvimgcodecExtensionModuleEntry(nvimgcodecExtensionDesc_t *descriptor);

using namespace l3;
using ptx::reset_device;
using ptx::Stream;
using ptx::runtime::Live;
using ptx::runtime::Streams;

namespace {

constexpr auto kSuccess = NVIMGCODEC_PROCESSING_STATUS_SUCCESS;

// A framework with the extension. It keeps the decoder for GPUs and what is logged.
class Framework {
 public:
  Framework() {
    framework_.instance = this;
    framework_.log = [](void *self, nvimgcodecDebugMessageSeverity_t, nvimgcodecDebugMessageCategory_t,
                        const nvimgcodecDebugMessageData_t *data) {
      const std::lock_guard lock(of(self).mutex_);
      of(self).log_ += std::string(data->message) + "\n";
      return NVIMGCODEC_STATUS_SUCCESS;
    };
    framework_.registerEncoder = [](void *, const nvimgcodecEncoderDesc_t *, float) { return ok(); };
    framework_.unregisterEncoder = [](void *, const nvimgcodecEncoderDesc_t *) { return ok(); };
    framework_.registerParser = [](void *, const nvimgcodecParserDesc_t *, float) { return ok(); };
    framework_.unregisterParser = [](void *, const nvimgcodecParserDesc_t *) { return ok(); };
    framework_.registerDecoder = [](void *self, const nvimgcodecDecoderDesc_t *decoder, float) {
      if (decoder->backend_kind == NVIMGCODEC_BACKEND_KIND_GPU_ONLY) of(self).decoder_ = decoder;
      return ok();
    };
    framework_.unregisterDecoder = [](void *, const nvimgcodecDecoderDesc_t *) { return ok(); };
    CHECK_EQUAL(nvimgcodecExtensionModuleEntry(&descriptor_), ok());
    CHECK_EQUAL(descriptor_.create(descriptor_.instance, &extension_, &framework_), ok());
    CHECK(decoder_);
  }
  ~Framework() { descriptor_.destroy(extension_); }
  Framework(const Framework &) = delete;
  Framework &operator=(const Framework &) = delete;

  const nvimgcodecDecoderDesc_t &decoder() const { return *decoder_; }
  const std::string &log() const { return log_; }

 private:
  static Framework &of(void *self) { return *static_cast<Framework *>(self); }
  static nvimgcodecStatus_t ok() { return NVIMGCODEC_STATUS_SUCCESS; }

  nvimgcodecFrameworkDesc_t framework_{};
  nvimgcodecExtensionDesc_t descriptor_{};
  nvimgcodecExtension_t extension_{};
  const nvimgcodecDecoderDesc_t *decoder_ = nullptr;
  std::mutex mutex_;
  std::string log_;
};

// Threads that do what is scheduled when run() is called.
class Executor {
 public:
  Executor() {
    executor_.instance = this;
    executor_.schedule = [](void *self, int, int sample, void *context, void (*task)(int, int, void *)) {
      of(self).scheduled_.push_back([=] { task(0, sample, context); });
      return NVIMGCODEC_STATUS_SUCCESS;
    };
    executor_.run = [](void *self, int) {
      for (auto &task : std::exchange(of(self).scheduled_, {})) of(self).threads_.emplace_back(task);
      return NVIMGCODEC_STATUS_SUCCESS;
    };
    executor_.getNumThreads = [](void *) { return 3; };
  }
  ~Executor() {
    for (std::thread &thread : threads_) thread.join();
  }
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  nvimgcodecExecutorDesc_t *descriptor() { return &executor_; }
  size_t threads() const { return threads_.size(); }

 private:
  static Executor &of(void *self) { return *static_cast<Executor *>(self); }

  nvimgcodecExecutorDesc_t executor_{};
  std::vector<std::function<void()>> scheduled_;
  std::vector<std::thread> threads_;
};

class Decoder {
 public:
  explicit Decoder(const Framework &framework, int device = 0) : descriptor_(framework.decoder()) {
    nvimgcodecExecutionParams_t params{};
    params.executor = executor_.descriptor();
    params.device_id = device;
    CHECK_EQUAL(descriptor_.create(descriptor_.instance, &decoder_, &params, ""), NVIMGCODEC_STATUS_SUCCESS);
  }
  ~Decoder() { descriptor_.destroy(decoder_); }
  Decoder(const Decoder &) = delete;
  Decoder &operator=(const Decoder &) = delete;

  const nvimgcodecDecoderDesc_t &descriptor() const { return descriptor_; }
  nvimgcodecDecoder_t handle() const { return decoder_; }
  const Executor &executor() const { return executor_; }

 private:
  const nvimgcodecDecoderDesc_t &descriptor_;
  Executor executor_;
  nvimgcodecDecoder_t decoder_{};
};

// A file and the image that it is to become, in device memory.
class Request {
 public:
  Request(const Wanted &wanted, cudaStream_t stream)
      : file_(*wanted.file), expected_(wanted), memory_(8 * expected_.memory.size()) {
    memory_.fill(0xA5, stream);
    const l3_output output = expected_.output(memory_.data());
    plane().width = wanted.region.width, plane().height = wanted.region.height;
    plane().row_stride = output.row_stride;
    plane().num_channels = l3_output_channels(&expected_.file.info, wanted.color);
    const l3_sample native = expected_.file.info.bits == 8 ? L3_SAMPLE_U8 : L3_SAMPLE_U16;
    static constexpr nvimgcodecSampleDataType_t kTypes[] = {
        NVIMGCODEC_SAMPLE_DATA_TYPE_UNKNOWN, NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8,  NVIMGCODEC_SAMPLE_DATA_TYPE_INT8,
        NVIMGCODEC_SAMPLE_DATA_TYPE_UINT16,  NVIMGCODEC_SAMPLE_DATA_TYPE_INT16,  NVIMGCODEC_SAMPLE_DATA_TYPE_UINT32,
        NVIMGCODEC_SAMPLE_DATA_TYPE_INT32,   NVIMGCODEC_SAMPLE_DATA_TYPE_FLOAT32};
    plane().sample_type = kTypes[wanted.sample ? wanted.sample : native];
    static constexpr nvimgcodecSampleFormat_t kFormats[] = {NVIMGCODEC_SAMPLEFORMAT_I_UNCHANGED,
                                                            NVIMGCODEC_SAMPLEFORMAT_I_RGB,
                                                            NVIMGCODEC_SAMPLEFORMAT_I_BGR, NVIMGCODEC_SAMPLEFORMAT_I_Y};
    info.sample_format = kFormats[wanted.color];
    info.num_planes = 1;
    info.buffer = output.data;
    info.buffer_kind = NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_DEVICE;
    info.cuda_stream = stream;
    view_.region.ndim = 2;
    view_.region.start[0] = int(wanted.region.y), view_.region.start[1] = int(wanted.region.x);
    view_.region.end[0] = int(wanted.region.y + wanted.region.height);
    view_.region.end[1] = int(wanted.region.x + wanted.region.width);

    io_.instance = code_stream_.instance = image_.instance = this;
    io_.size = [](void *self, size_t *size) { return *size = of(self).file_.size(), NVIMGCODEC_STATUS_SUCCESS; };
    io_.map = [](void *self, void **data, size_t, size_t) {
      of(self).mapped_++;
      return *data = of(self).file_.data(), NVIMGCODEC_STATUS_SUCCESS;
    };
    io_.unmap = [](void *self, void *, size_t) { return of(self).mapped_--, NVIMGCODEC_STATUS_SUCCESS; };
    code_stream_.io_stream = &io_;
    code_stream_.getCodeStreamInfo = [](void *self, nvimgcodecCodeStreamInfo_t *stream) {
      return stream->code_stream_view = &of(self).view_, NVIMGCODEC_STATUS_SUCCESS;
    };
    code_stream_.getImageInfo = [](void *self, nvimgcodecImageInfo_t *file) {
      std::snprintf(file->codec_name, sizeof file->codec_name, "l3");
      file->plane_info[0].num_channels = of(self).expected_.file.info.channels;
      return NVIMGCODEC_STATUS_SUCCESS;
    };
    image_.getImageInfo = [](void *self, nvimgcodecImageInfo_t *image) {
      return *image = of(self).info, NVIMGCODEC_STATUS_SUCCESS;
    };
    image_.imageReady = [](void *self, nvimgcodecProcessingStatus_t status) {
      return of(self).statuses_.push_back(status), NVIMGCODEC_STATUS_SUCCESS;
    };
  }
  Request(const Request &) = delete;
  Request &operator=(const Request &) = delete;

  nvimgcodecImagePlaneInfo_t &plane() { return info.plane_info[0]; }
  const nvimgcodecImageDesc_t *image() const { return &image_; }
  const nvimgcodecCodeStreamDesc_t *code_stream() const { return &code_stream_; }

  // What the decoder said, once.
  nvimgcodecProcessingStatus_t status() const {
    CHECK_EQUAL(statuses_.size(), 1u);
    CHECK_EQUAL(mapped_, 0);
    return statuses_[0];
  }

  // The pixels are those of the decoder for the CPU, and those of a broken file are left alone.
  void check_pixels(bool good = true) {
    std::vector<uint64_t> actual(expected_.memory.size());
    memory_.copy_to(actual.data(), info.cuda_stream);
    const l3_output output = expected_.output();
    if (good) CHECK_EQUAL(l3_decode(&expected_.file, &expected_.wanted.region, &output, 0, nullptr), L3_OK);
    CHECK(actual == expected_.memory);
  }

  nvimgcodecImageInfo_t info{};

 private:
  static Request &of(void *self) { return *static_cast<Request *>(self); }

  Bytes file_;
  Destination expected_;
  ptx::DeviceBuffer memory_;
  nvimgcodecCodeStreamView_t view_{};
  nvimgcodecIoStreamDesc_t io_{};
  nvimgcodecCodeStreamDesc_t code_stream_{};
  nvimgcodecImageDesc_t image_{};
  int mapped_ = 0;
  std::vector<nvimgcodecProcessingStatus_t> statuses_;
};

using Requests = std::deque<Request>;

void decode(const Decoder &decoder, const Requests &requests) {
  std::vector<const nvimgcodecImageDesc_t *> images;
  std::vector<const nvimgcodecCodeStreamDesc_t *> code_streams;
  for (const Request &request : requests) {
    images.push_back(request.image());
    code_streams.push_back(request.code_stream());
  }
  CHECK_EQUAL(decoder.descriptor().decodeBatch(decoder.handle(), images.data(), code_streams.data(),
                                               int(requests.size()), nullptr, 0),
              NVIMGCODEC_STATUS_SUCCESS);
}

nvimgcodecProcessingStatus_t can_decode(const Decoder &decoder, const Request &request) {
  return decoder.descriptor().canDecode(decoder.handle(), request.image(), request.code_stream(), nullptr, 0);
}

const std::vector<DataFile> &golden() {
  static const std::vector<DataFile> files = data_files("golden");
  return files;
}

}  // namespace

// Regions and conversions in batches on two streams, all in flight at once.
TEST(batches) {
  Random random(1);
  reset_device(Streams::kLate);
  const Stream streams[2];
  const Framework framework;
  const Decoder decoder(framework);
  std::deque<Requests> batches;
  for (uint32_t i = 0; i < 6; i++) {
    batches.emplace_back();
    for (uint32_t images = random.between(1, 8); images; images--) {
      Wanted wanted = some(random, golden()[random.below(uint32_t(golden().size()))].bytes);
      // What DALI does not ask the framework for.
      if (wanted.color == L3_COLOR_YCBCR) wanted.color = L3_COLOR_RGB;
      if (wanted.sample == L3_SAMPLE_F16) wanted.sample = L3_SAMPLE_F32;
      batches.back().emplace_back(wanted, streams[i % 2]);
    }
    for (const Request &request : batches.back()) CHECK_EQUAL(can_decode(decoder, request), kSuccess);
    decode(decoder, batches.back());
  }
  CHECK(decoder.executor().threads() > 0);
  for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch)
    for (Request &request : *batch) {
      CHECK_EQUAL(request.status(), kSuccess);
      request.check_pixels();
    }
  CHECK_EQUAL(framework.log(), "");
}

TEST(nothing_waits_for_the_device) {
  reset_device(Streams::kLate);
  const Stream stream;
  const Framework framework;
  const Decoder decoder(framework);
  Requests requests;
  for (uint32_t i = 0; i < 2; i++) requests.emplace_back(whole(golden()[i].bytes), stream);
  decode(decoder, requests);
  CHECK_EQUAL(ptx::runtime::calls("cudaStreamSynchronize"), 0u);
  for (Request &request : requests) request.check_pixels();
}

// Broken files are named, and the others of the batch are decoded.
TEST(broken_files) {
  Random random(2);
  reset_device(Streams::kLate);
  const Stream stream;
  const Framework framework;
  const Decoder decoder(framework);
  const Bytes good = some_file(random);
  Bytes bad = good;
  bad[bad.size() / 2] ^= 1;
  Requests requests;
  for (uint32_t i = 0; i < 5; i++) requests.emplace_back(whole(i % 2 ? bad : good), stream);
  decode(decoder, requests);
  for (uint32_t i = 0; i < 5; i++) {
    CHECK_EQUAL(requests[i].status(), i % 2 ? NVIMGCODEC_PROCESSING_STATUS_IMAGE_CORRUPTED : kSuccess);
    requests[i].check_pixels(i % 2 == 0);
  }
  CHECK(framework.log().find("checksum") != std::string::npos);
}

TEST(requests_that_do_not_fit) {
  reset_device(Streams::kLate);
  const Stream stream, another;
  const Framework framework;
  const Decoder decoder(framework);
  const Bytes &file = golden()[0].bytes;
  Requests requests;
  for (uint32_t i = 0; i < 6; i++) requests.emplace_back(whole(file), stream);
  requests[1].info.buffer_kind = NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST;
  requests[2].plane().width++;
  requests[3].plane().num_channels++;
  requests[4].plane().row_stride--;
  requests.emplace_back(whole(file), another);
  decode(decoder, requests);
  for (uint32_t i = 0; i < requests.size(); i++) {
    const bool good = i == 0 || i == 5;
    CHECK_EQUAL(requests[i].status() == kSuccess, good);
    requests[i].check_pixels(good);
  }
  CHECK(framework.log().find("one CUDA stream") != std::string::npos);
}

// One image at a time, by several threads, as the framework tries those again that failed.
TEST(single_images_by_several_threads) {
  reset_device(Streams::kRandom);
  const Stream stream;
  const Framework framework;
  const Decoder decoder(framework);
  Requests requests;
  for (uint32_t i = 0; i < 4; i++) requests.emplace_back(whole(golden()[i].bytes), stream);
  std::vector<std::thread> threads;
  for (const Request &request : requests)
    threads.emplace_back(
        [&] { decoder.descriptor().decode(decoder.handle(), request.image(), request.code_stream(), nullptr, 0); });
  for (std::thread &thread : threads) thread.join();
  for (Request &request : requests) {
    CHECK_EQUAL(request.status(), kSuccess);
    request.check_pixels();
  }
}

// Whatever call fails, the images of the batch are decoded, one by one if need be.
TEST(every_call_fails_once) {
  uint64_t failures = 0;
  for (uint64_t number = 1;; number++) {
    const testing::Context context("call %u fails", uint32_t(number));
    reset_device(Streams::kLate, number);
    const Stream stream;
    const Live before = ptx::runtime::live();
    bool failed;
    {
      const Framework framework;
      const Decoder decoder(framework);
      Requests requests;
      for (uint32_t i = 0; i < 3; i++) requests.emplace_back(whole(golden()[10 * i].bytes), stream);
      ptx::runtime::fail_call(ptx::runtime::calls() + number);
      decode(decoder, requests);
      ptx::runtime::fail_call(0);
      failed = ptx::runtime::failed_call() != "";
      for (Request &request : requests) {
        CHECK_EQUAL(request.status(), kSuccess);
        request.check_pixels();
      }
    }
    CHECK(ptx::runtime::live() == before);
    failures += failed;
    if (!failed) break;
  }
  CHECK(failures > 8);
}

// The framework goes on to the decoder for the CPU.
TEST(without_a_device) {
  for (const bool cpu_only : {true, false}) {
    reset_device(Streams::kLate);
    const Stream stream;
    const Framework framework;
    // The device is made current, and then counted.
    ptx::runtime::fail_call(ptx::runtime::calls() + 2);
    const Decoder decoder(framework, cpu_only ? NVIMGCODEC_DEVICE_CPU_ONLY : 0);
    ptx::runtime::fail_call(0);
    const Request request(whole(golden()[0].bytes), stream);
    CHECK_EQUAL(can_decode(decoder, request), NVIMGCODEC_PROCESSING_STATUS_BACKEND_UNSUPPORTED);
    CHECK_EQUAL(framework.log(), cpu_only ? ""
                                          : "decoding on the CPU: there is no CUDA device, or its driver is too old "
                                            "for this build\n");
  }
}
