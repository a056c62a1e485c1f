// Brings the files of a catalogue entry into memory.
#pragma once

#include <cstdint>
#include <forward_list>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checks/file_check.h"
#include "dataset/catalogue.h"
#include "input/arena.h"
#include "input/file_reading.h"
#include "input/quota.h"
#include "input/storage.h"

namespace dali_l3::loader {

/** An entry's files in memory. What else there is to know about it, the catalogue knows. */
struct Sample {
  FileBytes image;
  std::forward_list<FileBytes> companions;  ///< without bytes where the image lacks one; no vector, which is larger

  int64_t file_count() const { return 1 + std::distance(companions.begin(), companions.end()); }
  int64_t bytes() const {
    auto sum = static_cast<int64_t>(image.size());
    for (const FileBytes &file : companions) sum += static_cast<int64_t>(file.size());
    return sum;
  }
};

struct SampleReaderOptions {
  std::shared_ptr<Storage> storage = Storage::local();
  ReadMode mode = ReadMode::buffered;
  uint64_t cache_bytes = 0;   ///< memory for what is kept
  Check check = Check::none;  ///< of images, and of companions that are images
  bool equal_sizes = false;   ///< whether companions whose size can be told must have that of their image
};

/** Reads samples, in any number of threads at once. */
class SampleReader {
 public:
  /** `warn` is called with a line for the user, from any thread. */
  SampleReader(const SampleReaderOptions &options, std::function<void(const std::string &)> warn);

  /**
   * Reads an entry's files: to the cache if they are to be kept and it has room, else to other memory.
   *
   * @throws std::runtime_error, naming the file, if one cannot be read, is no longer of the format that the catalogue
   * found, has another size than the catalogue's file says, is a pointer of Git LFS, or does not pass the check; or the
   * two files whose sizes differ
   */
  Sample read(const Catalogue &catalogue, const Entry &entry, bool keep);
  /** The same, where the image is in memory already. */
  Sample read(const Catalogue &catalogue, const Entry &entry, bool keep, Block image);

  /** Whether small images are read faster with read_images(): those in archives that are read through the page cache.
   */
  bool reads_runs(const Catalogue &catalogue) const;
  /** Memory for images of these sizes, one behind the other. */
  std::vector<Block> allocate(std::span<const size_t> sizes);
  /** Reads the images of entries, where they lie one behind the other in an archive all at once.
   *
   * @param images a block of its size for each; becomes null where it cannot be read: read() says why
   */
  void read_images(const Catalogue &catalogue, std::span<const uint32_t> entries, std::span<Block> images);

  /** Memory for what is kept, within cache_bytes. */
  const Quota &cache() const { return cache_; }
  /** Memory for all else: what is on its way to the pipeline, in use there, or kept without room in the cache when it
   * was read. */
  const Quota &staging() const { return staging_; }
  /** Memory of both, and what nobody uses of it. */
  const Arena &arena() const { return arena_; }

 private:
  Block allocate(size_t size, bool keep);
  bool read_run(const Catalogue &catalogue, uint32_t archive, std::span<const FilePart> run);
  Sample read_rest(const Catalogue &catalogue, const Entry &entry, bool keep, FileBytes image);
  FileBytes read_file(const Catalogue &catalogue, const File &file, const FileReader::Allocate &allocate);
  FileBytes read_as_it_is(const Catalogue &catalogue, const File &file, const FileReader::Allocate &allocate);
  void check(const std::string &path, FileFormat format, std::span<const uint8_t> file) const;

  const Check check_;
  const bool equal_sizes_;
  const ReadMode mode_;
  Arena arena_;
  Quota cache_;
  Quota staging_;
  FileReader files_;
};

}  // namespace dali_l3::loader
