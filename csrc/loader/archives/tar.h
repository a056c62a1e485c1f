// Lists the members of a tar archive.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "checks/read_at.h"

namespace dali_l3::loader {

/** Members begin at multiples of so many bytes. */
inline constexpr uint64_t kTarBlock = 512;

struct TarMember {
  std::string name;       ///< as it stands in the archive
  uint64_t offset, size;  ///< of its bytes

  bool operator==(const TarMember &) const = default;
};

/**
 * The regular files of a tar archive, in its order: of the formats v7, ustar, GNU and PAX, with names of any length. A
 * hard link is a member with the bytes of the one that it names. Folders, symbolic links and devices are passed over.
 *
 * @param path for messages
 * @param size of the archive
 * @param cancelled if given and set, the listing ends with an error soon
 * @throws std::runtime_error, naming the archive, if it is compressed, damaged, cut off or no tar archive, if there is
 * more behind its end, or it has a member that cannot be read at one place: a sparse file, a part of another volume
 */
std::vector<TarMember> list_tar(const std::string &path, uint64_t size, const ReadAt &read,
                                const std::atomic<bool> *cancelled = nullptr);

/** Whether the bytes from `offset` on may be a member of this size, as far as the header before them tells. */
bool is_tar_member(uint64_t offset, uint64_t size, const ReadAt &read);

}  // namespace dali_l3::loader
