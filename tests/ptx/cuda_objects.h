// The device of tests of the decoder, and objects on it, which fail the test where a call does.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime.h"
#include "testing.h"

namespace ptx {

// A device as new.
inline void reset_device(runtime::Streams streams, uint64_t seed = 1, Order order = Order::kRandom, bool races = true) {
  runtime::reset({"sm_90", streams, {order, seed, races}});
}

inline void check_cuda(cudaError_t error) {
  if (error) testing::fail(__FILE__, __LINE__, cudaGetErrorString(error));
}

// A stream that does not wait for the default stream.
class Stream {
 public:
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  operator cudaStream_t() const { return stream_; }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t size) : size_(size) { check_cuda(cudaMalloc(&data_, size)); }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;

  void *data() const { return data_; }
  void fill(uint8_t value, cudaStream_t stream) { check_cuda(cudaMemsetAsync(data_, value, size_, stream)); }

  // Waits for the stream's work.
  void copy_to(void *host, cudaStream_t stream) const {
    check_cuda(cudaMemcpyAsync(host, data_, size_, cudaMemcpyDeviceToHost, stream));
    check_cuda(cudaStreamSynchronize(stream));
  }

 private:
  void *data_ = nullptr;
  size_t size_;
};

}  // namespace ptx
