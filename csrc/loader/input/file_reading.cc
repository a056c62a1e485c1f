#include "input/file_reading.h"

#include <utility>

#include "input/arena.h"
#include "input/open_file.h"

namespace dali_l3::loader {

void check_size(const std::string &path, uint64_t size) {
  if (size > kMaxFileSize)
    fail_file(path,
              "has " + std::to_string(size) + " bytes, more than the " + std::to_string(kMaxFileSize) + " allowed");
}

FileReader::FileReader(ReadMode mode, std::function<void(const std::string &)> warn)
    : mode_(mode), warn_(std::move(warn)) {}

FileBytes FileReader::read(const std::string &path, const Allocate &allocate) {
  OpenFile file(path, mode_ == ReadMode::direct);
  const uint64_t size = file.size();
  check_size(path, size);
  std::shared_ptr<uint8_t> block = allocate(whole_pages(size));
  if (!file.read(block.get(), size) || file.size() != size) fail_file(path, "changed its size while it was read");
  if (mode_ == ReadMode::direct && !file.direct()) {
    file.drop_from_page_cache();
    if (!warned_.test_and_set()) {
      warn_(path +
            ": the file system refuses direct reads; its files are read through the page cache, which is slower");
    }
  }
  return {std::move(block), size};
}

}  // namespace dali_l3::loader
