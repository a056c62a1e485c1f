// Memory for files: aligned blocks with a limit on what stays resident unused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dali_l3::loader {

/** Blocks of memory are aligned to this many bytes and take up a multiple of it: as direct reads need, and the size of
 * a page. */
inline constexpr size_t kPage = 4096;

/** `size` rounded up to whole pages. */
constexpr size_t whole_pages(size_t size) { return (size + kPage - 1) & ~(kPage - 1); }

/** Bytes that a block takes up: at least a page. */
constexpr size_t block_size(size_t size) { return whole_pages(size > 0 ? size : 1); }

/** Gets its blocks back. */
class Memory {
 public:
  virtual ~Memory() = default;

  /** `size` as it was asked for. Called by any thread. */
  virtual void take_back(uint8_t *block, size_t size) = 0;
};

struct FreeBlock {
  std::shared_ptr<Memory> memory;
  size_t size = 0;  ///< as it was asked for; the block takes up block_size(size)

  void operator()(uint8_t *block) const { memory->take_back(block, size); }
};

/** A block and how to free it. No more, since every file in memory has one. */
using Block = std::unique_ptr<uint8_t, FreeBlock>;

/** An allocator for files. Blocks that are freed keep their pages and are used again, which costs far less than fresh
 * pages.
 *
 * Of the memory that no block uses, as much is given back to the system as exceeds `max_idle`, the smallest pieces
 * first: no block will fit into those so soon. Fragmentation therefore costs address space, but not memory. The system
 * is advised to use huge pages, so up to 2 MiB more may be resident for every GiB of address space. Of huge pages that
 * have been given back in part, the system may keep that part until it is short of memory. Forked processes do not
 * inherit the memory: a fork during a direct read could misplace the data.
 *
 * All functions may be called from several threads at once.
 */
class Arena {
 public:
  /** Of memory that no block uses, at most `max_idle` bytes stay resident.
   *
   * Address space is reserved as it is needed, memory becomes resident as blocks are written.
   */
  explicit Arena(size_t max_idle);

  /** A block of block_size(size) bytes, which are undefined. Its owner frees it, in any thread, also after the arena is
   * gone.
   *
   * @throws std::system_error if the system refuses to reserve address space
   */
  Block allocate(size_t size);

  /** What the blocks go back to. */
  std::shared_ptr<Memory> memory() const;

  /** @name Bytes, in whole pages @{ */
  size_t used() const;      ///< by blocks
  size_t idle() const;      ///< resident without being used
  size_t reserved() const;  ///< of address space
                            /** @} */

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the blocks
};

}  // namespace dali_l3::loader
