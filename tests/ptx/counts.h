// What kernels execute, counted: translate.py --count makes their threads say which basic blocks they come to, and what
// they access. Threads are fibers that run one after the other, so warps are put together afterwards, when a block of
// threads has ended: lanes go through a basic block together as long as they take the same way, part where they do not,
// and meet again at the first block that all ways to the end pass (the immediate post-dominator), as compilers for GPUs
// make them meet. An instruction of a warp is then one execution of it by the lanes that are together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptx {

// Of instructions, by the unit that executes them: basic_blocks.py. Moves vanish in machine code for the most part.
enum class Kind : uint8_t { move, alu, fma, load_store, shuffle, control };
constexpr uint32_t kKinds = 6;

// A kernel's instructions, cut into basic blocks.
struct Code {
  struct Instruction {
    int line;
    Kind kind;
    uint8_t bytes;  // that a lane accesses, 0: no memory
    bool stores;
  };
  struct BasicBlock {
    uint32_t begin, end;  // of its instructions
    bool branches;        // has two ways on
    uint32_t meeting;     // the block where lanes meet that part behind this one; the number of all blocks: at the end
  };

  std::vector<Instruction> instructions;
  std::vector<BasicBlock> blocks;
};

// What a thread has done: its basic blocks, and its accesses in order.
struct Trace {
  struct Access {
    uint64_t address;      // of a byte, in its space
    uint32_t instruction;  // counted from the begin of its basic block
    bool is_shared;
    size_t block;  // the place in `blocks`
  };
  std::vector<uint32_t> blocks;
  std::vector<Access> accesses;
};

// Of a kernel, in instructions and accesses of warps.
struct Counts {
  struct Executed {
    uint64_t warps = 0, lanes = 0;
  };
  struct Branches {
    uint64_t executed = 0, taken = 0, divergent = 0;  // conditional ones; by any lane; not by all
  };
  struct Global {
    uint64_t accesses = 0, bytes = 0, sectors = 0, lines = 0;  // of 32 and 128 bytes; different ones in each access
  };
  struct Shared {
    uint64_t accesses = 0, wavefronts = 0, conflicts = 0;  // conflicts: wavefronts for lanes that could share one
  };

  std::vector<Executed> blocks;  // by number
  Branches branches;
  Global read, written;
  Shared shared;

  // Adds a warp's threads, of which there are 32 at most.
  void add_warp(const Code &code, const Trace *traces, uint32_t lanes);

  std::array<Executed, kKinds> by_kind(const Code &code) const;
};

}  // namespace ptx
