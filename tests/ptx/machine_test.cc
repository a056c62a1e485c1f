// The machine: control flow, and that it notices everything a kernel may not do.
#include "machine.h"

#include "testing.h"

using namespace ptx;

namespace {

constexpr uint32_t kThreads = 128;
constexpr size_t kBuffer = 4096;  // bytes

// A device with one buffer, of which all but the last byte hold zeros.
struct Device {
  explicit Device(const Options &options = {}) : machine(memory, options) {
    memory.allocate(64);
    buffer = memory.allocate(kBuffer);
    memory.allocate(64);
    Allocation &zeros = *memory.find(buffer, kBuffer);
    std::fill(zeros.bytes.begin(), zeros.bytes.end(), uint8_t{0});
    std::fill(zeros.written.begin(), zeros.written.end() - 1, uint8_t{1});
  }

  void run(const char *name, uint32_t blocks = 1, const std::vector<uint8_t> &more_parameters = {}) {
    const Kernel *const kernel = find_kernel(name, "sm_75");
    CHECK(kernel);
    std::vector<uint8_t> parameters(8 + more_parameters.size());
    std::memcpy(parameters.data(), &buffer, 8);
    std::copy(more_parameters.begin(), more_parameters.end(), parameters.begin() + 8);
    machine.launch(*kernel, blocks, kThreads, parameters);
  }

  std::vector<uint32_t> words(size_t count) {
    std::vector<uint32_t> result(count);
    std::memcpy(result.data(), memory.find(buffer, kBuffer)->bytes.data(), 4 * count);
    return result;
  }

  Memory memory;
  Machine machine;
  uint64_t buffer;
};

std::string fault_of(const char *kernel, const Options &options = {}) {
  Device device(options);
  return testing::error_of([&] { device.run(kernel); });
}

// The kernel's fault, whatever the order of threads.
void check_fault(const char *kernel, const std::string &what, const std::string &line) {
  const testing::Context context("%s", kernel);
  for (const Order order : {Order::kFirst, Order::kLast, Order::kRandom})
    for (uint64_t seed = 1; seed <= 5; seed++) {
      const std::string fault = fault_of(kernel, {order, seed});
      const testing::Context context("fault %s", fault.c_str());
      CHECK(fault.starts_with(kernel));
      CHECK(fault.find(what) != std::string::npos);
      CHECK(fault.find(line) != std::string::npos);
    }
}

}  // namespace

TEST(control_flow) {
  Device device;
  device.run("control_flow");
  const auto words = device.words(kThreads);
  for (uint32_t i = 0; i < kThreads; i++) CHECK_EQUAL(words[i], i * (i + 1) / 2 + (i % 2 ? 1000 : 1));
}

TEST(launch_configuration) {
  Device device;
  // A byte, a half at 10, a word at 12, a structure at 16.
  device.run("launch_configuration", 3, {200, 0, 0x34, 0x12, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 9, 8, 7, 6});
  const auto words = device.words(24);
  for (uint32_t block = 0; block < 3; block++) {
    const std::vector<uint32_t> actual(&words[8 * block], &words[8 * block] + 8);
    CHECK(actual == (std::vector<uint32_t>{block, 3, kThreads, 200, 0x1234, 0x04030201, 0x06070809, 0}));
  }
}

TEST(barriers) {
  for (const Order order : {Order::kFirst, Order::kLast, Order::kRandom}) {
    Device device({order});
    device.run("exchange");
    const auto words = device.words(kThreads);
    for (uint32_t i = 0; i < kThreads; i++) CHECK_EQUAL(words[i], (kThreads - 1 - i) ^ 1);
  }
}

TEST(faults) {
  check_fault("reads_past_the_end", "reads 4 bytes outside of global memory", "line 106");
  check_fault("reads_before_the_begin", "reads 1 bytes outside of global memory", "line");
  check_fault("writes_past_the_end", "writes 1 bytes outside of global memory", "line");
  check_fault("reads_misaligned", "reads 8 bytes of global memory, misaligned", "line");
  check_fault("writes_misaligned", "writes 2 bytes of global memory, misaligned", "line");
  check_fault("reads_unwritten", "reads byte 4095 of an allocation, which nobody has written", "line");
  check_fault("writes_twice", "race: writes byte 0 of an allocation", "line");
  check_fault("reads_what_another_writes", "race: ", "line");
  check_fault("shared_past_the_end", "writes 4 bytes at 64 of 64 of shared memory", "line");
  check_fault("shared_misaligned", "writes 4 bytes at 2 of shared memory, misaligned", "line");
  check_fault("shared_unwritten", "reads byte 60 of shared memory, which nobody has written", "line");
  check_fault("race_read", "race: ", "line");
  check_fault("race_between_warps", "of shared memory, which", "line");  // thread writes, or nobody has written
  check_fault("race_write", "race: ", "line");
  check_fault("mask_without_itself", "shfl.up has a mask that leaves out the thread itself", "line");
  check_fault("missing_lanes", "threads wait for others that do not come: 64 at its end; 64 at vote.any", "line");
  check_fault("different_instructions", "64 at vote.all of line", "64 at vote.any of line");
  check_fault("shuffle_from_outside", "shfl.idx reads from a lane that takes no part", "line");
  check_fault("missing_barrier", "threads wait for others that do not come: 96 at bar of line", "32 at its end");
  check_fault("divides_by_zero", "divides by zero", "line");
  check_fault("at_most_64_threads", "more threads than its launch bounds allow", "");
}

TEST(races_are_not_looked_for_unless_asked) {
  for (const char *kernel : {"race_read", "race_write", "race_between_warps", "writes_twice"})
    CHECK_EQUAL(fault_of(kernel, {Order::kFirst, 1, false}), "");
}

// A machine goes on after a fault, with nothing left of it.
TEST(after_a_fault) {
  Device device;
  for (uint32_t i = 0; i < 3; i++) {
    CHECK(testing::error_of([&] { device.run("race_write"); }) != "");
    device.run("exchange");
  }
}

TEST(memory) {
  Memory memory;
  const uint64_t first = memory.allocate(100), second = memory.allocate(1), empty = memory.allocate(0);
  CHECK_EQUAL(first % 256, 0u);
  CHECK(memory.is_device(first) && memory.is_device(second));
  CHECK(!memory.is_device(reinterpret_cast<uint64_t>(&memory)));
  CHECK(memory.find(first, 100) && memory.find(first + 99, 1) && memory.find(first + 100, 0));
  CHECK(!memory.find(first, 101) && !memory.find(first + 100, 1) && !memory.find(first - 1, 1));
  CHECK(!memory.find(first, SIZE_MAX) && !memory.find(empty, 1));
  CHECK_EQUAL(memory.allocations(), 3u);
  CHECK(memory.release(first) && !memory.release(first) && !memory.release(second + 1));
  CHECK(!memory.find(first, 1));
  CHECK(memory.allocate(100) != first);
}
