#include "archives/indexing.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "dataset/checksum.h"
#include "input/open_file.h"
#include "input/uri.h"
#include "temporary_file.h"

namespace dali_l3::loader {
namespace {

namespace fs = std::filesystem;

ReadAt read_at(const RandomAccessFile &file) {
  return [&file](uint64_t offset, std::span<uint8_t> bytes) { return file.read_at(offset, bytes); };
}

bool exists(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

// Whether the text is that of an index that this program has made.
bool is_ours(const std::string &text) { return text.substr(0, text.find('\n')).find(" size=") != std::string::npos; }

// Services that do not let people list a bucket say that they may not see what is not there.
bool is_absent(const FileError &error) {
  return error.number == ENOENT || error.number == ENOTDIR || (is_uri(error.path) && error.number == EACCES);
}

// An index at a path, if there is one that can be used. Nothing if it is ours and out of date.
std::optional<ArchiveIndex> usable_index(const std::string &path, const std::string &archive, const Storage &storage) {
  try {
    return read_index(path, archive, storage);
  } catch (const StorageError &) {
    throw;
  } catch (const FileError &error) {
    if (error.path == path && is_absent(error)) return std::nullopt;
    if (error.path != archive && is_ours(storage.read_text(path))) return std::nullopt;
    throw;
  }
}

// Where the index is that could not be written beside its archive: nowhere, if there is no home. The name tells of all
// that an archive which has been replaced differs in; of one in a bucket no more than its size is known.
std::string cached_index_path(const std::string &archive, const Storage &storage) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  const bool has_cache = cache && *cache == '/';
  if (!has_cache && (!home || *home != '/')) return "";
  const std::string folder = (has_cache ? std::string(cache) : std::string(home) + "/.cache") + "/dali_l3";
  const std::string path = is_uri(archive) ? archive : fs::absolute(archive).lexically_normal().string();
  Checksum checksum;
  checksum.add(path.data(), path.size());
  const std::string name =
      folder + "/" + fs::path(archive).stem().string().substr(0, 100) + "-" + checksum.text() + "-";
  if (is_uri(archive)) return name + std::to_string(storage.size(archive)) + ".idx";
  struct stat status;
  if (stat(archive.c_str(), &status) != 0) return "";
  return name + std::to_string(status.st_size) + "-" + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec) + ".idx";
}

// The index whose text this is. The path of the index is for messages.
ArchiveIndex fitting_index(const std::string &path, const std::string &text, const std::string &archive,
                           const RandomAccessFile &file) {
  ArchiveIndex index = parse_index(path, text, file.size());
  if (index.samples() == 0) fail_file(path, "is the index of an archive without samples");
  // If the archive has been replaced by one with other samples, or in another order, one of these has moved.
  for (const size_t m : {index.members.size() / 2, index.members.size() - 1}) {
    const TarMember &member = index.members[m];
    if (!is_tar_member(member.offset, member.size, read_at(file)))
      fail_file(path, "does not fit " + archive + ", which has no member of " + std::to_string(member.size) +
                          " bytes at byte " + std::to_string(member.offset) +
                          ". Make it anew: dali-l3 index --overwrite " + archive);
  }
  return index;
}

}  // namespace

std::string default_index_path(const std::string &archive) {
  constexpr std::string_view kSuffix = ".tar";
  return (archive.ends_with(kSuffix) ? archive.substr(0, archive.size() - kSuffix.size()) : archive) + ".idx";
}

ArchiveIndex make_index(const std::string &archive, const std::atomic<bool> *cancelled, const Storage &storage) {
  const auto file = storage.open(archive);
  ArchiveIndex index = group(list_tar(archive, file->size(), read_at(*file), cancelled));
  if (index.samples() == 0) fail_file(archive, "holds no samples: files with names such as 0001.jpg and 0001.cls");
  return index;
}

ArchiveIndex read_index(const std::string &path, const std::string &archive, const Storage &storage) {
  const auto file = storage.open(archive);
  return fitting_index(path, storage.read_text(path), archive, *file);
}

bool is_index_of(const std::string &archive, const std::string &text, const Storage &storage) {
  if (!is_ours(text)) return false;
  try {
    fitting_index("", text, archive, *storage.open(archive));
    return true;
  } catch (const FileError &error) {
    if (error.number) throw;
    return false;  // what may be wrong with the archive itself is told where an index is made of it
  }
}

void save_index(const ArchiveIndex &index, uint64_t archive_size, const std::string &path) {
  const std::string text = write_index(index, archive_size);
  TemporaryFile file(path);
  file.write({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  file.rename_to(path);
}

IndexUpdate update_index(const std::string &archive, const std::string &path, bool overwrite) {
  const Storage &files = *Storage::local();
  if (!overwrite && exists(path)) {
    const std::string text = files.read_text(path);
    if (!text.starts_with("v1.")) fail_file(path, "exists and is no index");
    if (is_ours(text))
      if (const auto index = usable_index(path, archive, files)) return {true, repeated_keys(*index)};
  }
  const ArchiveIndex index = make_index(archive);
  save_index(index, files.open(archive)->size(), path);
  return {false, repeated_keys(index)};
}

FoundIndex find_index(const std::string &archive, const std::atomic<bool> *cancelled, const Storage &storage) {
  const std::string beside = default_index_path(archive);
  if (auto index = usable_index(beside, archive, storage)) return {std::move(*index)};
  const std::string cached = cached_index_path(archive, storage);
  if (!cached.empty())
    if (auto index = usable_index(cached, archive, storage)) return {std::move(*index)};

  FoundIndex made{make_index(archive, cancelled, storage)};
  const uint64_t size = storage.open(archive)->size();
  if (is_uri(archive)) {
    made.problem = "nothing is written to buckets";
  } else {
    try {
      save_index(made.index, size, beside);
    } catch (const FileError &error) {
      made.problem = error.what();
    }
  }
  if (made.problem.empty() || cached.empty()) return made;
  try {
    fs::create_directories(fs::path(cached).parent_path());
    save_index(made.index, size, cached);
    made.problem.clear();
  } catch (const std::runtime_error &error) {
    made.problem += std::string("; ") + error.what();
  }
  return made;
}

}  // namespace dali_l3::loader
