// A fiber: a function with a stack of its own, which runs until it suspends itself. For x86-64.
#pragma once

#include <cstddef>

namespace ptx {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  // The next resume() begins function(argument), which must not return. What ran before is given up.
  void start(void (*function)(void *argument), void *argument);

  void resume();   // from outside: runs the fiber until it suspends itself
  void suspend();  // from inside

 private:
  static void begin();

  std::byte *memory_;                            // a page that nobody may touch, then the stack
  void *inside_ = nullptr, *outside_ = nullptr;  // stack pointers of who does not run
  void (*function_)(void *) = nullptr;
  void *argument_ = nullptr;
};

}  // namespace ptx
