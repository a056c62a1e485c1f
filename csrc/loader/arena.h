// Memory for files: aligned blocks with shared owners, within limits on what is used and on what is resident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dali_l3::loader {

/** Blocks of memory are aligned to this many bytes and take up a multiple of it: as direct reads need, and the size of a page. */
inline constexpr size_t kExtent = 4096;

/** `size` rounded up to whole extents. */
constexpr size_t extents(size_t size) { return (size + kExtent - 1) & ~(kExtent - 1); }

/** An allocator for files. Blocks that are freed keep their pages and are used again, which costs far less than fresh pages.
 *
 * Pages that no block uses are given back to the system when the resident memory would exceed the budget, or the idle part of it
 * `max_idle`: fragmentation costs address space, but not memory. The system is advised to use huge pages, so up to 2 MiB more may be
 * resident for every GiB of address space. Forked processes do not inherit the memory: a fork during a direct read could misplace the data.
 *
 * All functions may be called from several threads at once.
 */
class Arena {
 public:
  /** More than there is of anything. */
  static constexpr size_t kUnlimited = size_t{1} << 62;

  /** Blocks use at most `budget` bytes in all. Of memory that none uses, at most `max_idle` bytes stay resident.
   *
   * Address space is reserved as it is needed, memory becomes resident as blocks are written.
   */
  explicit Arena(size_t budget, size_t max_idle = kUnlimited);

  /** A block of extents(size) bytes, or of one extent if `size` is 0. Its bytes are undefined.
   *
   * Its last owner frees it, in any thread, also after the arena is gone. Null if it does not fit the budget.
   * @throws std::system_error if the system refuses to reserve address space
   */
  std::shared_ptr<uint8_t> allocate(size_t size);

  /** @name Bytes, in whole extents @{ */
  size_t budget() const;
  size_t used() const;      ///< by blocks
  size_t peak() const;      ///< largest used() so far
  size_t resident() const;  ///< used, or idle and not given back
  size_t reserved() const;  ///< of address space
  /** @} */

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the blocks
};

}  // namespace dali_l3::loader
