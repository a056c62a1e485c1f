#include "input/file_reading.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "input/uri.h"

namespace dali_l3::loader {

void check_size(const std::string &path, uint64_t size) {
  if (size > kMaxFileSize)
    fail_file(path,
              "has " + std::to_string(size) + " bytes, more than the " + std::to_string(kMaxFileSize) + " allowed");
}

FileReader::FileReader(ReadMode mode, std::function<void(const std::string &)> warn, std::shared_ptr<Storage> storage)
    : mode_(mode), warn_(std::move(warn)), storage_(std::move(storage)), archives_(mode == ReadMode::direct) {}

FileBytes FileReader::read(const std::string &path, const Allocate &allocate, uint64_t listed_size) {
  if (is_uri(path)) return read_object(path, allocate, listed_size);
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
  const auto fail_beyond = [&] {
    fail_file(path(), "lies beyond the end of the archive, which is no longer what its index says");
  };
  try {
    if (is_uri(member.archive)) {
      Block block = allocate(member.size);
      const size_t size = member.size;
      if (storage_->read(member.archive, member.offset, {block.get(), size}) != size) fail_beyond();
      return {std::move(block)};
    }
    const std::shared_ptr<OpenFile> file = archives_.open(member.archive);
    const uint64_t size = file->size();
    if (member.archive_size != 0 && size != member.archive_size)
      fail_file(member.archive,
                "has " + std::to_string(size) + " bytes, and not " + std::to_string(member.archive_size));
    const bool is_within = member.offset <= size && member.size <= size - member.offset;
    Block block = is_within ? allocate(member.size) : nullptr;
    if (!is_within || !file->read(member.offset, member.size, block.get())) fail_beyond();
    if (member.size > 0) drop_if_refused(member.archive, *file, member.offset, member.size);
    return {std::move(block)};
  } catch (const StorageError &) {
    throw;
  } catch (const FileError &error) {
    if (error.path != member.archive) throw;
    fail_file(path(), error.problem, error.number);
  }
}

bool FileReader::read_parts(const std::string &archive, uint64_t archive_size, std::span<const FilePart> parts) {
  try {
    const std::shared_ptr<OpenFile> file = archives_.open(archive);
    return (archive_size == 0 || file->size() == archive_size) && file->read_parts(parts);
  } catch (const FileError &) {
    return false;
  }
}

FileBytes FileReader::read_object(const std::string &uri, const Allocate &allocate, uint64_t listed_size) {
  const size_t size = listed_size > 0 ? listed_size : storage_->size(uri);
  check_size(uri, size);
  if (size == 0) fail_file(uri, "is empty");
  Block block = allocate(size);
  // A byte more than there should be, if the last page has room for it: an object that has grown is noticed.
  const std::span<uint8_t> room(block.get(), std::min(size + 1, whole_pages(size)));
  if (storage_->read(uri, 0, room) != size)
    fail_file(uri, "no longer has " + std::to_string(size) + " bytes, as it had when it was looked at first");
  return {std::move(block)};
}

void FileReader::drop_if_refused(const std::string &path, OpenFile &file, uint64_t offset, size_t size) {
  if (mode_ != ReadMode::direct || file.direct()) return;
  file.drop_from_page_cache(offset, size);
  if (!warned_.test_and_set()) {
    warn_(path + ": the file system refuses direct reads; its files are read through the page cache, which is slower");
  }
}

}  // namespace dali_l3::loader
