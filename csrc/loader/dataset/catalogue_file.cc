#include "dataset/catalogue_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "dataset/counted.h"
#include "input/open_file.h"
#include "input/uri.h"
#include "l3/format/crc32.h"
#include "plans/shards.h"
#include "temporary_file.h"

namespace dali_l3::loader {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "columns are mapped as they are stored");

constexpr std::string_view kMagic("\x89L3C\r\n\x1a\n", 8);
constexpr uint32_t kVersion = 1;
constexpr size_t kAlignment = 64;  // of sections
constexpr uint32_t kHasLabels = 1;

// No catalogue asks for more than this: else readers refuse it. @{
constexpr uint32_t kMostSections = 1 << 16;
constexpr uint32_t kMostFiles = 1 << 12;  // of a sample
constexpr uint32_t kMostColumns = 1 << 20;
// @}

struct Header {
  char magic[8];
  uint32_t version, sections;
  uint64_t file_size, samples;
  uint32_t files, label_columns, flags;
  uint32_t zero[4];
  uint32_t checksum;  // of all before it, and of the table that follows
};
static_assert(sizeof(Header) == 64);

struct Section {
  uint32_t kind, component;
  uint64_t offset, size;
  uint32_t checksum, zero;
};
static_assert(sizeof(Section) == 32);

enum class Kind : uint32_t {
  root = 1,
  origin = 2,
  folder_ends = 3,
  folders = 4,
  archive_ends = 5,
  archives = 6,
  archive_sizes = 7,
  labels = 8,
  label_values = 9,
  formats = 10,
  // Of a component.
  name_ends = 16,
  names = 17,
  places = 18,
  sizes = 19,
  blocks = 20,
};

std::string number_of(Kind kind) { return std::to_string(static_cast<uint32_t>(kind)); }

template <typename T>
std::span<const uint8_t> bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const uint8_t *>(values.data()), values.size_bytes()};
}
std::span<const uint8_t> bytes_of(std::string_view text) { return bytes_of(std::span(text)); }

uint32_t checksum_of(const Header &header, std::span<const Section> table) {
  const uint32_t crc = l3::crc32_ieee(&header, offsetof(Header, checksum));
  return l3::crc32_ieee(table.data(), table.size_bytes(), crc);
}

// ---- Reading

void require_local(const std::string &path) {
  if (is_uri(path)) fail_file(path, "is a URI: catalogues are mapped, so copy it to a file system first");
}

// A file in memory. Whoever changes it in its place changes what is read here: it is to be replaced instead.
class Mapping {
 public:
  explicit Mapping(const std::string &path) {
    require_local(path);
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) fail_file(path, std::generic_category().message(errno), errno);
    struct stat status{};
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      size_ = static_cast<size_t>(status.st_size);
      void *const start = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
      if (start != MAP_FAILED) start_ = start;
    }
    const int error = errno;
    close(descriptor);
    if (start_) return;
    if (!S_ISREG(status.st_mode) || status.st_size == 0) fail_file(path, "is no catalogue of dali-l3");
    fail_file(path, std::generic_category().message(error), error);
  }
  ~Mapping() { munmap(start_, size_); }
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t *>(start_), size_}; }

 private:
  void *start_ = nullptr;
  size_t size_ = 0;
};

[[noreturn]] void fail_damaged(const std::string &path, const std::string &problem) {
  fail_file(path, "is damaged: " + problem + ". Make it anew with dali-l3 index");
}

Header read_header(const std::string &path, std::span<const uint8_t> bytes) {
  Header header;
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    fail_file(path, "is no catalogue of dali-l3");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != kVersion)
    fail_file(path, "is a catalogue of version " + std::to_string(header.version) +
                        ", and this program reads version " + std::to_string(kVersion) +
                        ". Make it anew with dali-l3 index");
  return header;
}

// A catalogue's bytes and what is where in them.
class Sections {
 public:
  Sections(const std::string &path, std::span<const uint8_t> bytes)
      : path_(path), bytes_(bytes), header_(read_header(path, bytes)) {
    require(header_.file_size == bytes.size(),
            "it has " + counted(bytes.size(), "byte") + ", but should have " + std::to_string(header_.file_size));
    require(header_.sections <= kMostSections && header_.sections * sizeof(Section) <= bytes.size() - sizeof header_,
            "its table lies beyond its end");
    table_.resize(header_.sections);
    if (!table_.empty()) std::memcpy(table_.data(), bytes.data() + sizeof header_, table_.size() * sizeof(Section));
    require(checksum_of(header_, table_) == header_.checksum, "the checksum of its header is wrong");
    require(header_.samples >= 1 && header_.samples <= static_cast<uint64_t>(kMaxSamples),
            "its number of samples is " + std::to_string(header_.samples));
    require(header_.files >= 1 && header_.files <= kMostFiles && header_.label_columns <= kMostColumns,
            "its header is wrong");
    for (const Section &section : table_) {
      require(section.offset % kAlignment == 0 && section.offset <= bytes.size() &&
                  section.size <= bytes.size() - section.offset,
              "section " + std::to_string(section.kind) + " lies beyond its end");
      require(places_.emplace(std::pair(section.kind, section.component), &section).second,
              "section " + std::to_string(section.kind) + " is there twice");
    }
  }

  const Header &header() const { return header_; }
  std::span<const Section> table() const { return table_; }
  std::span<const uint8_t> bytes(const Section &section) const { return bytes_.subspan(section.offset, section.size); }

  // The values of a section, none if it is missing.
  template <typename T>
  std::span<const T> values(Kind kind, uint32_t component = 0) const {
    const auto place = places_.find({static_cast<uint32_t>(kind), component});
    if (place == places_.end()) return {};
    const std::span<const uint8_t> found = bytes(*place->second);
    require(found.size() % sizeof(T) == 0, "section " + number_of(kind) + " has half a value at its end");
    return {reinterpret_cast<const T *>(found.data()), found.size() / sizeof(T)};
  }

  // The same, of a known number of values.
  template <typename T>
  std::span<const T> values(Kind kind, uint32_t component, uint64_t count) const {
    const std::span<const T> found = values<T>(kind, component);
    require(found.size() == count, "section " + number_of(kind) + " has " + counted(found.size(), "value") +
                                       " where there should be " + std::to_string(count));
    return found;
  }

  std::string text(Kind kind) const {
    const std::span<const char> found = values<char>(kind);
    return {found.begin(), found.end()};
  }

 private:
  void require(bool condition, const std::string &problem) const {
    if (!condition) fail_damaged(path_, problem);
  }

  const std::string &path_;
  const std::span<const uint8_t> bytes_;
  const Header header_;
  std::vector<Section> table_;
  std::map<std::pair<uint32_t, uint32_t>, const Section *> places_;
};

CatalogueFacts facts_of(const Header &header) {
  return {.samples = header.samples,
          .companions = static_cast<int>(header.files) - 1,
          .has_labels = (header.flags & kHasLabels) != 0,
          .label_columns = static_cast<int>(header.label_columns)};
}

// ---- The root

// The folder that a file is in, from the root of the file system.
fs::path absolute_folder(const std::string &file) { return fs::absolute(file).lexically_normal().parent_path(); }

// The first folder of an absolute path.
fs::path top(const fs::path &path) {
  const fs::path relative = path.relative_path();
  return relative.empty() ? relative : *relative.begin();
}

// A folder without links on its way: ".." leads from there, whichever way somebody has come.
fs::path resolved(const fs::path &folder) {
  std::error_code error;
  fs::path real = fs::weakly_canonical(folder, error);
  return error ? folder : real;
}

// The root as it is stored: from the catalogue's folder on, if they have more in common than the root of the file
// system.
std::string stored_root(const std::string &root, const std::string &file) {
  if (is_uri(root)) return root;
  const fs::path folder = absolute_folder(file);
  fs::path absolute = fs::absolute(root.empty() ? "." : root).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // without a slash at its end
  const bool related = absolute == folder || (!top(folder).empty() && top(folder) == top(absolute));
  if (!related) return absolute.string();
  const fs::path relative = absolute.lexically_relative(folder);
  if (*relative.begin() != "..") return relative.string();
  const fs::path real = resolved(absolute.parent_path()) / absolute.filename();
  return real.lexically_relative(resolved(folder)).string();
}

// Where a catalogue is that may be a link.
std::string behind_links(const std::string &file) {
  std::error_code error;
  if (!fs::is_symlink(file, error)) return file;
  const fs::path real = fs::canonical(file, error);
  return error ? file : real.string();
}

std::string found_root(const std::string &root, const std::string &linked) {
  if (is_uri(root) || root.starts_with('/')) return root;
  const std::string file = behind_links(linked);
  const size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : file.substr(0, std::max<size_t>(slash, 1));
  return root.empty() || root == "." ? folder : full_path(folder, root);
}

// ---- Writing

// What goes into a file, with the sections in the order in which they are added.
class Writer {
 public:
  void add(Kind kind, uint32_t component, std::span<const uint8_t> bytes) {
    contents_.push_back(bytes);
    table_.push_back({.kind = static_cast<uint32_t>(kind),
                      .component = component,
                      .offset = 0,
                      .size = bytes.size(),
                      .checksum = l3::crc32_ieee(bytes.data(), bytes.size()),
                      .zero = 0});
  }
  void add(Kind ends, Kind bytes, uint32_t component, const Strings &texts) {
    add(ends, component, bytes_of(texts.ends()));
    add(bytes, component, bytes_of(texts.bytes()));
  }

  void write(Header header, const std::string &path) {
    uint64_t end = sizeof header + table_.size() * sizeof(Section);
    for (Section &section : table_) {
      section.offset = aligned(end);
      end = section.offset + section.size;
    }
    header.sections = static_cast<uint32_t>(table_.size());
    header.file_size = end;
    header.checksum = checksum_of(header, table_);

    TemporaryFile file(path);
    file.write(bytes_of(std::span<const Header>(&header, 1)));
    file.write(bytes_of(std::span<const Section>(table_)));
    uint64_t at = sizeof header + table_.size() * sizeof(Section);
    constexpr uint8_t kZeros[kAlignment] = {};
    for (size_t i = 0; i < table_.size(); i++) {
      file.write(std::span(kZeros).first(table_[i].offset - at));
      file.write(contents_[i]);
      at = table_[i].offset + table_[i].size;
    }
    file.rename_to(path);
  }

 private:
  static uint64_t aligned(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

  std::vector<Section> table_;
  std::vector<std::span<const uint8_t>> contents_;
};

}  // namespace

CatalogueFacts read_catalogue_facts(const std::string &path) {
  const Mapping mapping(path);
  return facts_of(Sections(path, mapping.bytes()).header());
}

CatalogueFile parse_catalogue(const std::string &path, std::span<const uint8_t> bytes,
                              std::shared_ptr<const void> keeper) {
  const Sections sections(path, bytes);
  const CatalogueFacts facts = facts_of(sections.header());
  const uint64_t rows = facts.samples;
  const auto strings = [&](Kind ends, Kind texts, uint32_t component) {
    return Strings(sections.values<uint64_t>(ends, component), sections.values<char>(texts, component));
  };
  CatalogueFile file{.facts = facts, .catalogue = {}, .origin = sections.text(Kind::origin)};
  Catalogue &catalogue = file.catalogue;
  catalogue.file = path;
  catalogue.root = found_root(sections.text(Kind::root), path);
  catalogue.label_columns = facts.label_columns;
  const Strings archives = strings(Kind::archive_ends, Kind::archives, 0);
  try {
    for (size_t i = 0; i < archives.size(); i++) catalogue.archives.emplace_back(archives[i]);
  } catch (const std::runtime_error &error) {
    fail_damaged(path, error.what());
  }
  const auto archive_sizes = sections.values<uint64_t>(Kind::archive_sizes, 0, archives.size());
  catalogue.archive_sizes.assign(archive_sizes.begin(), archive_sizes.end());

  EntryColumns columns{.source = path, .mapping = std::move(keeper), .rows = rows};
  columns.folders = strings(Kind::folder_ends, Kind::folders, 0);
  columns.archives = static_cast<uint32_t>(archives.size());
  if (facts.label_columns > 0)
    catalogue.label_values =
        Array(sections.values<float>(Kind::label_values, 0, rows * static_cast<uint64_t>(facts.label_columns)));
  else if (facts.has_labels)
    columns.labels = sections.values<int>(Kind::labels, 0, rows);
  columns.formats = sections.values<uint8_t>(Kind::formats, 0, rows);
  for (uint32_t c = 0; c <= static_cast<uint32_t>(facts.companions); c++) {
    EntryColumns::Component &component = columns.components.emplace_back();
    component.names =
        Strings(sections.values<uint64_t>(Kind::name_ends, c, rows), sections.values<char>(Kind::names, c));
    component.places = sections.values<uint32_t>(Kind::places, c, rows);
    component.sizes = sections.values<uint64_t>(Kind::sizes, c, rows);
    component.blocks = sections.values<uint32_t>(Kind::blocks, c, archives.size() > 0 ? rows : 0);
  }
  catalogue.entries = Entries(std::move(columns));
  return file;
}

CatalogueFile open_catalogue(const std::string &path) {
  auto mapping = std::make_shared<const Mapping>(path);
  const std::span<const uint8_t> bytes = mapping->bytes();
  return parse_catalogue(path, bytes, std::move(mapping));
}

void check_sections(const std::string &path) {
  const Mapping mapping(path);
  const Sections sections(path, mapping.bytes());
  for (const Section &section : sections.table()) {
    const std::span<const uint8_t> bytes = sections.bytes(section);
    if (l3::crc32_ieee(bytes.data(), bytes.size()) != section.checksum)
      fail_damaged(path, "the checksum of section " + std::to_string(section.kind) + " is wrong");
  }
}

void check_can_hold(const std::string &path, uint64_t samples, uint64_t companions, uint64_t label_columns) {
  const auto check = [&](uint64_t count, uint64_t most, const char *what) {
    if (count > most)
      fail_file(path, "a catalogue holds at most " + counted(most, what) + ", and not " + std::to_string(count));
  };
  check(samples, static_cast<uint64_t>(kMaxSamples), "sample");
  check(companions, kMostFiles - 1, "companion");
  check(label_columns, kMostColumns, "label column");
}

void save_catalogue(const Catalogue &catalogue, bool has_labels, const std::string &origin, const std::string &path,
                    const std::optional<std::string> &new_root, const Storage &storage) {
  check_can_hold(path, catalogue.entries.size(), catalogue.entries.companions(),
                 static_cast<uint64_t>(catalogue.label_columns));
  Entries entries = catalogue.entries.compact();
  const EntryColumns columns = entries.stored();
  const std::string root = stored_root(new_root.value_or(catalogue.root), path);
  Strings archives;
  for (const std::string &archive : catalogue.archives) archives.push_back(archive);
  std::vector<uint64_t> archive_sizes = catalogue.archive_sizes;
  for (size_t i = archive_sizes.size(); i < catalogue.archives.size(); i++)
    archive_sizes.push_back(storage.open(full_path(catalogue.root, catalogue.archives[i]))->size());

  const auto label_columns = static_cast<size_t>(catalogue.label_columns);
  std::vector<float> label_values;
  label_values.reserve(label_columns > 0 ? columns.rows * label_columns : 0);
  for (size_t i = 0; label_columns > 0 && i < columns.rows; i++) {
    const auto row = catalogue.label_values.values().subspan(
        static_cast<size_t>(catalogue.entries.label(i)) * label_columns, label_columns);
    label_values.insert(label_values.end(), row.begin(), row.end());
  }

  Writer writer;
  writer.add(Kind::root, 0, bytes_of(root));
  writer.add(Kind::origin, 0, bytes_of(origin));
  writer.add(Kind::folder_ends, Kind::folders, 0, columns.folders);
  writer.add(Kind::archive_ends, Kind::archives, 0, archives);
  writer.add(Kind::archive_sizes, 0, bytes_of(std::span<const uint64_t>(archive_sizes)));
  if (label_columns > 0)
    writer.add(Kind::label_values, 0, bytes_of(std::span<const float>(label_values)));
  else if (has_labels)
    writer.add(Kind::labels, 0, bytes_of(columns.labels));
  writer.add(Kind::formats, 0, bytes_of(columns.formats));
  for (uint32_t c = 0; c < columns.components.size(); c++) {
    const EntryColumns::Component &component = columns.components[c];
    writer.add(Kind::name_ends, Kind::names, c, component.names);
    writer.add(Kind::places, c, bytes_of(component.places));
    writer.add(Kind::sizes, c, bytes_of(component.sizes));
    if (!catalogue.archives.empty()) writer.add(Kind::blocks, c, bytes_of(component.blocks));
  }
  Header header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kVersion;
  header.samples = columns.rows;
  header.files = static_cast<uint32_t>(columns.components.size());
  header.label_columns = static_cast<uint32_t>(label_columns);
  header.flags = has_labels ? kHasLabels : 0;
  writer.write(header, path);
}

}  // namespace dali_l3::loader
