#include "dataset/entries.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "archives/tar.h"
#include "input/arena.h"
#include "input/file_reading.h"

namespace dali_l3::loader {

Entries::Entries(EntryColumns mapped)
    : rows_(mapped.rows),
      components_(),
      labels_(mapped.labels),
      formats_(mapped.formats),
      numbered_(mapped.labels.empty()),
      folders_(std::move(mapped.folders)),
      source_(std::move(mapped.source)),
      archives_(mapped.archives),
      mapping_(std::move(mapped.mapping)) {
  for (EntryColumns::Component &component : mapped.components)
    components_.push_back(
        {std::move(component.names), Column(component.places), Column(component.sizes), Column(component.blocks)});
}

void Entries::fail_damaged(const std::string &problem) const {
  if (source_.empty()) throw std::logic_error("The list of entries is damaged: " + problem);
  throw std::runtime_error(source_ + " is damaged: " + problem + ". Make it anew with dali-l3 index");
}

Entry Entries::operator[](size_t i) const {
  Entry entry{.file = file(i, 0), .label = label(i), .weight = weight(i), .format = format(i), .companions = {}};
  entry.companions.reserve(companions());
  for (size_t c = 1; c <= companions(); c++) entry.companions.push_back(file(i, c));
  return entry;
}

int Entries::label(size_t i) const { return numbered_ ? static_cast<int>(row(i)) : labels_[row(i)]; }

FileFormat Entries::format(size_t i) const {
  const uint8_t format = formats_[row(i)];
  if (format >= kFormats) fail_damaged("there is no format " + std::to_string(format));
  return static_cast<FileFormat>(format);
}

File Entries::file(size_t i, size_t component) const {
  const FileColumns &columns = components_[component];
  const size_t at = row(i);
  const uint32_t place = columns.places[at];
  File file{.size = columns.sizes[at], .offset = columns.blocks[at] * kTarBlock};
  try {
    if (place & kInArchive) {
      file.archive = place & ~kInArchive;
      file.path = columns.names[at];
    } else {
      if (const uint32_t folder = place & ~kWholePath; folder < folders_.size())
        file.path = folders_[folder];
      else
        throw std::runtime_error("a folder is missing");
      if (!(place & kWholePath)) file.path += columns.names[at];
    }
  } catch (const std::runtime_error &error) {
    fail_damaged(error.what());
  }
  if (file.is_member() && !source_.empty() && file.archive >= archives_) fail_damaged("an archive is missing");
  return file;
}

uint64_t Entries::memory(size_t i) const {
  uint64_t bytes = 0;
  for (const FileColumns &columns : components_) {
    const uint64_t size = columns.sizes[row(i)];
    if (size > kMaxFileSize) fail_damaged("a file has " + std::to_string(size) + " bytes");
    bytes += whole_pages(size);
  }
  return bytes;
}

void Entries::push_back(const Entry &entry) {
  push_file(components_[0], entry.file);
  labels_.set(rows_, entry.label);
  weights_.set(rows_, entry.weight);
  formats_.set(rows_, static_cast<uint8_t>(entry.format));
  rows_++;
  for (size_t c = 1; c <= std::max(companions(), entry.companions.size()); c++) {
    while (companions() < c) components_.emplace_back();
    while (components_[c].names.size() + 1 < rows_) push_file(components_[c], {});
    push_companion(c, c <= entry.companions.size() ? entry.companions[c - 1] : File{});
  }
}

void Entries::push_back(std::string_view folder, std::string_view name, int label) {
  components_[0].names.push_back(name);
  components_[0].places.set(rows_, folder_number(folder));
  labels_.set(rows_, label);
  rows_++;
}

void Entries::push_companion(size_t companion, const File &file) {
  while (companions() < companion) components_.emplace_back();
  push_file(components_[companion], file);
}

void Entries::push_file(FileColumns &columns, const File &file) {
  const size_t at = columns.names.size();
  if (file.offset % kTarBlock != 0 || file.offset / kTarBlock > UINT32_MAX)
    fail_file(file.path, "begins at byte " + std::to_string(file.offset) +
                             " of its archive, where no member can: at multiples of 512, up to 2 TiB");
  std::string_view name = file.path;
  uint32_t place = kInArchive | file.archive;
  if (!file.is_member()) {
    const size_t slash = name.rfind('/');
    const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
    place = folder_number(name.substr(0, begin));
    name.remove_prefix(begin);
  }
  columns.names.push_back(name);
  columns.places.set(at, place);
  columns.sizes.set(at, file.size);
  columns.blocks.set(at, static_cast<uint32_t>(file.offset / kTarBlock));
}

uint32_t Entries::folder_number(std::string_view folder) {
  const size_t count = folders_.size();
  if (count > 0 && folders_[count - 1] == folder) return static_cast<uint32_t>(count - 1);
  if (const auto found = folder_numbers_.find(folder); found != folder_numbers_.end()) return found->second;
  if (count >= kWholePath) throw std::runtime_error("The dataset has too many folders");
  folders_.push_back(folder);
  folder_numbers_.emplace(folder, static_cast<uint32_t>(count));
  return static_cast<uint32_t>(count);
}

void Entries::prepare() {
  labels_.fill(rows_);
  formats_.fill(rows_);
  for (FileColumns &columns : components_) columns.sizes.fill(rows_);
}

void Entries::set_looked_at(size_t i, const Entry &entry) {
  formats_.set(row(i), static_cast<uint8_t>(entry.format));
  components_[0].sizes.set(row(i), entry.file.size);
  for (size_t c = 0; c < entry.companions.size(); c++) components_[c + 1].sizes.set(row(i), entry.companions[c].size);
}

void Entries::set_path(size_t i, size_t component, const std::string &path) {
  components_[component].places.set(row(i), kWholePath | folder_number(path));
}

void Entries::keep(const std::vector<bool> &chosen) {
  std::vector<uint32_t> rows;
  for (size_t i = 0; i < chosen.size(); i++)
    if (chosen[i]) rows.push_back(static_cast<uint32_t>(row(i)));
  rows.shrink_to_fit();
  chosen_ = std::move(rows);
}

Entries Entries::compact() const {
  Entries entries;
  for (const Entry &entry : *this) entries.push_back(entry);
  entries.shrink();
  return entries;
}

EntryColumns Entries::stored() {
  prepare();
  EntryColumns stored;
  stored.rows = rows_;
  stored.folders = Strings(folders_.ends(), folders_.bytes());
  stored.labels = labels_.values();
  stored.formats = formats_.values();
  for (FileColumns &columns : components_) {
    columns.places.fill(rows_);
    columns.blocks.fill(rows_);
    stored.components.push_back({.names = Strings(columns.names.ends(), columns.names.bytes()),
                                 .places = columns.places.values(),
                                 .sizes = columns.sizes.values(),
                                 .blocks = columns.blocks.values()});
  }
  return stored;
}

void Entries::shrink() {
  folder_numbers_ = decltype(folder_numbers_)();
  folders_.shrink();
  labels_.shrink();
  weights_.shrink();
  formats_.shrink();
  for (auto &[names, places, sizes, blocks] : components_) {
    names.shrink();
    places.shrink();
    sizes.shrink();
    blocks.shrink();
  }
}

size_t Entries::held_bytes() const {
  size_t bytes = labels_.held_bytes() + weights_.held_bytes() + formats_.held_bytes() + folders_.held_bytes();
  for (const auto &[names, places, sizes, blocks] : components_)
    bytes += names.held_bytes() + places.held_bytes() + sizes.held_bytes() + blocks.held_bytes();
  return chosen_ ? bytes + chosen_->capacity() * sizeof(uint32_t) : bytes;
}

size_t Entries::name_bytes() const {
  size_t bytes = 0;
  for (const FileColumns &columns : components_) bytes += columns.names.bytes().size();
  return bytes;
}

}  // namespace dali_l3::loader
