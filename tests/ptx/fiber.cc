#include "fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

extern "C" void ptx_switch_stacks(void **save, void *restore);

// Saves what a called function must preserve, and goes on where `restore` was saved.
asm(R"(
.text
.globl ptx_switch_stacks
.type ptx_switch_stacks, @function
ptx_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size ptx_switch_stacks, .-ptx_switch_stacks
)");

namespace ptx {
namespace {

constexpr size_t kPage = 4096, kStack = 256 << 10;
thread_local Fiber *starting = nullptr;

}  // namespace

Fiber::Fiber() {
  void *const memory =
      mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kPage, PROT_NONE);
  memory_ = static_cast<std::byte *>(memory);
}

Fiber::~Fiber() { munmap(memory_, kPage + kStack); }

void Fiber::start(void (*function)(void *), void *argument) {
  function_ = function, argument_ = argument;
  constexpr size_t kPreserved = 6;
  void **top = reinterpret_cast<void **>(memory_ + kPage + kStack);
  *--top = nullptr;  // where begin() would return to; the stack is aligned as after a call
  *--top = reinterpret_cast<void *>(begin);
  for (size_t i = 0; i < kPreserved; i++) *--top = nullptr;
  inside_ = top;
}

void Fiber::resume() {
  starting = this;
  ptx_switch_stacks(&outside_, inside_);
}

void Fiber::suspend() { ptx_switch_stacks(&inside_, outside_); }

void Fiber::begin() {
  Fiber &fiber = *starting;
  fiber.function_(fiber.argument_);
  std::abort();
}

}  // namespace ptx
