// Catalogues as files: what is written is read, and what is damaged is refused or named.
#include "dataset/catalogue_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "dataset/fingerprint.h"
#include "input/sample_reader.h"
#include "l3/format/crc32.h"
#include "plans/random.h"
#include "tar_files.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;
using namespace std::string_literals;
namespace fs = std::filesystem;
using testing::error_of;

namespace {

const std::string kPng = "\x89PNG\r\n\x1a\n and more";

std::string read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string &path, const std::string &bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

CatalogueFile parse(const std::string &bytes) {
  return parse_catalogue("a.l3cat", {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, nullptr);
}

// All that there is to know of every entry.
std::string described(const Catalogue &catalogue) {
  std::string text;
  const auto add = [&](const File &file) {
    text +=
        name_of(catalogue.archives, file) + " " + std::to_string(file.size) + "@" + std::to_string(file.offset) + ", ";
  };
  for (const Entry &entry : catalogue.entries) {
    add(entry.file);
    for (const File &companion : entry.companions) add(companion);
    text += format_name(entry.format) + " "s + std::to_string(entry.label) + "\n"s;
  }
  return text;
}

Catalogue random_catalogue(Random &random) {
  Catalogue catalogue;
  const bool in_archives = random.below(2);
  if (in_archives) catalogue.archives = {"a.tar", "sub/b.tar"}, catalogue.archive_sizes = {1000, uint64_t{1} << 40};
  const uint32_t companions = random.below(3);
  const auto file = [&] {
    const char *const names[] = {"", "x", "a/b/c.png", "/absolute/d.l3", "s3://bucket/e e.jpg", "\xff\n"};
    File made{.path = names[random.below(6)], .size = uint64_t{random.below(1 << 30)} * 4};
    if (in_archives) made.archive = random.below(2), made.offset = uint64_t{random.below(UINT32_MAX)} * 512;
    return made;
  };
  for (uint32_t i = 0, size = 1 + random.below(30); i < size; i++) {
    Entry entry{.file = file(), .label = static_cast<int>(random.next()), .companions = {}};
    entry.format = static_cast<FileFormat>(random.below(kFormats));
    for (uint32_t c = 0; c < companions; c++) entry.companions.push_back(file());
    catalogue.entries.push_back(entry);
  }
  return catalogue;
}

TEST(what_is_written_is_read) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/train.l3cat";
  Random random{1};
  for (int i = 0; i < 50; i++) {
    const testing::Context context("catalogue %d", i);
    Catalogue catalogue = random_catalogue(random);
    catalogue.root = folder.path() + "/data";
    std::vector<bool> chosen(catalogue.entries.size());
    for (size_t c = 0; c < chosen.size(); c++) chosen[c] = c == 0 || random.below(4);
    catalogue.entries.keep(chosen);
    save_catalogue(catalogue, true, "any text", path);
    const CatalogueFile file = open_catalogue(path);
    CHECK_EQUAL(described(file.catalogue), described(catalogue));
    CHECK(fingerprint(file.catalogue, true, true) == fingerprint(catalogue, true, true));
    CHECK_EQUAL(file.catalogue.root, folder.path() + "/data");
    CHECK(file.catalogue.archives == catalogue.archives && file.catalogue.archive_sizes == catalogue.archive_sizes);
    CHECK_EQUAL(file.origin, "any text");
    CHECK(read_catalogue_facts(path) == file.facts);
    CHECK_EQUAL(file.facts.companions, static_cast<int>(catalogue.entries.companions()));
    check_sections(path);
    // A part of a part.
    std::vector<bool> fewer(file.catalogue.entries.size());
    for (size_t c = 0; c < fewer.size(); c++) fewer[c] = c == 0 || random.below(2);
    Catalogue part = file.catalogue, same = catalogue;
    part.entries.keep(fewer);
    same.entries.keep(fewer);
    CHECK_EQUAL(described(part), described(same));
    save_catalogue(part, true, "", path);  // in the place of the file that is mapped
    CHECK_EQUAL(described(open_catalogue(path).catalogue), described(same));
  }
  CHECK_EQUAL(std::distance(fs::directory_iterator(folder.path()), {}), 1);  // no temporary files
}

TEST(vectors_of_numbers_are_labels_too) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/train.l3cat";
  Catalogue catalogue;
  catalogue.label_columns = 2;
  catalogue.label_values.own() = {1, 2, 3, 4, 5, 6};
  for (int row = 0; row < 3; row++) catalogue.entries.push_back("", std::to_string(row), row);
  catalogue.entries.keep({true, false, true});
  save_catalogue(catalogue, true, "", path);
  const Catalogue found = open_catalogue(path).catalogue;
  const std::span<const float> values = found.label_values.values();
  CHECK(std::vector<float>(values.begin(), values.end()) == (std::vector<float>{1, 2, 5, 6}));
  CHECK_EQUAL(found.entries.label(0), 0);
  CHECK_EQUAL(found.entries.label(1), 1);
  CHECK(fingerprint(found, false, false) == fingerprint(catalogue, false, false));
}

TEST(a_catalogue_lists_what_the_folder_does) {
  const TemporaryFolder folder;
  for (const char *name : {"data/cat/1.png", "data/cat/2.png", "data/dog/3.png"})
    write(folder.path() + "/" + name, kPng);
  const CatalogueOptions from_folder{.file_root = folder.path() + "/data", .sniff = true, .sizes = true};
  const Catalogue listed = list_dataset(from_folder);
  save_catalogue(listed, true, "", folder.path() + "/train.l3cat");
  const CatalogueOptions from_file{.catalogue = folder.path() + "/train.l3cat"};
  CHECK_EQUAL(described(list_dataset(from_file)), described(listed));

  // Both are moved.
  fs::create_directories(folder.path() + "/elsewhere");
  for (const char *name : {"data", "train.l3cat"})
    fs::rename(folder.path() + "/" + name, folder.path() + "/elsewhere/" + name);
  const Catalogue moved = list_dataset({.catalogue = folder.path() + "/elsewhere/train.l3cat"});
  SampleReader reader({}, [](const std::string &) {});
  const Sample sample = reader.read(moved, moved.entries[2], false);
  CHECK_EQUAL(std::string(sample.image.bytes().begin(), sample.image.bytes().end()), kPng);

  CatalogueOptions both = from_file;
  both.file_root = folder.path();
  CHECK(error_of([&] { list_dataset(both); }).starts_with("The argument catalogue excludes"));
}

TEST(what_readers_would_refuse_is_not_written) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/train.l3cat";
  const auto error = [&](uint64_t samples, uint64_t companions, uint64_t columns) {
    return error_of([&] { check_can_hold(path, samples, companions, columns); });
  };
  CHECK_EQUAL(error(2147483647, 4095, 1048576), "");
  CHECK_EQUAL(error(2147483648, 0, 0), path + ": a catalogue holds at most 2147483647 samples, and not 2147483648");
  CHECK_EQUAL(error(1, 4096, 0), path + ": a catalogue holds at most 4095 companions, and not 4096");
  CHECK_EQUAL(error(1, 0, 1048577), path + ": a catalogue holds at most 1048576 label columns, and not 1048577");
  for (const size_t companions : {4095, 4096}) {
    Catalogue catalogue;
    catalogue.entries.push_back({.file = {.path = "a.png"}, .label = 0, .companions = std::vector<File>(companions)});
    CHECK_EQUAL(error_of([&] { save_catalogue(catalogue, true, "", path); }), error(1, companions, 0));
  }
  CHECK_EQUAL(open_catalogue(path).facts.companions, 4095);
}

// A root is beside the file itself, and where that was written through a link, so that ".." leads from there.
TEST(links_to_catalogues_and_to_their_folders) {
  const TemporaryFolder folder;
  const std::string base = folder.path();
  for (const char *name : {"sets/data/cat/1.png", "deep/er/cats/x", "links/x"}) write(base + "/" + name, kPng);
  fs::create_directory_symlink(base + "/deep/er/cats", base + "/links/cats");
  const auto opens = [&](const std::string &path) {
    const Catalogue catalogue = open_catalogue(path).catalogue;
    return fs::exists(full_name(catalogue, catalogue.entries.file(0, 0)));
  };
  const Catalogue listed = list_dataset({.file_root = base + "/sets/data", .sniff = true, .sizes = true});
  for (const char *name : {"/links/cats/a.l3cat", "/sets/b.l3cat"}) {
    save_catalogue(listed, true, "", base + name);
    CHECK(opens(base + name));
    fs::create_symlink(base + name, base + "/links/link.l3cat");
    CHECK(opens(base + "/links/link.l3cat"));
    fs::remove(base + "/links/link.l3cat");
  }
  CHECK(opens(base + "/deep/er/cats/a.l3cat"));
  fs::create_symlink("../sets/b.l3cat", base + "/links/relative.l3cat");
  CHECK(opens(base + "/links/relative.l3cat"));

  // What is below the catalogue's folder may be a link: it is followed when it is read.
  fs::create_directory_symlink("../sets/data", base + "/links/current");
  const Catalogue current = list_dataset({.file_root = base + "/links/current", .sniff = true, .sizes = true});
  save_catalogue(current, true, "", base + "/links/c.l3cat");
  CHECK_EQUAL(open_catalogue(base + "/links/c.l3cat").catalogue.root, base + "/links/current");
}

TEST(roots_that_are_uris_stay_as_they_are) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/train.l3cat";
  Catalogue catalogue;
  catalogue.root = "s3://bucket/train";
  catalogue.entries.push_back("cat/", "1.png", 0);
  save_catalogue(catalogue, true, "", path);
  CHECK_EQUAL(open_catalogue(path).catalogue.root, "s3://bucket/train");
}

TEST(files_that_have_changed_are_named_with_the_catalogue) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/train.l3cat", data = folder.path() + "/data/";
  for (const char *name : {"a/1.png", "a/2.png", "a/3.png"}) write(data + name, kPng);
  save_catalogue(list_dataset({.file_root = data, .sniff = true, .sizes = true}), true, "", path);
  write(data + "a/1.png", kPng + "x");
  fs::remove(data + "a/2.png");
  write(data + "a/3.png", std::string(kPng.size(), 'x'));
  const Catalogue catalogue = list_dataset({.catalogue = path});
  SampleReader reader({}, [](const std::string &) {});
  const auto problem = [&](size_t i) { return error_of([&] { reader.read(catalogue, catalogue.entries[i], false); }); };
  const std::string hint = ", unlike in the catalogue " + path + ". Make that anew with dali-l3 index";
  CHECK_EQUAL(problem(0), data + "a/1.png: has 18 bytes, and not 17" + hint);
  CHECK_EQUAL(problem(1), data + "a/2.png: No such file or directory" + hint);
  CHECK_EQUAL(problem(2), data + "a/3.png is no longer a PNG file" + hint);
}

TEST(archives_that_have_changed_are_named_with_the_catalogue) {
  const TemporaryFolder folder;
  const std::string archive = folder.path() + "/a.tar", path = folder.path() + "/train.l3cat";
  const std::string end(2 * tar_files::kBlock, '\0');
  write(archive, tar_files::member("1.png", kPng) + tar_files::member("2.png", kPng) + end);
  CatalogueOptions options{.sniff = true, .sizes = true};
  options.archives = ArchiveOptions{.paths = {archive}, .ext = {"png"}};
  save_catalogue(list_dataset(options), false, "", path);
  const Catalogue catalogue = list_dataset({.catalogue = path});
  SampleReader reader({}, [](const std::string &) {});
  CHECK_EQUAL(reader.read(catalogue, catalogue.entries[1], false).image.size(), kPng.size());
  write(archive, tar_files::member("1.png", kPng) + end);
  SampleReader later({}, [](const std::string &) {});
  CHECK(error_of([&] {
          later.read(catalogue, catalogue.entries[0], false);
        }).ends_with("bytes, and not 3072, unlike in the catalogue " + path + ". Make that anew with dali-l3 index"));
}

// A small one, of two components in archives.
std::string small_catalogue() {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.l3cat";
  Catalogue catalogue;
  catalogue.archives = {"a.tar"};
  catalogue.archive_sizes = {100000};
  for (int i = 0; i < 5; i++) {
    const File file{.path = std::to_string(i) + ".png", .size = 10, .offset = 512, .archive = 0};
    catalogue.entries.push_back({.file = file, .label = i, .companions = {file}});
  }
  save_catalogue(catalogue, true, "", path);
  return read(path);
}

constexpr size_t kHeader = 64, kSection = 32, kSections = 12, kChecksum = 60;

TEST(every_damaged_byte_is_noticed) {
  const std::string whole = small_catalogue();
  const auto sections = static_cast<size_t>(whole[kSections]);
  CHECK_EQUAL(error_of([&] { parse(whole); }), "");
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/damaged.l3cat";
  size_t unnoticed = 0;  // between the sections
  for (size_t at = 0; at < whole.size(); at++) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    write(path, damaged);
    const std::string problem = error_of([&] { check_sections(path); });
    if (problem.empty()) unnoticed += whole[at] == '\0' ? 1 : whole.size();
    if (!problem.empty()) CHECK(problem.starts_with(path));
    error_of([&] { described(parse(damaged).catalogue); });  // is right, wrong or an error, but within the bytes
    CHECK_EQUAL(error_of([&] { read_catalogue_facts(path); }).starts_with(path), at < kHeader + kSection * sections);
  }
  CHECK(unnoticed < whole.size());
  for (size_t size = 0; size < whole.size(); size++) CHECK(error_of([&] { parse(whole.substr(0, size)); }) != "");
}

// With a number in its header, and the checksum that goes with it.
template <typename Number>
std::string with_number(std::string file, size_t at, Number number) {
  std::memcpy(&file[at], &number, sizeof number);
  const uint32_t crc = l3::crc32_ieee(file.data(), kChecksum);
  const auto sections = static_cast<size_t>(file[kSections]);
  const uint32_t checksum = l3::crc32_ieee(&file[kHeader], std::min(sections * kSection, file.size() - kHeader), crc);
  std::memcpy(&file[kChecksum], &checksum, sizeof checksum);
  return file;
}

// Readers have as many outputs as a header says.
TEST(numbers_that_cannot_be_are_refused_with_the_header) {
  constexpr size_t kSamples = 24, kFiles = 32, kLabelColumns = 36;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x", whole = small_catalogue();
  CHECK(with_number(whole, kFiles, uint32_t{2}) == whole);
  for (const std::string &bytes :
       {with_number(whole, kFiles, uint32_t{0}), with_number(whole, kFiles, uint32_t{4097}),
        with_number(whole, kFiles, UINT32_MAX), with_number(whole, kSamples, uint64_t{0}),
        with_number(whole, kSamples, uint64_t{1} << 31), with_number(whole, kLabelColumns, UINT32_MAX),
        with_number(whole, kSections, UINT32_MAX)}) {
    write(path, bytes);
    CHECK(error_of([&] { read_catalogue_facts(path); }).starts_with(path + ": is damaged: "));
    CHECK(error_of([&] { open_catalogue(path); }).starts_with(path + ": is damaged: "));
  }
}

TEST(what_is_no_catalogue_is_refused) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x";
  for (const std::string &bytes : {""s, "text"s, std::string(1000, '\0'), kPng + std::string(100, ' ')}) {
    write(path, bytes);
    CHECK_EQUAL(error_of([&] { open_catalogue(path); }), path + ": is no catalogue of dali-l3");
    CHECK_EQUAL(error_of([&] { read_catalogue_facts(path); }), path + ": is no catalogue of dali-l3");
  }
  std::string other = small_catalogue();
  other[8] = 2;
  write(path, other);
  CHECK(error_of([&] { open_catalogue(path); }).starts_with(path + ": is a catalogue of version 2, and this program"));
  CHECK_EQUAL(error_of([&] { open_catalogue(folder.path()); }), folder.path() + ": is no catalogue of dali-l3");
  CHECK_EQUAL(error_of([&] { open_catalogue(path + "y"); }), path + "y: No such file or directory");
}

}  // namespace
