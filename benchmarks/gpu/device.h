// Memory and time on the CUDA device, with errors as exceptions.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace benchmark {

inline void check(cudaError_t code, const char *action) {
  if (code) throw std::runtime_error(std::string(action) + ": " + cudaGetErrorString(code));
}

// Memory on the device.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t size) { check(cudaMalloc(&data_, size), "cudaMalloc"); }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(DeviceBuffer &&other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  DeviceBuffer &operator=(DeviceBuffer &&) = delete;

  uint8_t *data() const { return static_cast<uint8_t *>(data_); }
  void upload(const void *source, size_t size) {
    check(cudaMemcpy(data_, source, size, cudaMemcpyHostToDevice), "copying to the device");
  }

 private:
  void *data_ = nullptr;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "waiting for the device"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double seconds_since(const Event &start) const {
    float milliseconds = 0;
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The median of the times, by events, that the device takes for enqueue(round) for round = 0, 1, ..., after one round
// that does not count. Repeats for at least `seconds` of the device's time and 5 rounds.
template <typename Enqueue>
double median_seconds(const Stream &stream, double seconds, Enqueue enqueue) {
  Event start, end;
  std::vector<double> measured;
  double total = 0;
  for (size_t round = 0; round <= 5 || total < seconds; round++) {
    start.record(stream);
    enqueue(round);
    end.record(stream);
    const double elapsed = end.seconds_since(start);
    if (round == 0) continue;
    measured.push_back(elapsed);
    total += elapsed;
  }
  return median(std::move(measured));
}

}  // namespace benchmark
