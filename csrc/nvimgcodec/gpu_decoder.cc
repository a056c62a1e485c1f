// The decoder for the GPU: what the framework hands over as a batch becomes one batch of l3/l3_cuda.h.

#include "gpu_decoder.h"

#include <dlfcn.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "decode_request.h"
#include "executor_loop.h"
#include "l3/l3_cuda.h"

namespace dali_l3 {
namespace {

constexpr char kId[] = "l3_gpu_decoder";

// A function of the CUDA driver, or null where there is no driver.
template <typename Function>
Function *DriverFunction(const char *name) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  return driver ? reinterpret_cast<Function *>(dlsym(driver, name)) : nullptr;
}

// Makes a device the current one of this thread while it lives. Afterwards the thread has the context that it had
// before, or none: going back by l3_cuda_set_device would make a context on device 0, and take memory there, for every
// thread that had none.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device_id) {
    static const auto get_context = DriverFunction<int(void **context)>("cuCtxGetCurrent");
    if (get_context) get_context(&previous_);
    l3_cuda_set_device(device_id, nullptr);
  }
  ~CurrentDevice() {
    static const auto set_context = DriverFunction<int(void *context)>("cuCtxSetCurrent");
    if (set_context) set_context(previous_);
  }
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;

 private:
  void *previous_ = nullptr;
};

// One decoder of the framework, on one device.
class Instance {
 public:
  Instance(const Log &log, const nvimgcodecExecutionParams_t &params)
      : log_(log), device_id_(params.device_id), executor_{params.executor, params.device_id} {
    if (device_id_ == NVIMGCODEC_DEVICE_CPU_ONLY) return;
    if (device_id_ == NVIMGCODEC_DEVICE_CURRENT) l3_cuda_get_device(&device_id_, nullptr);
    CurrentDevice current(device_id_);
    l3_error error;
    if (l3_cuda_create(&decoder_, &error) != L3_OK)
      log_.Error((std::string("decoding on the CPU: ") + error.message).c_str());
  }

  ~Instance() {
    if (!decoder_) return;
    CurrentDevice current(device_id_);
    l3_cuda_destroy(decoder_);
  }

  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  const Log &log() const { return log_; }
  bool HasDevice() const { return decoder_ != nullptr; }

  // Decodes a batch and reports on each of its images. Threads of the executor help if it is `parallel`. Returns
  // whether all succeeded.
  bool Decode(const nvimgcodecImageDesc_t **images, const nvimgcodecCodeStreamDesc_t **code_streams, int count,
              bool parallel) {
    std::lock_guard lock(mutex_);
    Batch batch;
    bool all = true;
    for (int i = 0; i < count; i++) {
      try {
        batch.Add(images[i], code_streams[i]);
      } catch (const std::runtime_error &e) {
        all = false;
        Fail(images[i], e.what());
      }
    }
    CurrentDevice current(device_id_);
    return DecodeParsed(batch, parallel) && all;
  }

 private:
  struct Batch {
    // Throws std::runtime_error with the reason when the image cannot be decoded.
    void Add(const nvimgcodecImageDesc_t *image, const nvimgcodecCodeStreamDesc_t *code_stream) {
      const auto info = ImageInfoOf(image);
      if (requests.empty()) stream = info.cuda_stream;
      if (info.cuda_stream != stream) throw std::runtime_error("the images of a batch must be on one CUDA stream");
      const auto &file = bytes.emplace_back(code_stream->io_stream);
      const auto request = ParseRequest(info, code_stream, file, NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_DEVICE);
      requests.push_back({request.file, request.region, request.output});
      images.push_back(image);
    }

    std::deque<StreamBytes> bytes;  // of all files; they must outlive the requests
    std::vector<l3_cuda_image> requests;
    std::vector<const nvimgcodecImageDesc_t *> images;
    l3_cuda_stream stream = nullptr;
  };

  bool DecodeParsed(const Batch &batch, bool parallel) {
    const size_t count = batch.requests.size();
    l3_error error;
    if (count > 1 && Enqueue(batch, 0, count, parallel, &error)) {
      for (const auto *image : batch.images) Succeed(image);
      return true;
    }
    // A broken file fails a batch. The others are decoded all the same.
    bool all = true;
    for (size_t i = 0; i < count; i++) {
      if (Enqueue(batch, i, 1, false, &error)) {
        Succeed(batch.images[i]);
      } else {
        all = false;
        Fail(batch.images[i], error.message);
      }
    }
    return all;
  }

  bool Enqueue(const Batch &batch, size_t first, size_t count, bool parallel, l3_error *error) {
    l3_cuda_options options = {};
    options.verify = 1;
    if (parallel) {
      options.parallel = ParallelFor;
      options.parallel_context = &executor_;
    }
    size_t failed;
    return l3_cuda_decode(decoder_, &batch.requests[first], count, &options, batch.stream, &failed, error) == L3_OK;
  }

  void Succeed(const nvimgcodecImageDesc_t *image) {
    image->imageReady(image->instance, NVIMGCODEC_PROCESSING_STATUS_SUCCESS);
  }

  void Fail(const nvimgcodecImageDesc_t *image, const char *reason) {
    log_.Error(reason);
    image->imageReady(image->instance, NVIMGCODEC_PROCESSING_STATUS_IMAGE_CORRUPTED);
  }

  Log log_;
  int device_id_;
  Executor executor_;
  std::mutex mutex_;  // a decoder serves one thread at a time; Decode may be called by several
  l3_cuda_decoder *decoder_ = nullptr;
};

Instance *ToInstance(nvimgcodecDecoder_t handle) { return reinterpret_cast<Instance *>(handle); }

nvimgcodecStatus_t Destroy(nvimgcodecDecoder_t decoder) noexcept {
  delete ToInstance(decoder);
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecProcessingStatus_t CanDecode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t *image,
                                       const nvimgcodecCodeStreamDesc_t *code_stream,
                                       const nvimgcodecDecodeParams_t * /*params*/, int /*thread_idx*/) noexcept {
  if (!ToInstance(decoder)->HasDevice()) return NVIMGCODEC_PROCESSING_STATUS_BACKEND_UNSUPPORTED;
  const nvimgcodecProcessingStatus_t failed = NVIMGCODEC_PROCESSING_STATUS_FAIL;
  return Guarded(ToInstance(decoder)->log(), failed, [&] { return CheckRequest(ImageInfoOf(image), code_stream); });
}

// Called for the images of a batch that failed, by threads of the executor: these cannot help one another.
nvimgcodecStatus_t Decode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t *image,
                          const nvimgcodecCodeStreamDesc_t *code_stream, const nvimgcodecDecodeParams_t * /*params*/,
                          int /*thread_idx*/) noexcept {
  const auto status = Guarded(ToInstance(decoder)->log(), NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED, [&] {
    const bool decoded = ToInstance(decoder)->Decode(&image, &code_stream, 1, false);
    return decoded ? NVIMGCODEC_STATUS_SUCCESS : NVIMGCODEC_STATUS_EXTENSION_BAD_CODE_STREAM;
  });
  if (status == NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED)
    image->imageReady(image->instance, NVIMGCODEC_PROCESSING_STATUS_FAIL);
  return status;
}

// The status is that of the call; each image has its own.
nvimgcodecStatus_t DecodeBatch(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t **images,
                               const nvimgcodecCodeStreamDesc_t **code_streams, int batch_size,
                               const nvimgcodecDecodeParams_t * /*params*/, int /*thread_idx*/) noexcept {
  const auto status = Guarded(ToInstance(decoder)->log(), NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED, [&] {
    ToInstance(decoder)->Decode(images, code_streams, batch_size, true);
    return NVIMGCODEC_STATUS_SUCCESS;
  });
  if (status != NVIMGCODEC_STATUS_SUCCESS) {
    for (int i = 0; i < batch_size; i++) images[i]->imageReady(images[i]->instance, NVIMGCODEC_PROCESSING_STATUS_FAIL);
  }
  return status;
}

}  // namespace

GpuDecoder::GpuDecoder(const nvimgcodecFrameworkDesc_t *framework)
    : Component(framework, NVIMGCODEC_STRUCTURE_TYPE_DECODER_DESC, kId) {
  descriptor_.instance = this;
  descriptor_.backend_kind = NVIMGCODEC_BACKEND_KIND_GPU_ONLY;
  descriptor_.create = Create;
  descriptor_.destroy = Destroy;
  descriptor_.getMetadata = NoMetadata;
  descriptor_.canDecode = CanDecode;
  descriptor_.decode = Decode;
  descriptor_.decodeBatch = DecodeBatch;
}

// Never fails for want of a device: the framework would not go on to the decoder for the CPU.
nvimgcodecStatus_t GpuDecoder::Create(void *instance, nvimgcodecDecoder_t *decoder,
                                      const nvimgcodecExecutionParams_t *exec_params,
                                      const char * /*options*/) noexcept {
  const Log &log = static_cast<GpuDecoder *>(instance)->log_;
  return Guarded(log, NVIMGCODEC_STATUS_EXTENSION_INTERNAL_ERROR, [&] {
    *decoder = reinterpret_cast<nvimgcodecDecoder_t>(new Instance(log, *exec_params));
    return NVIMGCODEC_STATUS_SUCCESS;
  });
}

}  // namespace dali_l3
