// Runs kernels that translate.py made of PTX: a block after the other, a fiber for each of its threads. A thread runs
// until an instruction that waits for others. Whatever a kernel may not do is a Fault that names the kernel, the thread
// and the line of the PTX: see README.md.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "counts.h"
#include "fiber.h"
#include "instructions.h"
#include "memory.h"

namespace ptx {

struct Thread;

struct Kernel {
  struct Parameter {
    uint32_t offset, size;
  };
  struct Variable {  // in shared memory
    std::string name;
    uint32_t offset, size;
  };

  std::string name;
  std::vector<std::string> targets;  // such as "sm_75"
  void (*run)(Thread &);
  uint32_t max_threads;
  std::vector<Parameter> parameters;
  std::vector<Variable> shared;
  Code code = {};  // where it is counted

  uint32_t parameter_size() const { return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size; }
  uint32_t shared_size() const { return shared.empty() ? 0 : shared.back().offset + shared.back().size; }
};

// Makes a kernel known; translated files have one for each.
struct Registration {
  explicit Registration(Kernel kernel);
};

// Null: there is none.
const Kernel *find_kernel(const std::string &name, const std::string &target);

// One target each for all sets of kernels that differ.
std::vector<std::string> distinct_targets();

enum class Order { kFirst, kLast, kRandom };  // which of the threads that can run goes on

struct Options {
  Order order = Order::kRandom;
  uint64_t seed = 1;
  bool races = true;  // look for them
};

enum class Operation : uint8_t {
  none,
  shuffle_up,
  shuffle_down,
  shuffle_bfly,
  shuffle_idx,
  vote_any,
  vote_all,
  warp_barrier,
  block_barrier,
  end
};

struct Shuffled {
  uint32_t value;
  bool valid;
};

struct Block;

struct Thread {
  Block *block = nullptr;
  uint32_t id = 0;
  Fiber fiber;

  // What it waits for.
  Operation operation = Operation::none;
  int line = 0;
  uint32_t mask = 0, value = 0, lane_argument = 0, clamp_argument = 0;
  bool valid = false;

  Trace trace;  // where it is counted

  std::vector<uint32_t> clock;  // how far it knows each thread of the block to be

  uint32_t tid() const { return id; }
  inline uint32_t ntid() const, ctaid() const, nctaid() const;

  template <typename T>
  T parameter(uint32_t offset) const;
  template <typename T, int count>
  std::array<T, count> load_shared(uint32_t at, int line);
  template <typename T, int count>
  void store_shared(uint32_t at, const std::array<T, count> &values, int line);
  template <typename T, int count>
  std::array<T, count> load_global(uint64_t at, int line);
  template <typename T, int count>
  void store_global(uint64_t at, const std::array<T, count> &values, int line);
  template <typename T, int count>
  std::array<T, count> load_generic(uint64_t at, int line);
  template <typename T, int count>
  void store_generic(uint64_t at, const std::array<T, count> &values, int line);
  uint64_t generic_of_shared(uint64_t offset) const { return kSharedWindow + offset; }

  Shuffled shuffle(Operation mode, uint32_t value, uint32_t lane, uint32_t clamp, uint32_t mask, int line);
  bool vote(Operation mode, bool value, uint32_t mask, int line);
  void synchronize_warp(uint32_t mask, int line);
  void synchronize_block(int line);

  // In kernels that are counted: before a basic block, and before an access.
  void enter(uint32_t basic_block) { trace.blocks.push_back(basic_block); }
  void access(uint32_t instruction, uint64_t at) {
    const bool shared = is_shared(at);
    trace.accesses.push_back({shared ? at - kSharedWindow : at, instruction, shared, trace.blocks.size() - 1});
  }

  template <typename T>
  T divide(T a, T b, int line) {
    if (b == 0) fault(line, "divides by zero");
    return a / b;
  }

  [[noreturn, gnu::format(printf, 3, 4)]] void fault(int line, const char *format, ...);

 private:
  static constexpr uint64_t kSharedWindow = 0x5A00000000000000;  // where shared memory is among generic addresses

  uint8_t *shared(uint32_t at, uint32_t size, const char *action, int line);
  bool is_shared(uint64_t at) const { return at - kSharedWindow < uint64_t{1} << 32; }
  void check_shared_read(uint32_t at, uint32_t size, int line);
  void check_shared_write(uint32_t at, uint32_t size, int line);
  const uint8_t *read_global(uint64_t at, uint32_t size, int line);
  uint8_t *write_global(uint64_t at, uint32_t size, int line);
};

class Machine {
 public:
  Machine(Memory &memory, const Options &options);
  ~Machine();
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  // Runs all blocks. Throws Fault.
  void launch(const Kernel &kernel, uint32_t blocks, uint32_t threads, const std::vector<uint8_t> &parameters);

  // Of all blocks of a kernel that have ended well, if it is counted.
  Counts counts(const Kernel &kernel) const {
    const auto found = counts_.find(&kernel);
    return found == counts_.end() ? Counts{} : found->second;
  }

 private:
  friend struct Block;
  friend struct Thread;

  Memory &memory_;
  const Options options_;
  std::mt19937_64 random_;
  uint32_t launches_ = 0;
  std::map<const Kernel *, Counts> counts_;
  std::map<std::pair<const Kernel *, uint32_t>, std::unique_ptr<Block>> blocks_;  // by kernel and threads
};

// A block's shared memory, threads and state, for one block after the other.
struct Block {
  Block(Machine &machine, const Kernel &kernel, uint32_t threads);

  // Throws Fault.
  void run(uint32_t block_index, uint32_t block_count, const uint8_t *parameters);

  // How a fault's message begins.
  std::string place(const Thread &thread, int line) const;

  // Who accessed a byte of shared memory, by the threads' clocks; clock 0: nobody.
  struct Access {
    uint32_t clock = 0;
    int line = 0;
  };
  struct Write : Access {
    uint32_t writer = 0;
  };

  Machine &machine;
  const Kernel &kernel;
  uint32_t index = 0, count = 0;
  const uint8_t *parameters = nullptr;
  std::vector<uint8_t> shared, written;  // 1: the byte holds something
  std::vector<Write> writes;             // of bytes
  std::vector<Access> reads;             // of bytes by threads
  size_t reader_words;                   // in `readers` for a byte
  std::vector<uint64_t> readers;         // of bytes since they were written, a bit each
  std::vector<Thread> threads;
  std::vector<uint32_t> ready;  // threads that can go on
  std::string fault;

 private:
  Thread &pick();
  void clear_shared();
  void add_counts();
  void proceed(const Thread &thread);
  void proceed_warp(const Thread &thread);
  void proceed_block(const Thread &thread);
  void shuffle(const std::vector<uint32_t> &members);
  void synchronize(const std::vector<uint32_t> &members);
  [[noreturn]] void refuse(const Thread &thread, const char *what) const;
  [[noreturn]] void report_deadlock() const;
};

inline uint32_t Thread::ntid() const { return uint32_t(block->threads.size()); }
inline uint32_t Thread::ctaid() const { return block->index; }
inline uint32_t Thread::nctaid() const { return block->count; }

template <typename T>
T Thread::parameter(uint32_t offset) const {
  T value;
  std::memcpy(&value, block->parameters + offset, sizeof value);
  return value;
}

template <typename T, int count>
std::array<T, count> Thread::load_shared(uint32_t at, int from_line) {
  std::array<T, count> values;
  const uint8_t *const bytes = shared(at, sizeof values, "reads", from_line);
  check_shared_read(at, sizeof values, from_line);
  std::memcpy(values.data(), bytes, sizeof values);
  return values;
}

template <typename T, int count>
void Thread::store_shared(uint32_t at, const std::array<T, count> &values, int from_line) {
  uint8_t *const bytes = shared(at, sizeof values, "writes", from_line);
  check_shared_write(at, sizeof values, from_line);
  std::memcpy(bytes, values.data(), sizeof values);
}

template <typename T, int count>
std::array<T, count> Thread::load_global(uint64_t at, int from_line) {
  std::array<T, count> values;
  std::memcpy(values.data(), read_global(at, sizeof values, from_line), sizeof values);
  return values;
}

template <typename T, int count>
void Thread::store_global(uint64_t at, const std::array<T, count> &values, int from_line) {
  std::memcpy(write_global(at, sizeof values, from_line), values.data(), sizeof values);
}

template <typename T, int count>
std::array<T, count> Thread::load_generic(uint64_t at, int from_line) {
  return is_shared(at) ? load_shared<T, count>(uint32_t(at - kSharedWindow), from_line)
                       : load_global<T, count>(at, from_line);
}

template <typename T, int count>
void Thread::store_generic(uint64_t at, const std::array<T, count> &values, int from_line) {
  if (is_shared(at))
    store_shared<T, count>(uint32_t(at - kSharedWindow), values, from_line);
  else
    store_global<T, count>(at, values, from_line);
}

}  // namespace ptx
