#include "runtime.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

namespace {

// What an event marks: done once the work enqueued before it is.
struct Fence {
  bool done = false;
};

struct Work {
  std::function<void()> run = {};
  std::shared_ptr<Fence> waits_for = {}, completes = {};
};

}  // namespace

struct CUstream_st {
  bool blocking;  // ordered with the default stream
  std::deque<Work> queue = {};
};

struct CUevent_st {
  std::shared_ptr<Fence> fence = {};  // of the last record; null: none yet
};

namespace {

using namespace ptx;
using runtime::Streams;

// Pinned memory. What was released stays out of reach, so that who still uses it is noticed.
struct Pinned {
  size_t size;
  bool live;
};

class Device {
 public:
  explicit Device(const runtime::Setup &setup)
      : setup_(setup), random_(setup.options.seed), machine_(memory_, setup.options) {}

  ~Device() {
    for (const auto &[begin, pinned] : pinned_) munmap(begin, mapped(pinned.size));
  }

  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  // Begins a call that may fail. If that is not cudaSuccess, it is what the call returns.
  cudaError_t begin(const char *name, cudaError_t failure) {
    if (!fault_.empty()) return last_error_ = cudaErrorLaunchFailure;
    calls_of_[name]++;
    if (++calls_ == failing_call_) {
      failed_call_ = name;
      return last_error_ = failure;
    }
    return cudaSuccess;
  }

  // Ends a call: what may have happened by now happens. Returns what the call returns.
  cudaError_t end() {
    if (setup_.streams == Streams::kAtOnce) drain_all();
    if (setup_.streams == Streams::kRandom)
      while (random_() % 3) {
        auto stream = streams_.begin();
        std::advance(stream, ptrdiff_t(random_() % streams_.size()));
        step(**stream);
      }
    return fault_.empty() ? cudaSuccess : last_error_ = cudaErrorLaunchFailure;
  }

  cudaError_t refuse(cudaError_t error) { return last_error_ = error; }
  cudaError_t take_last_error() { return std::exchange(last_error_, cudaSuccess); }

  // ---- Memory

  void *allocate(size_t size) { return reinterpret_cast<void *>(memory_.allocate(size)); }
  bool release(void *begin) { return !begin || memory_.release(reinterpret_cast<uint64_t>(begin)); }

  void *allocate_pinned(size_t size) {
    void *const begin =
        mmap(nullptr, mapped(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) throw std::bad_alloc();
    std::memset(begin, 0xCB, size);
    pinned_[static_cast<uint8_t *>(begin)] = {size, true};
    return begin;
  }

  bool release_pinned(void *begin) {
    if (!begin) return true;
    const auto found = pinned_.find(static_cast<uint8_t *>(begin));
    if (found == pinned_.end() || !found->second.live) return false;
    madvise(begin, mapped(found->second.size), MADV_DONTNEED);
    mprotect(begin, mapped(found->second.size), PROT_NONE);
    found->second.live = false;
    return true;
  }

  // ---- Streams

  cudaStream_t create_stream(bool blocking) { return *streams_.insert(new CUstream_st{blocking}).first; }

  bool is_stream(cudaStream_t stream) const { return !stream || streams_.contains(stream); }

  void destroy_stream(cudaStream_t stream) {
    drain(*stream);
    streams_.erase(stream);
    delete stream;
  }

  void enqueue(cudaStream_t handle, Work work) {
    CUstream_st &stream = handle ? *handle : default_stream_;
    if (!handle) {
      for (cudaStream_t other : streams_)
        if (other->blocking && other != &default_stream_) drain(*other);
    } else if (stream.blocking) {
      drain(default_stream_);
    }
    stream.queue.push_back(std::move(work));
  }

  void drain(cudaStream_t stream) { drain(stream ? *stream : default_stream_); }

  void drain_all() {
    for (cudaStream_t stream : streams_) drain(*stream);
  }

  void wait_for(const Fence &fence) {
    while (!fence.done) {
      const auto completes = [&](cudaStream_t stream) {
        return std::any_of(stream->queue.begin(), stream->queue.end(),
                           [&](const Work &work) { return work.completes.get() == &fence; });
      };
      const auto stream = std::find_if(streams_.begin(), streams_.end(), completes);
      if (stream == streams_.end()) return;  // a fault has emptied the queues
      step(**stream);
    }
  }

  void enqueue_copy(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
    const bool to_device = memory_.is_device(reinterpret_cast<uint64_t>(to)),
               from_device = memory_.is_device(reinterpret_cast<uint64_t>(from));
    if (to_device != (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
        from_device != (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)) {
      fail("cudaMemcpyAsync: a copy that goes another way than it says");
      return;
    }
    if (to_device && !from_device && !find_pinned(from)) {  // pageable memory has been read when the call returns
      const auto *const bytes = static_cast<const uint8_t *>(from);
      enqueue(stream,
              {[this, to, size, kept = std::vector<uint8_t>(bytes, bytes + size)] { copy(to, kept.data(), size); }});
      return;
    }
    enqueue(stream, {[this, to, from, size] { copy(to, from, size); }});
    if (!to_device && !find_pinned(to)) drain(stream);  // and written
  }

  void enqueue_set(void *to, int value, size_t size, cudaStream_t stream) {
    enqueue(stream, {[this, to, value, size] {
              Allocation &memory = memory_.get(reinterpret_cast<uint64_t>(to), size, "cudaMemsetAsync: sets");
              const auto at = ptrdiff_t(reinterpret_cast<uint64_t>(to) - memory.begin);
              std::fill_n(memory.bytes.begin() + at, size, uint8_t(value));
              std::fill_n(memory.written.begin() + at, size, uint8_t{1});
            }});
  }

  // ---- Kernels

  const Kernel *kernel(const void *function) const {
    const auto name = functions().find(function);
    return name == functions().end() ? nullptr : find_kernel(name->second, setup_.target);
  }

  void enqueue_launch(const Kernel &kernel, uint32_t blocks, uint32_t threads, void **arguments, cudaStream_t stream) {
    std::vector<uint8_t> parameters(kernel.parameter_size());
    for (const Kernel::Parameter &one : kernel.parameters)
      std::memcpy(parameters.data() + one.offset, *arguments++, one.size);
    launches_.push_back({&kernel, blocks, threads, parameters});
    enqueue(stream, {[=, this, &kernel] { machine_.launch(kernel, blocks, threads, parameters); }});
  }

  // Of functions on the host: the names of the kernels they launch.
  static std::map<const void *, std::string> &functions() {
    static std::map<const void *, std::string> all;
    return all;
  }

  // ---- For tests

  uint64_t calls() const { return calls_; }
  uint64_t calls(const std::string &name) { return calls_of_[name]; }
  void fail_call(uint64_t number) { failing_call_ = number; }
  const std::string &failed_call() const { return failed_call_; }
  const std::string &fault() const { return fault_; }
  const std::vector<runtime::Launch> &launches() const { return launches_; }
  const Machine &machine() const { return machine_; }
  void add_events(int difference) { events_ += size_t(difference); }
  runtime::Live live() const {
    size_t pinned = 0;
    for (const auto &[begin, one] : pinned_) pinned += one.live;
    return {memory_.allocations(), pinned, streams_.size() - 1, events_};
  }

 private:
  static size_t mapped(size_t size) { return size + 1; }

  Pinned *find_pinned(const void *address) {
    const auto *const byte = static_cast<const uint8_t *>(address);
    auto after = pinned_.upper_bound(const_cast<uint8_t *>(byte));
    if (after == pinned_.begin()) return nullptr;
    --after;
    return byte < after->first + after->second.size ? &after->second : nullptr;
  }

  // Bytes between host and device. Throws Fault.
  void copy(void *to, const void *from, size_t size) {
    for (const void *end : {static_cast<const void *>(to), from})
      if (const Pinned *pinned = find_pinned(end); pinned && !pinned->live)
        throw Fault("cudaMemcpyAsync: copies from or to pinned memory that was released");
    const auto place = [&](const void *end, const char *what) -> Allocation * {
      const auto address = reinterpret_cast<uint64_t>(end);
      return memory_.is_device(address) ? &memory_.get(address, size, what) : nullptr;
    };
    Allocation *const target = place(to, "cudaMemcpyAsync: writes");
    const Allocation *const source = place(from, "cudaMemcpyAsync: reads");
    const size_t target_at = target ? reinterpret_cast<uint64_t>(to) - target->begin : 0;
    const uint8_t *const bytes = source ? source->bytes.data() + (reinterpret_cast<uint64_t>(from) - source->begin)
                                        : static_cast<const uint8_t *>(from);
    std::memcpy(target ? target->bytes.data() + target_at : static_cast<uint8_t *>(to), bytes, size);
    if (target) std::fill_n(target->written.begin() + ptrdiff_t(target_at), size, uint8_t{1});
  }

  void drain(CUstream_st &stream) {
    while (step(stream)) {
    }
  }

  // Does the first work of a stream; false: there is none.
  bool step(CUstream_st &stream) {
    if (stream.queue.empty()) return false;
    if (const auto fence = stream.queue.front().waits_for) wait_for(*fence);
    if (stream.queue.empty()) return false;  // a fault meanwhile
    const Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    try {
      if (work.run) work.run();
    } catch (const Fault &fault) {
      fail(fault.what());
    }
    if (work.completes) work.completes->done = true;
    return true;
  }

  // The device does nothing any more.
  void fail(const std::string &what) {
    fault_ = what;
    for (cudaStream_t stream : streams_) stream->queue.clear();
  }

  const runtime::Setup setup_;
  std::mt19937_64 random_;
  Memory memory_;
  Machine machine_;
  std::map<uint8_t *, Pinned> pinned_;
  CUstream_st default_stream_{true};
  std::set<cudaStream_t> streams_{&default_stream_};
  size_t events_ = 0;
  cudaError_t last_error_ = cudaSuccess;
  std::string fault_, failed_call_;
  uint64_t calls_ = 0, failing_call_ = 0;
  std::map<std::string, uint64_t> calls_of_;
  std::vector<runtime::Launch> launches_;
};

std::recursive_mutex mutex;  // of the device: programs may call from several threads
std::unique_ptr<Device> device_;

Device &device() {
  if (!device_) device_ = std::make_unique<Device>(runtime::Setup{});
  return *device_;
}

// A call that may fail: body(device) unless it does.
template <typename Body>
cudaError_t call(const char *name, cudaError_t failure, Body body) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t error = device().begin(name, failure)) return error;
  if (const cudaError_t error = body(device())) return device().refuse(error);
  return device().end();
}

// A call that releases something: it cannot be made to fail.
template <typename Body>
cudaError_t release(Body body) {
  const std::lock_guard lock(mutex);
  return body(device()) ? cudaSuccess : device().refuse(cudaErrorInvalidValue);
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;  // of launches that are being made

cudaError_t launch(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
  return call("cudaLaunchKernel", cudaErrorLaunchOutOfResources, [&](Device &d) {
    const Kernel *const kernel = d.kernel(function);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (!d.is_stream(stream)) return cudaErrorInvalidResourceHandle;
    const bool one_dimensional = grid.y * grid.z * block.y * block.z == 1;
    if (!grid.x || !block.x || !one_dimensional || block.x > kernel->max_threads || shared)
      return cudaErrorInvalidConfiguration;
    d.enqueue_launch(*kernel, grid.x, block.x, arguments, stream);
    return cudaSuccess;
  });
}

}  // namespace

namespace ptx::runtime {

void reset(const Setup &setup) {
  const std::lock_guard lock(mutex);
  if (device_ && device_->live() != Live{}) {
    std::fprintf(stderr, "something was left on the device\n");
    std::abort();
  }
  device_ = std::make_unique<Device>(setup);
}

uint64_t calls() { return device().calls(); }
uint64_t calls(const std::string &name) { return device().calls(name); }
void fail_call(uint64_t number) { device().fail_call(number); }
std::string failed_call() { return device().failed_call(); }
Live live() { return device().live(); }
std::vector<Launch> launches() { return device().launches(); }
Counts counts(const Kernel &kernel) { return device().machine().counts(kernel); }

}  // namespace ptx::runtime

// ---- What nvcc's host code calls

extern "C" {

void **__cudaRegisterFatBinary(void *) {
  static void *handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}

void __cudaRegisterFunction(void **, const char *function, char *, const char *name, int, uint3 *, uint3 *, dim3 *,
                            dim3 *, int *) {
  Device::functions()[function] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid, *block = last.block, *shared = last.shared, *static_cast<cudaStream_t *>(stream) = last.stream;
  return cudaSuccess;
}

// nvcc 13 asks for a handle, which here is the function itself; nvcc 12 launches functions.
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void *>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
  return launch(function, grid, block, arguments, shared, stream);
}

// ---- The runtime's interface

cudaError_t cudaGetLastError() {
  const std::lock_guard lock(mutex);
  return device().take_last_error();
}

const char *cudaGetErrorString(cudaError_t error) {
  const std::lock_guard lock(mutex);
  if (error == cudaErrorLaunchFailure) return device().fault().c_str();
  thread_local char text[40];
  std::snprintf(text, sizeof text, "CUDA error %d", int(error));
  return text;
}

cudaError_t cudaGetDeviceCount(int *count) {
  return call("cudaGetDeviceCount", cudaErrorNoDevice, [&](Device &) { return *count = 1, cudaSuccess; });
}
cudaError_t cudaGetDevice(int *number) {
  return call("cudaGetDevice", cudaErrorUnknown, [&](Device &) { return *number = 0, cudaSuccess; });
}
cudaError_t cudaSetDevice(int number) {
  return call("cudaSetDevice", cudaErrorUnknown,
              [&](Device &) { return number == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
  return call("cudaFuncGetAttributes", cudaErrorNoKernelImageForDevice, [&](Device &d) {
    *attributes = {};
    return d.kernel(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  });
}

cudaError_t cudaMalloc(void **memory, size_t size) {
  return call("cudaMalloc", cudaErrorMemoryAllocation,
              [&](Device &d) { return *memory = d.allocate(size), cudaSuccess; });
}
cudaError_t cudaHostAlloc(void **memory, size_t size, unsigned) {
  return call("cudaHostAlloc", cudaErrorMemoryAllocation,
              [&](Device &d) { return *memory = d.allocate_pinned(size), cudaSuccess; });
}
cudaError_t cudaFree(void *memory) {
  return release([&](Device &d) { return d.release(memory); });
}
cudaError_t cudaFreeHost(void *memory) {
  return release([&](Device &d) { return d.release_pinned(memory); });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", cudaErrorUnknown, [&](Device &d) {
    if (!d.is_stream(stream)) return cudaErrorInvalidResourceHandle;
    d.enqueue_copy(to, from, size, kind, stream);
    return cudaSuccess;
  });
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
  return call("cudaMemsetAsync", cudaErrorUnknown, [&](Device &d) {
    if (!d.is_stream(stream)) return cudaErrorInvalidResourceHandle;
    d.enqueue_set(to, value, size, stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", cudaErrorMemoryAllocation,
              [&](Device &d) { return *stream = d.create_stream(!(flags & cudaStreamNonBlocking)), cudaSuccess; });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return release([&](Device &d) {
    const bool known = stream && d.is_stream(stream);
    if (known) d.destroy_stream(stream);
    return known;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", cudaErrorUnknown, [&](Device &d) {
    if (!d.is_stream(stream)) return cudaErrorInvalidResourceHandle;
    d.drain(stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", cudaErrorUnknown, [&](Device &d) {
    if (!d.is_stream(stream)) return cudaErrorInvalidResourceHandle;
    if (event->fence) d.enqueue(stream, {{}, event->fence, {}});
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  return call("cudaEventCreateWithFlags", cudaErrorMemoryAllocation, [&](Device &d) {
    *event = new CUevent_st;
    d.add_events(1);
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return release([&](Device &d) {
    delete event;
    d.add_events(-1);
    return true;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", cudaErrorUnknown, [&](Device &d) {
    if (!d.is_stream(stream)) return cudaErrorInvalidResourceHandle;
    event->fence = std::make_shared<Fence>();
    d.enqueue(stream, {{}, {}, event->fence});
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", cudaErrorUnknown, [&](Device &d) {
    if (event->fence) d.wait_for(*event->fence);
    return cudaSuccess;
  });
}

}  // extern "C"
