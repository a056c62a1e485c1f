// Reads files, or ranges of them, into memory that the caller provides.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "input/arena.h"
#include "input/open_file.h"
#include "input/open_files.h"
#include "input/storage.h"

namespace dali_l3::loader {

/** A file's bytes: the block has been asked for with the file's size. */
struct FileBytes {
  Block block;  ///< null for companions that an image lacks

  size_t size() const { return block.get_deleter().size; }
  std::span<const uint8_t> bytes() const { return {block.get(), size()}; }
};

/** Larger files are refused: no image in a format that has a name here can be this large. */
inline constexpr uint64_t kMaxFileSize = uint64_t{1} << 32;

/** Throws std::runtime_error, naming the file, if it is larger than kMaxFileSize. */
void check_size(const std::string &path, uint64_t size);

enum class ReadMode {
  buffered,  ///< through the page cache
  direct,    ///< past it (O_DIRECT); where the file system refuses that, through it, dropping the pages afterwards
};

/** A part of an archive: a file in a file. */
struct Member {
  const std::string &archive;  ///< its path
  const std::string &name;     ///< for messages
  uint64_t offset, size;       ///< in the archive
  uint64_t archive_size = 0;   ///< that it must have; 0: any
};

/** What messages call a member of an archive: "archive: name". */
inline std::string member_path(const std::string &archive, const std::string &name) { return archive + ": " + name; }

/** Reads files. Any number of threads may read at once. */
class FileReader {
 public:
  /** Gives a block as Arena::allocate() does. Must not return null. */
  using Allocate = std::function<Block(size_t size)>;

  /** `warn` is called with a line for the user, from any thread but only once, when a file system refuses direct reads.
   */
  FileReader(ReadMode mode, std::function<void(const std::string &)> warn,
             std::shared_ptr<Storage> storage = Storage::local());

  /** Reads a whole file. Calls `allocate` once, when the file has turned out to be readable; up to the end of the
   * page, memory after the file's bytes may be written too.
   *
   * Never waits for anything but the disk, or the service for objects in buckets, by URI. The mode means nothing for
   * these. Passes on what `allocate` throws.
   * @param listed_size of an object, if it is known: saves a request
   * @throws std::runtime_error, naming the file, if it cannot be opened or read, is not a regular file, is empty or
   * larger than kMaxFileSize, or changes its size meanwhile; or, in a bucket, since it was listed
   */
  FileBytes read(const std::string &path, const Allocate &allocate, uint64_t listed_size = 0);

  /** Reads a member of an archive, which stays open for those to come. Otherwise the same, except that a member may be
   * empty, and that the archive must have its size. */
  FileBytes read(const Member &member, const Allocate &allocate);

  /** Reads parts of an archive as OpenFile::read_parts() does, through the page cache.
   * @param archive_size that it must have; 0: any
   * @return whether they have been read; if not, read() says why
   */
  bool read_parts(const std::string &archive, uint64_t archive_size, std::span<const FilePart> parts);

 private:
  FileBytes read_object(const std::string &uri, const Allocate &allocate, uint64_t listed_size);
  void drop_if_refused(const std::string &path, OpenFile &file, uint64_t offset, size_t size);

  const ReadMode mode_;
  const std::function<void(const std::string &)> warn_;
  const std::shared_ptr<Storage> storage_;
  std::atomic_flag warned_;
  OpenFiles archives_;
};

}  // namespace dali_l3::loader
