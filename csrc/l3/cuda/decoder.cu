// The batch decoder: buffers, events and the order of things on the stream (l3_cuda.h).
#include <algorithm>
#include <new>

#include "batch.h"
#include "format/error.h"
#include "launch.h"

namespace l3 {
namespace {

l3_status device_failure(l3_error *error, cudaError_t code, const char *action) {
  cudaGetLastError();  // else the next launch would report this failure as its own
  return fail(error, L3_ERROR_DEVICE, "%s failed: %s", action, cudaGetErrorString(code));
}

// One of the two places a batch can be in: pinned memory where the host gathers it, and device memory where kernels
// read it.
class Staging {
 public:
  Staging() = default;
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  ~Staging() {
    if (decoded_) cudaEventSynchronize(decoded_);
    release();
    if (copied_) cudaEventDestroy(copied_);
    if (decoded_) cudaEventDestroy(decoded_);
  }

  cudaError_t create() {
    constexpr unsigned flags =
        cudaEventDisableTiming | cudaEventBlockingSync;  // a thread that waits leaves the CPU to others
    if (cudaError_t code = cudaEventCreateWithFlags(&copied_, flags)) return code;
    return cudaEventCreateWithFlags(&decoded_, flags);
  }

  // Waits until the host may write to host(), and makes room.
  cudaError_t prepare(size_t size) {
    if (size <= capacity_) return cudaEventSynchronize(copied_);
    if (cudaError_t code = cudaEventSynchronize(decoded_)) return code;
    release();
    const size_t capacity = size + size / 4;  // batches vary; grow seldom
    if (cudaError_t code = cudaHostAlloc(reinterpret_cast<void **>(&host_), capacity,
                                         cudaHostAllocWriteCombined | cudaHostAllocPortable))
      return code;
    if (cudaError_t code = cudaMalloc(reinterpret_cast<void **>(&device_), capacity)) return code;
    capacity_ = capacity;
    return cudaSuccess;
  }

  // Enqueues the copy of the first `size` bytes. Kernels of an earlier batch may be reading the device's side on
  // another stream.
  cudaError_t copy(size_t size, cudaStream_t stream) {
    if (cudaError_t code = cudaStreamWaitEvent(stream, decoded_, 0)) return code;
    if (cudaError_t code = cudaMemcpyAsync(device_, host_, size, cudaMemcpyHostToDevice, stream)) return code;
    return cudaEventRecord(copied_, stream);
  }

  cudaError_t mark_decoded(cudaStream_t stream) { return cudaEventRecord(decoded_, stream); }

  uint8_t *host() const { return host_; }
  const uint8_t *device() const { return device_; }

 private:
  void release() {
    cudaFreeHost(host_);
    cudaFree(device_);
    host_ = device_ = nullptr;
    capacity_ = 0;
  }

  uint8_t *host_ = nullptr, *device_ = nullptr;
  size_t capacity_ = 0;
  cudaEvent_t copied_ = nullptr, decoded_ = nullptr;
};

void one_after_the_other(void *, size_t count, void (*body)(void *, size_t), void *argument) {
  for (size_t i = 0; i < count; i++) body(argument, i);
}

}  // namespace
}  // namespace l3

using namespace l3;

struct l3_cuda_decoder {
  l3_status create(l3_error *error) {
    int devices = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&devices); code || devices == 0) {
      cudaGetLastError();
      return fail(error, L3_ERROR_UNSUPPORTED, "there is no CUDA device, or its driver is too old for this build");
    }
    if (const cudaError_t code = check_device()) {
      cudaGetLastError();
      return fail(error, L3_ERROR_UNSUPPORTED, "this build cannot use the CUDA device: %s", cudaGetErrorString(code));
    }
    for (Staging &staging : stagings_)
      if (cudaError_t code = staging.create()) return device_failure(error, code, "creating an event");
    return L3_OK;
  }

  l3_status decode(const l3_cuda_image *images, size_t count, const l3_cuda_options &options, cudaStream_t stream,
                   size_t *failed, l3_error *error) {
    *failed = count;
    if (count == 0) return L3_OK;
    if (l3_status status = plan_.plan(images, count, failed, error)) return status;
    Staging &staging = stagings_[next_];
    if (cudaError_t code = staging.prepare(plan_.layout().end))
      return device_failure(error, code, "allocating memory for a batch");
    if (l3_status status = gather(count, options, staging.host(), failed, error)) return status;
    next_ = 1 - next_;
    const l3_status status = enqueue(staging, stream, error);
    if (status) cudaStreamSynchronize(stream);  // events may not tell when the buffers are free
    return status;
  }

 private:
  l3_status enqueue(Staging &staging, cudaStream_t stream, l3_error *error) {
    if (cudaError_t code = staging.copy(plan_.layout().end, stream))
      return device_failure(error, code, "copying a batch to the device");
    const cudaError_t launched = launch_batch(staging.device(), plan_.layout(), stream);
    const cudaError_t marked = staging.mark_decoded(stream);
    if (launched) return device_failure(error, launched, "launching a kernel");
    if (marked) return device_failure(error, marked, "recording an event");
    return L3_OK;
  }

  struct GatherJob {
    BatchPlan &plan;
    bool verify;
    uint8_t *buffer;
    l3_error *errors;
  };

  l3_status gather(size_t count, const l3_cuda_options &options, uint8_t *buffer, size_t *failed, l3_error *error) {
    errors_.resize(count);
    l3_error *const errors = options.errors ? options.errors : errors_.data();
    std::fill_n(errors, count, l3_error{});
    GatherJob job{plan_, options.verify != 0, buffer, errors};
    const auto body = [](void *argument, size_t i) {
      GatherJob &job = *static_cast<GatherJob *>(argument);
      job.plan.gather(i, job.verify, job.buffer, &job.errors[i]);
    };
    const l3_parallel_for parallel = options.parallel ? options.parallel : one_after_the_other;
    parallel(options.parallel_context, count, body, &job);
    const auto broken = std::find_if(errors, errors + count, [](const l3_error &e) { return e.status != L3_OK; });
    if (broken != errors + count && !options.errors) {
      *failed = size_t(broken - errors);
      if (error) *error = *broken;
      return broken->status;
    }
    plan_.finish(buffer);
    return L3_OK;
  }

  Staging stagings_[2];
  uint32_t next_ = 0;
  BatchPlan plan_;
  std::vector<l3_error> errors_;
};

extern "C" l3_status l3_cuda_create(l3_cuda_decoder **decoder, l3_error *error) {
  *decoder = new (std::nothrow) l3_cuda_decoder;
  if (!*decoder) return fail(error, L3_ERROR_DEVICE, "out of memory");
  const l3_status status = (*decoder)->create(error);
  if (status) {
    delete *decoder;
    *decoder = nullptr;
  }
  return status;
}

extern "C" void l3_cuda_destroy(l3_cuda_decoder *decoder) { delete decoder; }

extern "C" l3_status l3_cuda_decode(l3_cuda_decoder *decoder, const l3_cuda_image *images, size_t count,
                                    const l3_cuda_options *options, l3_cuda_stream stream, size_t *failed,
                                    l3_error *error) {
  try {
    return decoder->decode(images, count, options ? *options : l3_cuda_options{}, stream, failed, error);
  } catch (const std::bad_alloc &) {
    return fail(error, L3_ERROR_DEVICE, "out of memory");
  }
}

extern "C" l3_status l3_cuda_get_device(int *device, l3_error *error) {
  if (cudaError_t code = cudaGetDevice(device)) return l3::device_failure(error, code, "cudaGetDevice");
  return L3_OK;
}

extern "C" l3_status l3_cuda_set_device(int device, l3_error *error) {
  if (cudaError_t code = cudaSetDevice(device)) return l3::device_failure(error, code, "cudaSetDevice");
  return L3_OK;
}

extern "C" l3_status l3_cuda_clear(void *data, size_t size, l3_cuda_stream stream, l3_error *error) {
  if (cudaError_t code = cudaMemsetAsync(data, 0, size, stream)) return l3::device_failure(error, code, "clearing");
  return L3_OK;
}
