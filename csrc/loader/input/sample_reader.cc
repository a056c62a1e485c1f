#include "input/sample_reader.h"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "checks/image_size.h"
#include "dataset/companions.h"
#include "dataset/counted.h"
#include "dataset/file_format.h"
#include "input/parted_block.h"
#include "input/uri.h"

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

// Whether it is worth while to read what lies between two files, too.
bool follows(const File &next, const File &file) {
  const uint64_t end = file.offset + file.size;
  return next.archive == file.archive && next.offset >= end && next.offset - end <= kMaxGap;
}

}  // namespace

SampleReader::SampleReader(const SampleReaderOptions &options, std::function<void(const std::string &)> warn)
    : check_(options.check),
      equal_sizes_(options.equal_sizes),
      mode_(options.mode),
      arena_(kMaxIdle),
      cache_(arena_, options.cache_bytes),
      staging_(arena_, Quota::kUnlimited),
      files_(options.mode, std::move(warn), options.storage) {}

Sample SampleReader::read(const Catalogue &catalogue, const Entry &entry, bool keep) {
  return read_rest(catalogue, entry, keep,
                   read_file(catalogue, entry.file, [&](size_t size) { return allocate(size, keep); }));
}

Sample SampleReader::read(const Catalogue &catalogue, const Entry &entry, bool keep, Block image) {
  return read_rest(catalogue, entry, keep, {std::move(image)});
}

Block SampleReader::allocate(size_t size, bool keep) {
  Block block = keep ? cache_.allocate(size) : nullptr;
  return block ? std::move(block) : staging_.allocate(size);
}

// Checks the image, and reads the companions.
Sample SampleReader::read_rest(const Catalogue &catalogue, const Entry &entry, bool keep, FileBytes image_bytes) {
  const auto path = [&] { return full_name(catalogue, entry.file); };  // which good files do without
  Sample sample{.image = std::move(image_bytes), .companions = {}};
  const auto image = sample.image.bytes();
  if (is_lfs_pointer(image)) fail_lfs_pointer(path());
  const FileFormat format = sniff(image);
  if (entry.format != FileFormat::unknown && format != entry.format) {
    const std::string name = format_name(entry.format);
    throw std::runtime_error(path() + " is no longer " + (name.starts_with("L3") ? "an " : "a ") + name + " file" +
                             unlike(catalogue));
  }
  if (check_ != Check::none) check(path(), format, image);
  auto last = sample.companions.before_begin();
  for (const File &file : entry.companions) {
    last = sample.companions.emplace_after(last);
    if (file.path.empty()) continue;
    const std::string companion_path = full_name(catalogue, file);
    *last = read_file(catalogue, file, [&](size_t size) { return allocate(size, keep); });
    refuse_lfs_pointer(companion_path, last->bytes());
    if (check_ != Check::none || equal_sizes_) refuse_garbage(companion_path, last->bytes());
    check(companion_path, sniff(last->bytes()), last->bytes());
    if (equal_sizes_) require_equal_sizes(path(), image_size(image), companion_path, image_size(last->bytes()));
  }
  return sample;
}

bool SampleReader::reads_runs(const Catalogue &catalogue) const {
  const auto is_object = [&](const std::string &path) { return is_uri(full_path(catalogue.root, path)); };
  return mode_ == ReadMode::buffered && !catalogue.archives.empty() &&
         std::ranges::none_of(catalogue.archives, is_object);
}

std::vector<Block> SampleReader::allocate(std::span<const size_t> sizes) {
  return cut(staging_.allocate(std::accumulate(sizes.begin(), sizes.end(), size_t{0})), sizes);
}

void SampleReader::read_images(const Catalogue &catalogue, std::span<const uint32_t> entries, std::span<Block> images) {
  std::vector<File> files;
  for (const uint32_t entry : entries) files.push_back(catalogue.entries.file(entry, 0));
  std::vector<FilePart> run;
  for (size_t first = 0, end; first < files.size(); first = end) {
    run.clear();
    for (end = first; end == first || (end < files.size() && follows(files[end], files[end - 1])); end++)
      run.push_back({files[end].offset, {images[end].get(), images[end].get_deleter().size}});
    if (!read_run(catalogue, files[first].archive, run))
      for (Block &image : images.subspan(first, end - first)) image = nullptr;
  }
}

bool SampleReader::read_run(const Catalogue &catalogue, uint32_t archive, std::span<const FilePart> run) {
  if (archive == File::kNoArchive) return false;
  const uint64_t size = catalogue.archive_sizes.empty() ? 0 : catalogue.archive_sizes[archive];
  return files_.read_parts(full_path(catalogue.root, catalogue.archives[archive]), size, run);
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
