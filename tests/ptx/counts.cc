#include "counts.h"

#include <algorithm>
#include <bit>

namespace ptx {
namespace {

constexpr uint32_t kWarp = 32, kSector = 32, kLine = 128, kBanks = 32, kBankBytes = 4;
constexpr uint64_t kWavefrontBytes = kBanks * kBankBytes;

// What lanes access by one instruction: their addresses, by lane.
struct WarpAccess {
  uint32_t lanes = 0;  // a bit each
  std::array<uint64_t, kWarp> addresses{};
};

template <typename Body>
void for_each_lane(uint32_t lanes, Body body) {
  for (; lanes; lanes &= lanes - 1) body(uint32_t(std::countr_zero(lanes)));
}

uint64_t distinct(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  return uint64_t(std::unique(values.begin(), values.end()) - values.begin());
}

void add_global(const WarpAccess &access, uint32_t bytes, Counts::Global &global) {
  const auto count = [&](uint32_t size) {  // of different pieces that hold what lanes access, which is aligned
    std::vector<uint64_t> pieces;
    for_each_lane(access.lanes, [&](uint32_t lane) { pieces.push_back(access.addresses[lane] / size); });
    return distinct(std::move(pieces));
  };
  global.accesses++;
  global.bytes += count(bytes) * bytes;
  global.sectors += count(kSector);
  global.lines += count(kLine);
}

// The lanes whose bytes fill a wavefront go together: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16. They take as many
// wavefronts as different words lie in one bank.
void add_shared(const WarpAccess &access, uint32_t bytes, Counts::Shared &shared) {
  const uint32_t together = std::min(kWarp, uint32_t(kWavefrontBytes / bytes));
  shared.accesses++;
  for (uint32_t first = 0; first < kWarp; first += together) {
    std::array<std::vector<uint64_t>, kBanks> words;
    const uint32_t group = uint32_t((uint64_t{1} << together) - 1) << first & access.lanes;
    for_each_lane(group, [&](uint32_t lane) {
      for (uint32_t at = 0; at < bytes; at += kBankBytes) {
        const uint64_t word = (access.addresses[lane] + at) / kBankBytes;
        words[word % kBanks].push_back(word);
      }
    });
    uint64_t wavefronts = 0;
    for (const std::vector<uint64_t> &in_bank : words) wavefronts = std::max(wavefronts, distinct(in_bank));
    shared.wavefronts += wavefronts;
    shared.conflicts += wavefronts - (group != 0);
  }
}

// A warp that its threads' traces are put together to.
class Warp {
 public:
  Warp(Counts &counts, const Code &code, const Trace *traces) : counts_(counts), code_(code), traces_(traces) {}

  // Lets lanes that are at the same block go on to the block `end`, or to their ends.
  void run(uint32_t lanes, uint32_t end) {
    while ((lanes = without_ended(lanes)) && block_of(lanes) != end) {
      const uint32_t number = block_of(lanes);
      execute(number, lanes);
      const std::vector<uint32_t> groups = by_block(lanes);
      if (code_.blocks[number].branches) {
        counts_.branches.executed++;
        counts_.branches.taken += groups.size() > 1 || block_of(lanes) != number + 1;
        counts_.branches.divergent += groups.size() > 1;
      }
      if (groups.size() > 1)
        for (const uint32_t group : groups) run(group, code_.blocks[number].meeting);
    }
  }

 private:
  struct Cursor {
    size_t block = 0, access = 0;
  };

  uint32_t ended() const { return uint32_t(code_.blocks.size()); }

  // Where a lane is; where the first lane is.
  uint32_t block_at(uint32_t lane) const {
    const std::vector<uint32_t> &blocks = traces_[lane].blocks;
    return cursors_[lane].block < blocks.size() ? blocks[cursors_[lane].block] : ended();
  }
  uint32_t block_of(uint32_t lanes) const { return block_at(uint32_t(std::countr_zero(lanes))); }

  uint32_t without_ended(uint32_t lanes) const {
    uint32_t left = 0;
    for_each_lane(lanes, [&](uint32_t lane) { left |= uint32_t(block_at(lane) != ended()) << lane; });
    return left;
  }

  // The lanes that are at the same block, for each block.
  std::vector<uint32_t> by_block(uint32_t lanes) const {
    std::vector<uint32_t> groups;
    while (lanes) {
      const uint32_t block = block_of(lanes);
      uint32_t group = 0;
      for_each_lane(lanes, [&](uint32_t lane) { group |= uint32_t(block_at(lane) == block) << lane; });
      groups.push_back(group);
      lanes &= ~group;
    }
    return groups;
  }

  void execute(uint32_t number, uint32_t lanes) {
    counts_.blocks[number].warps++;
    counts_.blocks[number].lanes += uint32_t(std::popcount(lanes));
    const auto [begin, end] = std::pair(code_.blocks[number].begin, code_.blocks[number].end);
    for (uint32_t i = begin; i < end; i++)
      if (code_.instructions[i].bytes) access(code_.instructions[i], i - begin, lanes);
    for_each_lane(lanes, [&](uint32_t lane) { cursors_[lane].block++; });
  }

  void access(const Code::Instruction &instruction, uint32_t number, uint32_t lanes) {
    WarpAccess global, shared;
    for_each_lane(lanes, [&](uint32_t lane) {
      const std::vector<Trace::Access> &accesses = traces_[lane].accesses;
      size_t &cursor = cursors_[lane].access;
      // A predicate may have kept the lane from it. (Then its next access is of another instruction, or of this one in
      // a later execution of the block.)
      if (cursor == accesses.size() || accesses[cursor].instruction != number ||
          accesses[cursor].block != cursors_[lane].block)
        return;
      const Trace::Access &one = accesses[cursor++];
      WarpAccess &space = one.is_shared ? shared : global;
      space.lanes |= uint32_t{1} << lane;
      space.addresses[lane] = one.address;
    });
    if (global.lanes) add_global(global, instruction.bytes, instruction.stores ? counts_.written : counts_.read);
    if (shared.lanes) add_shared(shared, instruction.bytes, counts_.shared);
  }

  Counts &counts_;
  const Code &code_;
  const Trace *const traces_;
  std::array<Cursor, kWarp> cursors_{};
};

}  // namespace

void Counts::add_warp(const Code &code, const Trace *traces, uint32_t lanes) {
  const auto end = uint32_t(code.blocks.size());
  blocks.resize(end);
  Warp(*this, code, traces).run(uint32_t((uint64_t{1} << lanes) - 1), end);
}

std::array<Counts::Executed, kKinds> Counts::by_kind(const Code &code) const {
  std::array<Executed, kKinds> kinds;
  for (size_t i = 0; i < blocks.size(); i++)
    for (uint32_t instruction = code.blocks[i].begin; instruction < code.blocks[i].end; instruction++) {
      Executed &kind = kinds[size_t(code.instructions[instruction].kind)];
      kind.warps += blocks[i].warps;
      kind.lanes += blocks[i].lanes;
    }
  return kinds;
}

}  // namespace ptx
