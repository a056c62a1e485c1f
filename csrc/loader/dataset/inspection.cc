#include "dataset/inspection.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <stdexcept>

#include "archives/tar.h"
#include "checks/file_check.h"
#include "dataset/archive_labels.h"
#include "dataset/counted.h"
#include "input/file_reading.h"
#include "input/open_file.h"
#include "input/read_pool.h"
#include "input/uri.h"

namespace dali_l3::loader {
namespace {

// Entries that a thread looks at in one go.
constexpr size_t kStretch = 256;

// A larger file in an archive is no label.
constexpr uint64_t kMaxLabelSize = uint64_t{16} << 20;

bool is_missing(const std::string &path, const Storage &storage) {
  if (is_uri(path)) return storage.is_missing(path);
  struct stat status;
  return stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

// The format of a file, if it is to be sniffed. Throws what is wrong with it.
FileFormat look_at_bytes(const std::string &path, uint64_t size, const ReadAt &read, bool sniffs, bool checks_header) {
  check_size(path, size);
  if (!sniffs) return FileFormat::unknown;
  uint8_t bytes[std::max(kSniffedBytes, kLfsBytes)];
  const std::span<const uint8_t> head(bytes, read(0, bytes));
  refuse_lfs_pointer(path, head);
  if (checks_header) refuse_garbage(path, head);
  const FileFormat format = sniff(head);
  if (checks_header) check_header(path, format, size, read);
  return format;
}

int as_class(const std::vector<double> &numbers) {
  if (numbers.size() != 1)
    throw std::runtime_error("should hold one number, but has " + std::to_string(numbers.size()));
  const double label = numbers[0];
  constexpr double kMin = std::numeric_limits<int>::min(), kMax = std::numeric_limits<int>::max();
  if (!(label >= kMin && label <= kMax) || label != std::rint(label))
    throw std::runtime_error("has the label " + std::to_string(label) + ", which is no integer of 32 bits");
  return static_cast<int>(label);
}

}  // namespace

const std::string &if_missing(const CatalogueOptions &options, size_t c) {
  if (options.archives) return options.archives->missing_component_behavior;
  return options.missing_companions[options.missing_companions.size() == 1 ? 0 : c];
}

void check_replacements(const CatalogueOptions &options, const std::string &root) {
  for (const std::string &replacement : options.missing_companions) {
    // It must not be missing, whether it is needed or not: it may be a name misspelt.
    if (replacement == kMissingIsBad || replacement == kMissingIsEmpty) continue;
    if (const std::string path = full_path(root, replacement); is_missing(path, *options.storage))
      throw std::runtime_error("missing_companions is \"" + replacement +
                               "\", but must be \"error\", \"empty\" or the path of a file, and there is no " + path);
  }
}

Inspection::Inspection(const CatalogueOptions &options, Catalogue &catalogue, std::vector<File> label_files)
    : options_(options), catalogue_(catalogue), label_files_(std::move(label_files)), archives_(false) {}

void Inspection::for_each_entry(const std::function<void(size_t entry)> &look) {
  const size_t size = catalogue_.entries.size();
  ReadPool pool(options_.threads);
  std::vector<std::future<void>> stretches;
  for (size_t first = 0; first < size; first += kStretch) {
    stretches.push_back(pool.submit([&, first] {
      for (size_t i = first; i < std::min(first + kStretch, size); i++) {
        if (options_.cancelled && *options_.cancelled) return;
        look(i);
      }
    }));
  }
  for (auto &stretch : stretches) stretch.get();
  if (options_.cancelled && *options_.cancelled) throw std::runtime_error("The listing of the dataset was interrupted");
}

void Inspection::read_labels() {
  if (label_files_.empty()) return;
  catalogue_.label_values.own().resize(label_files_.size() * static_cast<size_t>(options_.label_columns));
  catalogue_.entries.prepare();
  for_each_entry([&](size_t i) { catalogue_.entries.set_label(i, read_label(catalogue_.entries[i])); });
  label_files_.clear();
}

// Its label, or with several numbers the row that they have been put into.
int Inspection::read_label(const Entry &entry) {
  const auto row = static_cast<size_t>(entry.label);
  const File &file = label_files_[row];
  const auto columns = static_cast<size_t>(options_.label_columns);
  std::string problem;
  try {
    if (file.offset == 0) throw std::runtime_error("is missing");
    if (file.size > kMaxLabelSize) throw std::runtime_error("is too large, with " + counted(file.size, "byte"));
    std::string text(file.size, '\0');
    const auto archive = open_archive(file);
    if (archive->read_at(file.offset, {reinterpret_cast<uint8_t *>(text.data()), text.size()}) != text.size())
      throw std::runtime_error("lies beyond the end of the archive");
    const std::vector<double> numbers = label_numbers(text, options_.archives->label_field);
    if (columns == 0) return as_class(numbers);
    if (numbers.size() != columns)
      throw std::runtime_error("has " + counted(numbers.size(), "number") + ", but label_columns is " +
                               std::to_string(columns));
    std::ranges::transform(numbers, catalogue_.label_values.own().begin() + static_cast<ptrdiff_t>(row * columns),
                           [](double number) { return static_cast<float>(number); });
    return entry.label;
  } catch (const StorageError &) {
    throw;
  } catch (const std::runtime_error &error) {
    problem = error.what();
  }
  const std::string where = file.offset == 0 ? full_name(catalogue_, entry.file) + ": its label, a component " +
                                                   *options_.archives->label_ext + ","
                                             : full_name(catalogue_, file) + ":";
  std::lock_guard lock(mutex_);
  bad_labels_[place_of(entry)] = where + " " + problem;
  return columns == 0 ? 0 : entry.label;
}

Inspection::Place Inspection::place_of(const Entry &entry) const {
  return {name_of(catalogue_.archives, entry.file), entry.file.offset};
}

std::map<size_t, std::string> Inspection::look_at_all() {
  read_labels();
  catalogue_.entries.prepare();
  std::map<size_t, std::string> problems;
  for_each_entry([&](size_t i) {
    const Entry listed = catalogue_.entries[i];
    Entry entry = listed;
    std::string problem = look_at(entry);
    catalogue_.entries.set_looked_at(i, entry);
    std::lock_guard lock(mutex_);
    if (!problem.empty()) problems[i] = std::move(problem);
    for (size_t c = 0; c < entry.companions.size(); c++)
      if (entry.companions[c].path != listed.companions[c].path) replaced_.emplace_back(i, c);
  });
  for (const auto &[i, c] : replaced_) {
    const std::string &replacement = if_missing(options_, c);
    catalogue_.entries.set_path(i, c + 1, replacement == kMissingIsEmpty ? "" : replacement);
  }
  return problems;
}

std::string Inspection::look_at(Entry &entry) {
  const bool checks = options_.check_headers, sniffs = options_.sniff || checks;
  try {
    if (entry.file.is_member() && entry.file.offset == 0)
      fail_file(full_name(catalogue_, entry.file),
                "has no component " + options_.archives->ext[0] +
                    R"(, the image; missing_component_behavior="skip" leaves such samples out)");
    if (sniffs || options_.sizes || entry.file.is_member()) {
      entry.format = look_at_file(entry.file, sniffs, checks);
      if (sniffs && entry.format == FileFormat::unknown)
        fail_file(full_name(catalogue_, entry.file), "of no known image format");
    }
    for (size_t c = 0; c < entry.companions.size(); c++) look_at_companion(entry, c);
    if (bad_labels_.empty()) return "";
    const auto bad = bad_labels_.find(place_of(entry));
    return bad == bad_labels_.end() ? "" : bad->second;
  } catch (const StorageError &) {
    throw;
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

// The format of a file, if it is to be sniffed, and the size of one that is no member. Throws what is wrong with it.
FileFormat Inspection::look_at_file(File &file, bool sniffs, bool checks_header) {
  const std::string name = full_name(catalogue_, file);
  if (!file.is_member()) {
    const auto open = options_.storage->open(name, file.size);
    file.size = open->size();
    const auto read = [&](uint64_t offset, std::span<uint8_t> bytes) { return open->read_at(offset, bytes); };
    return look_at_bytes(name, file.size, read, sniffs, checks_header);
  }
  if (!sniffs) return look_at_bytes(name, file.size, nullptr, false, false);  // without opening the archive

  const std::string path = stored_path(catalogue_, file);
  const auto archive = open_archive(file);
  const auto read_archive = [&](uint64_t offset, std::span<uint8_t> bytes) { return archive->read_at(offset, bytes); };
  if (!is_tar_member(file.offset, file.size, read_archive))
    fail_file(name, "is not where the index of its archive says. Make that anew: dali-l3 index --overwrite " + path);
  const ReadAt read = [&](uint64_t offset, std::span<uint8_t> bytes) {
    const uint64_t rest = file.size - std::min(offset, file.size);
    return read_archive(file.offset + offset, bytes.first(std::min<uint64_t>(bytes.size(), rest)));
  };
  return look_at_bytes(name, file.size, read, sniffs, checks_header);
}

// The archive of a member. Of one in a bucket, what lies behind the member does not exist for it.
std::shared_ptr<RandomAccessFile> Inspection::open_archive(const File &member) {
  const std::string path = stored_path(catalogue_, member);
  if (is_uri(path)) return options_.storage->open(path, member.offset + member.size);
  return archives_.open(path);
}

// Finds out the size of companion `c` of an image, whose path is empty if a list or an archive has none, or puts what
// it may be replaced by in its place. Throws what is wrong with it.
void Inspection::look_at_companion(Entry &entry, size_t c) {
  File &companion = entry.companions[c];
  const std::string &replacement = if_missing(options_, c);
  if (replacement == kMissingIsBad && companion.path.empty())
    fail_file(full_name(catalogue_, entry.file), options_.archives
                                                     ? "has no component " + options_.archives->ext[c + 1]
                                                     : "the path of its companion " + std::to_string(c) + " is empty");
  if (companion.is_member()) {
    if (!companion.path.empty()) look_at_file(companion, options_.check_headers, options_.check_headers);
    return;
  }
  if (replacement != kMissingIsBad &&
      (companion.path.empty() || is_missing(full_path(catalogue_.root, companion.path), *options_.storage))) {
    companion = {replacement == kMissingIsEmpty ? "" : replacement};
    if (companion.path.empty()) return;
  }
  look_at_file(companion, options_.check_headers, options_.check_headers);
}

}  // namespace dali_l3::loader
