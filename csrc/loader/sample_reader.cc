#include "sample_reader.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "file_format.h"
#include "header_check.h"

namespace dali_l3::loader {
namespace {

// Bytes of memory that no sample uses any more and that stay resident for those to come. With less than some batches and the gaps between
// files of different sizes, memory would be given back to the system and fetched anew for every batch.
constexpr size_t kMaxIdle = size_t{256} << 20;

void check_header_in_memory(const std::string &path, FileFormat format, std::span<const uint8_t> bytes) {
  const auto read = [&](uint64_t offset, std::span<uint8_t> target) {
    const auto rest = bytes.subspan(std::min<uint64_t>(offset, bytes.size()));
    const size_t size = std::min(rest.size(), target.size());
    std::copy_n(rest.begin(), size, target.begin());
    return size;
  };
  check_header(path, format, bytes.size(), read);
}

}  // namespace

SampleReader::SampleReader(const SampleReaderOptions &options, std::function<void(const std::string &)> warn)
    : check_headers_(options.check_headers),
      arena_(kMaxIdle),
      cache_(arena_, options.cache_bytes),
      staging_(arena_, Quota::kUnlimited),
      files_(options.mode, std::move(warn)) {}

std::shared_ptr<const Sample> SampleReader::read(const std::string &root, const Entry &entry, bool keep) {
  const auto allocate = [&](size_t bytes) {
    std::shared_ptr<uint8_t> block;
    if (keep) block = cache_.allocate(bytes);
    return block ? block : staging_.allocate(bytes);
  };
  const std::string path = full_path(root, entry.file.path);
  auto sample = std::make_shared<Sample>();
  sample->path = entry.file.path;
  sample->label = entry.label;
  sample->files.reserve(1 + entry.companions.size());

  const FileBytes &image = sample->files.emplace_back(files_.read(path, allocate));
  const std::span bytes(image.data.get(), image.size);
  if (entry.format != FileFormat::unknown && sniff(bytes) != entry.format)
    throw std::runtime_error(path + " was a file of the format " + format_name(entry.format) + " and is none any more");
  if (check_headers_) check_header_in_memory(path, entry.format, bytes);
  for (const File &companion : entry.companions) sample->files.push_back(files_.read(full_path(root, companion.path), allocate));
  return sample;
}

}  // namespace dali_l3::loader
