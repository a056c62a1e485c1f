#include "machine.h"

#include <cxxabi.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace ptx {
namespace {

constexpr uint32_t kWarp = 32;

std::vector<Kernel> &kernels() {
  static std::vector<Kernel> all;
  return all;
}

const char *name_of(Operation operation) {
  static constexpr const char *kNames[] = {"nothing",  "shfl.up",  "shfl.down", "shfl.bfly", "shfl.idx",
                                           "vote.any", "vote.all", "bar.warp",  "bar",       "its end"};
  return kNames[size_t(operation)];
}

bool is_shuffle(Operation operation) {
  return Operation::shuffle_up <= operation && operation <= Operation::shuffle_idx;
}

// As in the source, without namespaces and arguments.
std::string readable(const std::string &mangled) {
  char *const name = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr);
  std::string text = name ? name : mangled;
  std::free(name);
  if (const size_t at = text.rfind("(anonymous namespace)::"); at != std::string::npos) text = text.substr(at + 23);
  return text.substr(0, text.find('('));
}

void run_thread(void *argument) {
  Thread &thread = *static_cast<Thread *>(argument);
  thread.block->kernel.run(thread);
  thread.operation = Operation::end;
  thread.fiber.suspend();
}

}  // namespace

// ---- Kernels

Registration::Registration(Kernel kernel) { kernels().push_back(std::move(kernel)); }

const Kernel *find_kernel(const std::string &name, const std::string &target) {
  for (const Kernel &kernel : kernels())
    if (kernel.name == name && std::find(kernel.targets.begin(), kernel.targets.end(), target) != kernel.targets.end())
      return &kernel;
  return nullptr;
}

std::vector<std::string> distinct_targets() {
  std::vector<std::string> targets;
  for (const Kernel &kernel : kernels()) {
    const auto is_covered = [&](const std::string &target) {
      return std::find(kernel.targets.begin(), kernel.targets.end(), target) != kernel.targets.end();
    };
    if (std::none_of(targets.begin(), targets.end(), is_covered)) targets.push_back(kernel.targets.back());
  }
  return targets;
}

// ---- What a thread asks for

void Thread::fault(int at_line, const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  block->fault = block->place(*this, at_line) + text;
  fiber.suspend();
  std::abort();  // it is not resumed
}

Shuffled Thread::shuffle(Operation mode, uint32_t from, uint32_t lane, uint32_t clamp, uint32_t members, int at_line) {
  operation = mode, value = from, lane_argument = lane, clamp_argument = clamp, mask = members, line = at_line;
  fiber.suspend();
  return {value, valid};
}

bool Thread::vote(Operation mode, bool condition, uint32_t members, int at_line) {
  operation = mode, value = condition, mask = members, line = at_line;
  fiber.suspend();
  return value != 0;
}

void Thread::synchronize_warp(uint32_t members, int at_line) {
  operation = Operation::warp_barrier, mask = members, line = at_line;
  fiber.suspend();
}

void Thread::synchronize_block(int at_line) {
  operation = Operation::block_barrier, line = at_line;
  fiber.suspend();
}

// ---- Shared memory

uint8_t *Thread::shared(uint32_t at, uint32_t size, const char *action, int at_line) {
  if (at % size) fault(at_line, "%s %u bytes at %u of shared memory, misaligned", action, size, at);
  if (at > block->shared.size() || block->shared.size() - at < size)
    fault(at_line, "%s %u bytes at %u of %zu of shared memory", action, size, at, block->shared.size());
  return block->shared.data() + at;
}

void Thread::check_shared_read(uint32_t at, uint32_t size, int at_line) {
  for (uint32_t i = at; i < at + size; i++)
    if (!block->written[i]) fault(at_line, "reads byte %u of shared memory, which nobody has written", i);
  if (!block->machine.options_.races) return;
  for (uint32_t i = at; i < at + size; i++) {
    const Block::Write &write = block->writes[i];
    if (write.clock > clock[write.writer] && write.writer != id)
      fault(at_line, "race: reads byte %u of shared memory, which thread %u writes at line %d", i, write.writer,
            write.line);
    block->readers[i * block->reader_words + id / 64] |= uint64_t{1} << id % 64;
    block->reads[size_t{i} * ntid() + id] = {clock[id], at_line};
  }
}

void Thread::check_shared_write(uint32_t at, uint32_t size, int at_line) {
  std::fill_n(block->written.begin() + at, size, uint8_t{1});
  if (!block->machine.options_.races) return;
  for (uint32_t i = at; i < at + size; i++) {
    Block::Write &write = block->writes[i];
    if (write.clock > clock[write.writer] && write.writer != id)
      fault(at_line, "race: writes byte %u of shared memory, which thread %u writes at line %d", i, write.writer,
            write.line);
    for (uint32_t word = 0; word < block->reader_words; word++) {
      uint64_t &readers = block->readers[i * block->reader_words + word];
      for (; readers; readers &= readers - 1) {
        const uint32_t reader = 64 * word + uint32_t(std::countr_zero(readers));
        const Block::Access &read = block->reads[size_t{i} * ntid() + reader];
        if (read.clock > clock[reader] && reader != id)
          fault(at_line, "race: writes byte %u of shared memory, which thread %u reads at line %d", i, reader,
                read.line);
      }
    }
    write = {{clock[id], at_line}, id};
  }
}

// ---- Global memory. Nothing orders its accesses by different threads of a launch: no kernel here needs that.

const uint8_t *Thread::read_global(uint64_t at, uint32_t size, int at_line) {
  if (at % size) fault(at_line, "reads %u bytes of global memory, misaligned", size);
  Allocation *const memory = block->machine.memory_.find(at, size);
  if (!memory) fault(at_line, "reads %u bytes outside of global memory", size);
  const size_t position = at - memory->begin;
  for (size_t i = position; i < position + size; i++)
    if (!memory->written[i]) fault(at_line, "reads byte %zu of an allocation, which nobody has written", i);
  if (block->machine.options_.races) {
    memory->accesses.resize(memory->bytes.size());
    const uint32_t launch = block->machine.launches_, self = block->index * ntid() + id;
    for (size_t i = position; i < position + size; i++) {
      GlobalAccess &access = memory->accesses[i];
      if (access.write_launch == launch && access.writer != self)
        fault(at_line, "race: reads byte %zu of an allocation, which another thread writes", i);
      access.read_launch = launch, access.reader = self;
    }
  }
  return memory->bytes.data() + position;
}

uint8_t *Thread::write_global(uint64_t at, uint32_t size, int at_line) {
  if (at % size) fault(at_line, "writes %u bytes of global memory, misaligned", size);
  Allocation *const memory = block->machine.memory_.find(at, size);
  if (!memory) fault(at_line, "writes %u bytes outside of global memory", size);
  const size_t position = at - memory->begin;
  std::fill_n(memory->written.begin() + ptrdiff_t(position), size, uint8_t{1});
  if (block->machine.options_.races) {
    memory->accesses.resize(memory->bytes.size());
    const uint32_t launch = block->machine.launches_, self = block->index * ntid() + id;
    for (size_t i = position; i < position + size; i++) {
      GlobalAccess &access = memory->accesses[i];
      if ((access.write_launch == launch && access.writer != self) ||
          (access.read_launch == launch && access.reader != self))
        fault(at_line, "race: writes byte %zu of an allocation, which another thread accesses", i);
      access.write_launch = launch, access.writer = self;
    }
  }
  return memory->bytes.data() + position;
}

// ---- A block

Block::Block(Machine &machine, const Kernel &kernel, uint32_t thread_count)
    : machine(machine),
      kernel(kernel),
      shared(kernel.shared_size()),
      written(kernel.shared_size()),
      reader_words((thread_count + 63) / 64),
      threads(thread_count) {
  for (uint32_t i = 0; i < thread_count; i++) {
    threads[i].block = this, threads[i].id = i;
    threads[i].clock.assign(thread_count, 0);
  }
  if (!machine.options_.races) return;
  writes.resize(shared.size());
  reads.resize(shared.size() * thread_count);
  readers.resize(shared.size() * reader_words);
}

void Block::run(uint32_t block_index, uint32_t block_count, const uint8_t *with_parameters) {
  index = block_index, count = block_count, parameters = with_parameters;
  fault.clear();
  clear_shared();
  ready.clear();
  std::vector<uint32_t> all;
  for (Thread &thread : threads) {
    thread.operation = Operation::none;
    thread.trace = {};
    thread.fiber.start(run_thread, &thread);
    all.push_back(thread.id);
  }
  synchronize(all);
  for (size_t left = threads.size(); left > 0;) {
    if (ready.empty()) report_deadlock();
    Thread &thread = pick();
    thread.fiber.resume();
    if (!fault.empty()) throw Fault(fault);
    if (thread.operation == Operation::end)
      left--;
    else
      proceed(thread);
  }
  if (!kernel.code.blocks.empty()) add_counts();
}

void Block::add_counts() {
  Counts &counts = machine.counts_[&kernel];
  for (size_t first = 0; first < threads.size(); first += kWarp) {
    std::vector<Trace> traces;
    for (size_t i = first; i < std::min(threads.size(), first + kWarp); i++)
      traces.push_back(std::move(threads[i].trace));
    counts.add_warp(kernel.code, traces.data(), uint32_t(traces.size()));
  }
}

// Nothing of the block before is left.
void Block::clear_shared() {
  for (uint8_t &byte : shared) byte = uint8_t(machine.random_());
  std::fill(written.begin(), written.end(), uint8_t{0});
}

std::string Block::place(const Thread &thread, int line) const {
  std::string text = readable(kernel.name) + ": block " + std::to_string(index);
  text += ", thread " + std::to_string(thread.id) + ", line " + std::to_string(line) + ": ";
  return text;
}

void Block::refuse(const Thread &thread, const char *what) const {
  throw Fault(place(thread, thread.line) + name_of(thread.operation) + " " + what);
}

// Takes the thread that goes on out of `ready`.
Thread &Block::pick() {
  size_t place = 0;
  if (machine.options_.order == Order::kLast) place = ready.size() - 1;
  if (machine.options_.order == Order::kRandom) place = machine.random_() % ready.size();
  const uint32_t id = ready[place];
  ready.erase(ready.begin() + ptrdiff_t(place));
  return threads[id];
}

// Lets those go on that have waited for the thread.
void Block::proceed(const Thread &thread) {
  if (thread.operation == Operation::block_barrier)
    proceed_block(thread);
  else
    proceed_warp(thread);
}

void Block::proceed_warp(const Thread &thread) {
  const uint32_t first = thread.id / kWarp * kWarp, mask = thread.mask;
  if (!(mask >> thread.id % kWarp & 1)) refuse(thread, "has a mask that leaves out the thread itself");
  std::vector<uint32_t> members;
  for (uint32_t lane = 0; lane < kWarp; lane++) {
    if (!(mask >> lane & 1)) continue;
    if (first + lane >= threads.size()) refuse(thread, "has a mask that names a lane that is not there");
    const Thread &other = threads[first + lane];
    if (other.operation != thread.operation || other.mask != mask) return;
    members.push_back(first + lane);
  }
  if (is_shuffle(thread.operation)) {
    shuffle(members);
  } else if (thread.operation == Operation::warp_barrier) {
    synchronize(members);
    return;
  } else {
    const auto holds = [&](uint32_t id) { return threads[id].value != 0; };
    const bool result = thread.operation == Operation::vote_any ? std::any_of(members.begin(), members.end(), holds)
                                                                : std::all_of(members.begin(), members.end(), holds);
    for (const uint32_t id : members) threads[id].value = result;
  }
  for (const uint32_t id : members) {
    threads[id].operation = Operation::none;
    ready.push_back(id);
  }
}

// As the PTX ISA defines shfl.sync.
void Block::shuffle(const std::vector<uint32_t> &members) {
  std::vector<uint32_t> values;
  for (const uint32_t id : members) {
    Thread &thread = threads[id];
    const int lane = int(id % kWarp), argument = int(thread.lane_argument & 31),
              clamp = int(thread.clamp_argument & 31);
    const int segment = int(thread.clamp_argument >> 8 & 31), first = lane & segment;
    const int limit = first | (clamp & ~segment);
    int source = 0;
    switch (thread.operation) {
      case Operation::shuffle_up: source = lane - argument, thread.valid = source >= limit; break;
      case Operation::shuffle_down: source = lane + argument, thread.valid = source <= limit; break;
      case Operation::shuffle_bfly: source = lane ^ argument, thread.valid = source <= limit; break;
      default: source = first | (argument & ~segment), thread.valid = source <= limit; break;
    }
    if (!thread.valid) source = lane;
    if (!(thread.mask >> source & 1)) refuse(thread, "reads from a lane that takes no part");
    values.push_back(threads[id / kWarp * kWarp + uint32_t(source)].value);
  }
  for (size_t i = 0; i < members.size(); i++) threads[members[i]].value = values[i];
}

void Block::proceed_block(const Thread &thread) {
  std::vector<uint32_t> all;
  for (const Thread &other : threads) {
    if (other.operation != thread.operation) return;
    all.push_back(other.id);
  }
  synchronize(all);
}

// Each knows what the others have done until now, and goes on.
void Block::synchronize(const std::vector<uint32_t> &members) {
  if (machine.options_.races) {
    std::vector<uint32_t> latest(threads.size(), 0);
    for (const uint32_t id : members)
      for (size_t i = 0; i < latest.size(); i++) latest[i] = std::max(latest[i], threads[id].clock[i]);
    for (const uint32_t id : members) {
      threads[id].clock = latest;
      threads[id].clock[id]++;
    }
  }
  for (const uint32_t id : members) {
    threads[id].operation = Operation::none;
    ready.push_back(id);
  }
}

void Block::report_deadlock() const {
  std::string text =
      readable(kernel.name) + ": block " + std::to_string(index) + ": threads wait for others that do not come:";
  std::map<std::string, uint32_t> waits;
  for (const Thread &thread : threads) {
    std::string wait = name_of(thread.operation);
    if (thread.operation != Operation::end) wait += " of line " + std::to_string(thread.line);
    waits[wait]++;
  }
  for (const auto &[wait, number] : waits) text += ' ' + std::to_string(number) + " at " + wait + ';';
  throw Fault(text);
}

// ---- A machine

Machine::Machine(Memory &memory, const Options &options) : memory_(memory), options_(options), random_(options.seed) {}

Machine::~Machine() = default;

void Machine::launch(const Kernel &kernel, uint32_t blocks, uint32_t threads, const std::vector<uint8_t> &parameters) {
  constexpr uint32_t kMostShared = 48 << 10;  // without a call that asks for more
  if (threads > kernel.max_threads) throw Fault(readable(kernel.name) + ": more threads than its launch bounds allow");
  if (kernel.shared_size() > kMostShared) throw Fault(readable(kernel.name) + ": more than 48 KiB of shared memory");
  if (parameters.size() != kernel.parameter_size())
    throw Fault(readable(kernel.name) + ": other parameters than it has");
  std::unique_ptr<Block> &block = blocks_[{&kernel, threads}];
  if (!block) block = std::make_unique<Block>(*this, kernel, threads);
  launches_++;
  std::vector<uint32_t> order(blocks);
  for (uint32_t i = 0; i < blocks; i++) order[i] = i;
  if (options_.order == Order::kLast) std::reverse(order.begin(), order.end());
  if (options_.order == Order::kRandom) std::shuffle(order.begin(), order.end(), random_);
  for (const uint32_t i : order) block->run(i, blocks, parameters.data());
}

}  // namespace ptx
