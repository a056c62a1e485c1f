// The stand-in for the CUDA runtime: when work happens, and what it notices.
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "testing.h"

using namespace ptx::runtime;

namespace {

void reset_to(Streams streams, uint64_t seed = 1) {
  Setup setup;
  setup.streams = streams;
  setup.options.seed = seed;
  reset(setup);
}

// Two streams, an event, a device buffer and a pinned one of a byte each.
struct World {
  World() {
    for (cudaStream_t &stream : streams) CHECK_EQUAL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), 0);
    CHECK_EQUAL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), 0);
    CHECK_EQUAL(cudaMalloc(&device, 1), 0);
    CHECK_EQUAL(cudaHostAlloc(&pinned, 1, 0), 0);
  }
  ~World() {
    for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
    cudaEventDestroy(event);
    cudaFree(device);
    cudaFreeHost(pinned);
  }

  uint8_t &host() { return *static_cast<uint8_t *>(pinned); }
  void set(uint8_t value, int stream) { CHECK_EQUAL(cudaMemsetAsync(device, value, 1, streams[stream]), 0); }
  void upload(int stream) {
    CHECK_EQUAL(cudaMemcpyAsync(device, pinned, 1, cudaMemcpyHostToDevice, streams[stream]), 0);
  }
  void download(int stream) {
    CHECK_EQUAL(cudaMemcpyAsync(pinned, device, 1, cudaMemcpyDeviceToHost, streams[stream]), 0);
  }
  void wait(int stream) { CHECK_EQUAL(cudaStreamSynchronize(streams[stream]), 0); }

  cudaStream_t streams[2];
  cudaEvent_t event;
  void *device, *pinned;
};

// The signal that ends a process that does this, or 0.
template <typename Body>
int signal_of(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST(work_is_late) {
  reset_to(Streams::kLate);
  World world;
  world.host() = 1;
  world.upload(0);
  world.host() = 2;  // before the copy
  world.wait(0);
  world.host() = 3;
  world.download(0);
  CHECK_EQUAL(int(world.host()), 3);
  world.wait(1);  // another stream
  CHECK_EQUAL(int(world.host()), 3);
  world.wait(0);
  CHECK_EQUAL(int(world.host()), 2);
}

TEST(work_is_done_at_once) {
  reset_to(Streams::kAtOnce);
  World world;
  world.set(7, 0);
  world.download(1);
  CHECK_EQUAL(int(world.host()), 7);
}

TEST(work_is_done_at_random) {
  std::set<int> seen;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    reset_to(Streams::kRandom, seed);
    World world;
    world.set(1, 0);
    world.set(2, 1);
    world.wait(0);
    world.wait(1);
    world.download(0);
    world.wait(0);
    seen.insert(world.host());
  }
  CHECK(seen == (std::set<int>{1, 2}));
}

TEST(a_stream_waits_for_an_event) {
  for (const bool waits : {true, false}) {
    reset_to(Streams::kLate);
    World world;
    world.set(1, 0);
    world.wait(0);
    world.set(2, 0);
    CHECK_EQUAL(cudaEventRecord(world.event, world.streams[0]), 0);
    world.set(3, 0);
    if (waits) CHECK_EQUAL(cudaStreamWaitEvent(world.streams[1], world.event, 0), 0);
    CHECK_EQUAL(cudaEventRecord(world.event, world.streams[0]), 0);  // the wait is for the first record
    world.download(1);
    world.wait(1);
    CHECK_EQUAL(int(world.host()), waits ? 2 : 1);
  }
}

TEST(the_host_waits_for_an_event) {
  reset_to(Streams::kLate);
  World world;
  CHECK_EQUAL(cudaEventSynchronize(world.event), 0);  // never recorded: done
  world.set(4, 0);
  world.download(0);
  CHECK_EQUAL(cudaEventRecord(world.event, world.streams[0]), 0);
  world.set(5, 0);  // later work, which nobody asks for
  world.download(0);
  CHECK_EQUAL(cudaEventSynchronize(world.event), 0);
  CHECK_EQUAL(int(world.host()), 4);
}

TEST(the_default_stream_is_ordered_with_blocking_ones) {
  reset_to(Streams::kLate);
  World world;
  cudaStream_t blocking;
  CHECK_EQUAL(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), 0);
  CHECK_EQUAL(cudaMemsetAsync(world.device, 5, 1, blocking), 0);
  CHECK_EQUAL(cudaMemcpyAsync(world.pinned, world.device, 1, cudaMemcpyDeviceToHost, nullptr), 0);
  CHECK_EQUAL(cudaStreamSynchronize(nullptr), 0);
  CHECK_EQUAL(int(world.host()), 5);
  cudaStreamDestroy(blocking);
}

// Memory that is not pinned has been read, or written, when the call returns.
TEST(pageable_memory) {
  reset_to(Streams::kLate);
  World world;
  uint8_t byte = 1;
  CHECK_EQUAL(cudaMemcpyAsync(world.device, &byte, 1, cudaMemcpyHostToDevice, world.streams[0]), 0);
  byte = 2;
  CHECK_EQUAL(cudaMemcpyAsync(&byte, world.device, 1, cudaMemcpyDeviceToHost, world.streams[0]), 0);
  CHECK_EQUAL(int(byte), 1);
}

TEST(the_host_cannot_touch_device_memory) {
  reset_to(Streams::kLate);
  World world;
  CHECK_EQUAL(signal_of([&] { *static_cast<volatile uint8_t *>(world.pinned) = 1; }), 0);
  CHECK_EQUAL(signal_of([&] { *static_cast<volatile uint8_t *>(world.device) = 1; }), SIGSEGV);
}

TEST(released_pinned_memory_is_out_of_reach) {
  reset_to(Streams::kLate);
  void *pinned;
  CHECK_EQUAL(cudaHostAlloc(&pinned, 5000, 0), 0);
  CHECK_EQUAL(cudaFreeHost(pinned), 0);
  CHECK_EQUAL(cudaFreeHost(pinned), cudaErrorInvalidValue);
  CHECK_EQUAL(signal_of([&] { *static_cast<volatile uint8_t *>(pinned) = 1; }), SIGSEGV);
}

// What is released too early is a fault when the work that needs it happens; nothing works after it.
TEST(memory_released_too_early) {
  for (const bool of_device : {true, false}) {
    reset_to(Streams::kLate);
    World world;
    world.upload(0);
    CHECK_EQUAL(of_device ? cudaFree(world.device) : cudaFreeHost(world.pinned), 0);
    CHECK_EQUAL(cudaStreamSynchronize(world.streams[0]), cudaErrorLaunchFailure);
    const std::string fault = cudaGetErrorString(cudaErrorLaunchFailure);
    CHECK(fault.find(of_device ? "not all in one device allocation" : "pinned memory that was released") !=
          std::string::npos);
    CHECK_EQUAL(cudaMemsetAsync(world.device, 0, 1, world.streams[1]), cudaErrorLaunchFailure);
    (of_device ? world.device : world.pinned) = nullptr;
  }
}

TEST(wrong_copies) {
  reset_to(Streams::kLate);
  World world;
  CHECK_EQUAL(cudaMemcpyAsync(world.pinned, world.device, 1, cudaMemcpyHostToDevice, world.streams[0]),
              cudaErrorLaunchFailure);
}

TEST(copies_beyond_an_allocation) {
  reset_to(Streams::kLate);
  World world;
  uint8_t bytes[2] = {};
  cudaMemcpyAsync(world.device, bytes, 2, cudaMemcpyHostToDevice, world.streams[0]);
  CHECK_EQUAL(cudaStreamSynchronize(world.streams[0]), cudaErrorLaunchFailure);
}

TEST(a_call_fails) {
  reset_to(Streams::kLate);
  World world;
  const uint64_t before = calls(), sets = calls("cudaMemsetAsync");
  world.set(1, 0);
  CHECK_EQUAL(calls(), before + 1);
  CHECK_EQUAL(calls("cudaMemsetAsync"), sets + 1);
  fail_call(before + 3);
  world.wait(0);
  CHECK_EQUAL(failed_call(), "");
  CHECK_EQUAL(cudaMemsetAsync(world.device, 2, 1, world.streams[0]), cudaErrorUnknown);
  CHECK_EQUAL(failed_call(), "cudaMemsetAsync");
  CHECK_EQUAL(cudaGetLastError(), cudaErrorUnknown);
  CHECK_EQUAL(cudaGetLastError(), cudaSuccess);
  world.download(0);
  world.wait(0);
  CHECK_EQUAL(int(world.host()), 1);
}

TEST(what_is_alive) {
  reset_to(Streams::kLate);
  CHECK(live() == Live{});
  {
    World world;
    CHECK(live() == (Live{1, 1, 2, 1}));
  }
  CHECK(live() == Live{});
}
