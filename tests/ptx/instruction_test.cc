// Every instruction that translate.py knows, against the results in the file that instruction_cases.py has written.
#include <fstream>

#include "machine.h"
#include "testing.h"

using namespace ptx;

namespace {

constexpr size_t kBytes = 32;  // of a thread, in and out

struct Case {
  std::string kernel, instruction;
  std::vector<std::string> inputs, outputs;  // of threads, in hexadecimal
};

std::vector<Case> cases() {
  std::ifstream file(PTX_INSTRUCTION_CASES);
  std::vector<Case> all;
  for (std::string first, second; file >> first >> second;) {
    if (first == "kernel") {
      all.push_back({second, {}, {}, {}});
      file >> all.back().instruction;
    } else {
      all.back().inputs.push_back(first);
      all.back().outputs.push_back(second);
    }
  }
  return all;
}

uint8_t byte_at(const std::string &hexadecimal, size_t i) {
  return uint8_t(std::stoi(hexadecimal.substr(2 * i, 2), nullptr, 16));
}

}  // namespace

TEST(instructions) {
  const std::vector<Case> all = cases();
  CHECK(all.size() > 400);
  for (const Case &one : all) {
    const testing::Context context("%s", one.instruction.c_str());
    Memory memory;
    Machine machine(memory, {});
    const uint32_t threads = uint32_t(one.inputs.size());
    const uint64_t in = memory.allocate(threads * kBytes), out = memory.allocate(threads * kBytes);
    Allocation &given = *memory.find(in, 1), &result = *memory.find(out, 1);
    for (size_t i = 0; i < given.bytes.size(); i++) given.bytes[i] = byte_at(one.inputs[i / kBytes], i % kBytes);
    given.written.assign(given.bytes.size(), 1);

    std::vector<uint8_t> parameters(16);
    std::memcpy(&parameters[0], &in, 8);
    std::memcpy(&parameters[8], &out, 8);
    const Kernel *const kernel = find_kernel(one.kernel, "sm_75");
    CHECK(kernel);
    machine.launch(*kernel, 1, threads, parameters);

    for (size_t thread = 0; thread < threads; thread++) {
      const testing::Context context("thread %zu: %s", thread, one.inputs[thread].c_str());
      std::string written;
      for (size_t i = thread * kBytes; i < (thread + 1) * kBytes; i++) {
        char digits[3] = "..";
        if (result.written[i]) std::snprintf(digits, sizeof digits, "%02x", result.bytes[i]);
        written += digits;
      }
      CHECK_EQUAL(written, one.outputs[thread]);
    }
  }
}
