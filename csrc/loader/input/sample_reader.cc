#include "input/sample_reader.h"

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>

#include "checks/image_size.h"
#include "dataset/companions.h"
#include "dataset/counted.h"
#include "dataset/file_format.h"

namespace dali_l3::loader {
namespace {

// Bytes of memory that no sample uses any more and that stay resident for those to come. With less than some batches
// and the gaps between files of different sizes, memory would be given back to the system and fetched anew for every
// batch.
constexpr size_t kMaxIdle = size_t{256} << 20;

std::string text_of(const ImageSize &size) {
  return "height " + std::to_string(size.height) + " and width " + std::to_string(size.width);
}

// Sizes that cannot be told are not compared.
void require_equal_sizes(const std::string &path, const std::optional<ImageSize> &size,
                         const std::string &companion_path, const std::optional<ImageSize> &companion_size) {
  if (!size || !companion_size || *size == *companion_size) return;
  throw std::runtime_error(path + " has " + text_of(*size) + ", but its companion " + companion_path + " has " +
                           text_of(*companion_size));
}

// What messages of files add that are not as their catalogue says.
std::string unlike(const Catalogue &catalogue) {
  if (catalogue.file.empty()) return "";
  return ", unlike in the catalogue " + catalogue.file + ". Make that anew with dali-l3 index";
}

}  // namespace

SampleReader::SampleReader(const SampleReaderOptions &options, std::function<void(const std::string &)> warn)
    : check_(options.check),
      equal_sizes_(options.equal_sizes),
      arena_(kMaxIdle),
      cache_(arena_, options.cache_bytes),
      staging_(arena_, Quota::kUnlimited),
      files_(options.mode, std::move(warn), options.storage) {}

Sample SampleReader::read(const Catalogue &catalogue, const Entry &entry, bool keep) {
  const auto allocate = [&](size_t size) {
    Block block = keep ? cache_.allocate(size) : nullptr;
    return block ? std::move(block) : staging_.allocate(size);
  };
  const std::string path = full_name(catalogue, entry.file);
  Sample sample{.image = read_file(catalogue, entry.file, allocate), .companions = {}};
  const auto image = sample.image.bytes();
  refuse_lfs_pointer(path, image);
  const FileFormat format = sniff(image);
  if (entry.format != FileFormat::unknown && format != entry.format) {
    const std::string name = format_name(entry.format);
    throw std::runtime_error(path + " is no longer " + (name.starts_with("L3") ? "an " : "a ") + name + " file" +
                             unlike(catalogue));
  }
  check(path, format, image);
  auto last = sample.companions.before_begin();
  for (const File &file : entry.companions) {
    last = sample.companions.emplace_after(last);
    if (file.path.empty()) continue;
    const std::string companion_path = full_name(catalogue, file);
    *last = read_file(catalogue, file, allocate);
    refuse_lfs_pointer(companion_path, last->bytes());
    if (check_ != Check::none || equal_sizes_) refuse_garbage(companion_path, last->bytes());
    check(companion_path, sniff(last->bytes()), last->bytes());
    if (equal_sizes_) require_equal_sizes(path, image_size(image), companion_path, image_size(last->bytes()));
  }
  return sample;
}

FileBytes SampleReader::read_file(const Catalogue &catalogue, const File &file, const FileReader::Allocate &allocate) {
  try {
    FileBytes bytes = read_as_it_is(catalogue, file, allocate);
    if (!catalogue.file.empty() && bytes.size() != file.size)
      fail_file(full_name(catalogue, file),
                "has " + counted(bytes.size(), "byte") + ", and not " + std::to_string(file.size));
    return bytes;
  } catch (const FileError &error) {
    const bool is_misfit = error.number == 0 || error.number == ENOENT || error.number == ENOTDIR;
    if (catalogue.file.empty() || !is_misfit) throw;
    throw FileError(error.path, error.problem + unlike(catalogue), error.number);
  }
}

FileBytes SampleReader::read_as_it_is(const Catalogue &catalogue, const File &file,
                                      const FileReader::Allocate &allocate) {
  if (!file.is_member()) return files_.read(full_path(catalogue.root, file.path), allocate, file.size);
  const std::string archive = full_path(catalogue.root, catalogue.archives[file.archive]);
  const uint64_t size = catalogue.archive_sizes.empty() ? 0 : catalogue.archive_sizes[file.archive];
  return files_.read(Member{archive, file.path, file.offset, file.size, size}, allocate);
}

void SampleReader::check(const std::string &path, FileFormat format, std::span<const uint8_t> file) const {
  if (check_ == Check::headers) check_header(path, format, file.size(), read_at(file));
  if (check_ == Check::content) check_content(path, format, file);
}

}  // namespace dali_l3::loader
