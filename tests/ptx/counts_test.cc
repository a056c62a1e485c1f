// Counts of kernels whose counts can be worked out by hand: four warps each, of machine_kernels.ptx.
#include "counts.h"

#include "machine.h"
#include "testing.h"

using namespace ptx;

namespace {

constexpr uint32_t kThreads = 128;

// What a kernel that gets a buffer of 4096 bytes executes.
class Counted {
 public:
  explicit Counted(const char *name, Order order = Order::kFirst)
      : kernel_(*find_kernel(name, "sm_75")), machine_(memory_, {order}) {
    const uint64_t buffer = memory_.allocate(4096);
    Allocation &allocation = *memory_.find(buffer, 4096);
    std::fill(allocation.written.begin(), allocation.written.end(), uint8_t{1});
    std::vector<uint8_t> parameters(8);
    std::memcpy(parameters.data(), &buffer, 8);
    machine_.launch(kernel_, 1, kThreads, parameters);
    counts = machine_.counts(kernel_);
  }

  // By kind.
  std::vector<uint64_t> warps() const { return by_kind(&Counts::Executed::warps); }
  std::vector<uint64_t> lanes() const { return by_kind(&Counts::Executed::lanes); }

  Counts counts;

 private:
  std::vector<uint64_t> by_kind(uint64_t Counts::Executed::*member) const {
    std::vector<uint64_t> result;
    for (const Counts::Executed &kind : counts.by_kind(kernel_.code)) result.push_back(kind.*member);
    return result;
  }

  const Kernel &kernel_;
  Memory memory_;
  Machine machine_;
};

using Numbers = std::vector<uint64_t>;

Numbers numbers(const Counts::Global &global) { return {global.accesses, global.bytes, global.sectors, global.lines}; }
Numbers numbers(const Counts::Shared &shared) { return {shared.accesses, shared.wavefronts, shared.conflicts}; }

}  // namespace

// Lane i goes through the loop i times, and a warp as often as its last lane. Every other lane goes another way behind.
TEST(control_flow) {
  for (const Order order : {Order::kFirst, Order::kLast, Order::kRandom}) {
    const Counted run("control_flow", order);
    // Basic blocks: the begin, the loop's head, its body, its end, the other way, the store, the rest of even lanes.
    const Numbers block_warps{4, 32 + 64 + 96 + 128, 31 + 63 + 95 + 127, 4, 4, 4, 4};
    const Numbers block_lanes{128, 128 * 129 / 2, 128 * 127 / 2, 128, 64, 128, 64};
    CHECK_EQUAL(run.counts.blocks.size(), block_warps.size());
    for (size_t i = 0; i < block_warps.size(); i++) {
      CHECK_EQUAL(run.counts.blocks[i].warps, block_warps[i]);
      CHECK_EQUAL(run.counts.blocks[i].lanes, block_lanes[i]);
    }
    // Moves, ALU, FMA, loads and stores, shuffles, control.
    CHECK(run.warps() == (Numbers{4 * 4 + 316, 320 + 2 * 316 + 2 * 4 + 2 * 4 + 4 + 4, 4, 3 * 4, 0, 320 + 316 + 3 * 4}));
    CHECK(run.lanes() == (Numbers{4 * 128 + 8128, 8256 + 2 * 8128 + 2 * 128 + 2 * 64 + 128 + 64, 128, 128 + 2 * 64, 0,
                                  8256 + 8128 + 128 + 128 + 64}));
    // The loop's end takes a branch for each lane, and parts the warp but for the last.
    CHECK_EQUAL(run.counts.branches.executed, 320u + 4 + 4);
    CHECK_EQUAL(run.counts.branches.taken, 4u * 32 + 4 + 4);
    CHECK_EQUAL(run.counts.branches.divergent, 4u * 31 + 4 + 4);
    // A word a lane, then a word of every other lane.
    CHECK(numbers(run.counts.written) == (Numbers{8, 4 * (128 + 64), 4 * (4 + 4), 8}));
    CHECK(numbers(run.counts.read) == (Numbers{4, 4 * 64, 4 * 4, 4}));
    CHECK(numbers(run.counts.shared) == (Numbers{0, 0, 0}));
  }
}

TEST(barriers) {
  const Counted run("exchange");
  CHECK(run.warps() == (Numbers{4 * 4, 4 * 8, 4, 4 * 5, 0, 4 * 3}));
  CHECK(run.lanes() == (Numbers{4 * 128, 8 * 128, 128, 5 * 128, 0, 3 * 128}));
  CHECK(numbers(run.counts.shared) == (Numbers{16, 16, 0}));
  CHECK_EQUAL(run.counts.branches.executed, 0u);
}

TEST(access_patterns) {
  const Counted run("access_patterns");
  // Two words a lane, side by side: 2 wavefronts. Every other word: 2, one of them a conflict. One word for all: 1.
  // Bytes side by side: 1. Four words a lane: 4. Eight words of one bank: 8, of which 7 are conflicts. The last, by a
  // generic address, is of lanes 0 to 39, eight to a word: 1 for each of two warps.
  CHECK(numbers(run.counts.shared) == (Numbers{4 * 6 + 2, 4 * (2 + 2 + 1 + 1 + 4 + 8) + 2, 4 * (1 + 7)}));
  // A byte in each of 32 sectors, four to a line.
  CHECK(numbers(run.counts.written) == (Numbers{4, 4 * 32, 4 * 32, 4 * 8}));
  // Eight lanes to a word, four words to a warp, each in another sector; a word a lane, of 40 lanes.
  CHECK(numbers(run.counts.read) == (Numbers{4 + 2, 4 * 16 + 40 * 4, 4 * 4 + 40, 4 + 8 + 2}));
}

// Lanes that a predicate keeps from a load are lanes that execute it.
TEST(predicates) {
  const Counted run("access_patterns");
  const auto load_store = size_t(Kind::load_store);
  CHECK_EQUAL(run.warps()[load_store], 4u * 10);
  CHECK_EQUAL(run.lanes()[load_store], 128u * 10);
}
