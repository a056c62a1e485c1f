#include "input/file_reading.h"

#include <memory>
#include <utility>

namespace dali_l3::loader {

void check_size(const std::string &path, uint64_t size) {
  if (size > kMaxFileSize)
    fail_file(path,
              "has " + std::to_string(size) + " bytes, more than the " + std::to_string(kMaxFileSize) + " allowed");
}

FileReader::FileReader(ReadMode mode, std::function<void(const std::string &)> warn)
    : mode_(mode), warn_(std::move(warn)), archives_(mode == ReadMode::direct) {}

FileBytes FileReader::read(const std::string &path, const Allocate &allocate) {
  OpenFile file(path, mode_ == ReadMode::direct);
  const uint64_t size = file.size();
  check_size(path, size);
  Block block = allocate(size);
  if (!file.read(0, size, block.get()) || file.size() != size) fail_file(path, "changed its size while it was read");
  drop_if_refused(path, file, 0, 0);
  return {std::move(block)};
}

FileBytes FileReader::read(const Member &member, const Allocate &allocate) {
  const auto path = [&] { return member_path(member.archive, member.name); };
  if (member.size > kMaxFileSize) check_size(path(), member.size);
  try {
    const std::shared_ptr<OpenFile> file = archives_.open(member.archive);
    const uint64_t size = file->size();
    if (member.archive_size != 0 && size != member.archive_size)
      fail_file(member.archive,
                "has " + std::to_string(size) + " bytes, and not " + std::to_string(member.archive_size));
    const bool is_within = member.offset <= size && member.size <= size - member.offset;
    Block block = is_within ? allocate(member.size) : nullptr;
    if (!is_within || !file->read(member.offset, member.size, block.get()))
      fail_file(path(), "lies beyond the end of the archive, which is no longer what its index says");
    if (member.size > 0) drop_if_refused(member.archive, *file, member.offset, member.size);
    return {std::move(block)};
  } catch (const FileError &error) {
    if (error.path != member.archive) throw;
    fail_file(path(), error.problem, error.number);
  }
}

void FileReader::drop_if_refused(const std::string &path, OpenFile &file, uint64_t offset, size_t size) {
  if (mode_ != ReadMode::direct || file.direct()) return;
  file.drop_from_page_cache(offset, size);
  if (!warned_.test_and_set()) {
    warn_(path + ": the file system refuses direct reads; its files are read through the page cache, which is slower");
  }
}

}  // namespace dali_l3::loader
