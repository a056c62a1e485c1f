// Datasets in archives: which files they are, where their indices come from, what makes up a sample, and its bytes.
#include "dataset/archive_listing.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>

#include "archives/archive_paths.h"
#include "archives/indexing.h"
#include "dataset/archive_labels.h"
#include "dataset/catalogue.h"
#include "image_files.h"
#include "input/open_files.h"
#include "input/sample_reader.h"
#include "tar_files.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;
using namespace tar_files;
using testing::error_of;
namespace fs = std::filesystem;

namespace {

using Paths = std::vector<std::string>;

const std::string kPng = image_files::png("");

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

std::string joined(const Paths &paths) {
  std::string text;
  for (const std::string &path : paths) text += path + "|";
  return text;
}

// A folder with archives, and one for the cache.
struct Folder {
  Folder() { setenv("XDG_CACHE_HOME", cache.path().c_str(), 1); }

  std::string path(const std::string &name) const { return folder.path() + "/" + name; }

  std::string add(const std::string &name, const std::vector<std::pair<std::string, std::string>> &members) const {
    std::string bytes;
    for (const auto &[member_name, content] : members) bytes += member(member_name, content);
    fs::create_directories(fs::path(path(name)).parent_path());
    write(path(name), bytes + end());
    return path(name);
  }

  TemporaryFolder folder, cache;
};

CatalogueOptions options_for(const Paths &paths, const Paths &ext) {
  CatalogueOptions options;
  options.archives = ArchiveOptions{.paths = paths, .ext = ext};
  return options;
}

// "a.tar:1.png(1.cls)=3|": names, companions and labels.
std::string shown(const CatalogueOptions &options) {
  const Catalogue catalogue = list_dataset(options);
  std::string text;
  for (const Entry &entry : catalogue.entries) {
    text += name_of(catalogue.archives, entry.file) + "(";
    for (const File &companion : entry.companions)
      text += (&companion == &entry.companions[0] ? "" : ",") + companion.path;
    text += ")=" + std::to_string(entry.label) + "|";
  }
  return text;
}

std::string problem(const CatalogueOptions &options) {
  return error_of([&] { list_dataset(options); });
}

}  // namespace

TEST(paths_as_people_write_them) {
  const TemporaryFolder folder;
  const std::string root = folder.path() + "/";
  for (const char *name : {"t-2.tar", "t-10.tar", "t-1.tar", "odd{1..2}*.tar"}) write(root + name, "x");
  const auto expanded = [&](const Paths &paths) {
    Paths full, relative;
    for (const std::string &path : paths) full.push_back(root + path);
    for (const std::string &path : expand_paths("paths", full)) relative.push_back(path.substr(root.size()));
    return joined(relative);
  };
  CHECK_EQUAL(expanded({"b.tar", "a.tar"}), "b.tar|a.tar|");
  CHECK_EQUAL(expanded({"t-*.tar"}), "t-1.tar|t-10.tar|t-2.tar|");
  CHECK_EQUAL(expanded({"t-{1..2}.tar"}), "t-1.tar|t-2.tar|");
  CHECK_EQUAL(expanded({"s-{008..011}.tar"}), "s-008.tar|s-009.tar|s-010.tar|s-011.tar|");
  CHECK_EQUAL(expanded({"{train,val}-{0..1}.tar"}), "train-0.tar|train-1.tar|val-0.tar|val-1.tar|");
  // As in a shell.
  CHECK_EQUAL(expanded({"{a,b{1..2}}.tar"}), "a.tar|b1.tar|b2.tar|");
  CHECK_EQUAL(expanded({"{{a,b},c{d,}}.tar"}), "a.tar|b.tar|cd.tar|c.tar|");
  CHECK_EQUAL(expanded({"{x{a,b}}.tar"}), "{xa}.tar|{xb}.tar|");
  CHECK_EQUAL(expanded({"{x{a,b}.tar"}), "{xa.tar|{xb.tar|");
  CHECK_EQUAL(expanded({"{0..2}-{9..10}.tar"}), "0-9.tar|0-10.tar|1-9.tar|1-10.tar|2-9.tar|2-10.tar|");
  CHECK_EQUAL(expanded({"{00..2}{3..3}.tar"}), "003.tar|013.tar|023.tar|");
  CHECK_EQUAL(expanded({"{a/../b,c..d}.tar"}), "a/../b.tar|c..d.tar|");
  CHECK_EQUAL(expanded({"{x}.tar"}), "{x}.tar|");
  CHECK_EQUAL(expanded({"t-{1,10}*"}), "t-1.tar|t-10.tar|t-10.tar|");
  CHECK_EQUAL(expanded({"odd{1..2}*.tar"}), "odd{1..2}*.tar|");
  write(root + "list.txt",
        "\xEF\xBB\xBF"
        "t-2.tar\r\n\n  s-{1..2}.tar \n/abs.tar\n");
  CHECK_EQUAL(joined(expand_paths("paths", {root + "list.txt"})),
              root + "t-2.tar|" + root + "s-1.tar|" + root + "s-2.tar|/abs.tar|");

  const auto failure = [&](const std::string &path) { return error_of([&] { expand_paths("paths", {root + path}); }); };
  CHECK(has(failure("none-*.tar"), "which no file matches"));
  CHECK(has(failure("{2..1}.tar"), "end is before its begin"));
  CHECK(has(failure("{0..99999999}.tar"), "more than 1000000 paths"));
  CHECK(has(failure("{0..9999}{0..9999}.tar"), "more than 1000000 paths"));
  write(root + "empty.txt", "\n");
  CHECK(has(failure("empty.txt"), "names no files"));
  write(root + "uris.txt", "t-1.tar\ns3://bucket/a.tar\n");
  CHECK(has(failure("uris.txt"), "s3://bucket/a.tar is a URI"));
  CHECK(has(error_of([&] { expand_paths("paths", {"s3://bucket/*.tar"}); }), "is a URI"));
  write(root + "nested.txt", "list.txt\n");
  CHECK(has(failure("nested.txt"), "another list"));
  CHECK_EQUAL(mkfifo((root + "fifo.txt").c_str(), 0600), 0);  // which nobody ever writes to
  CHECK(has(failure("fifo.txt"), "fifo.txt, which cannot be opened: is not a regular file"));
}

TEST(samples_and_their_components) {
  const Folder folder;
  const std::string first =
      folder.add("a/1.tar", {{"x.png", kPng}, {"x.cls", "3"}, {"x.seg.png", kPng}, {"y.png", kPng}, {"y.cls", "4"}});
  const std::string second = folder.add("b/1.tar", {{"x.JPG", kPng}, {"x.cls", " 5\n"}, {"x.seg.png", kPng}});
  CatalogueOptions options = options_for({first}, {"png"});
  CHECK_EQUAL(shown(options), "1.tar:x.png()=0|1.tar:y.png()=1|");
  options.archives->label_ext = "cls";
  CHECK_EQUAL(shown(options), "1.tar:x.png()=3|1.tar:y.png()=4|");
  options = options_for({first, second}, {"jpg;png", ".seg.png", "cls"});
  options.archives->case_sensitive_extensions = false;
  CHECK_EQUAL(shown(options),
              "a/1.tar:x.png(x.seg.png,x.cls)=0|a/1.tar:y.png(,y.cls)=1|b/1.tar:x.JPG(x.seg.png,x.cls)=2|");
  CHECK(has(list_dataset(options).problems.at(0), "1 of 3 samples has no companion .seg.png:\n  " + first + ": y.png"));
  options.archives->missing_component_behavior = "skip";
  CHECK_EQUAL(shown(options), "a/1.tar:x.png(x.seg.png,x.cls)=0|b/1.tar:x.JPG(x.seg.png,x.cls)=1|");
  CHECK(list_dataset(options).problems.empty());
  options.archives->missing_component_behavior = "error";
  CHECK(has(problem(options), first + ": y.png: has no component .seg.png"));
  options.on_error = OnError::skip;
  CHECK_EQUAL(list_dataset(options).entries.size(), 2u);
  options.archives->case_sensitive_extensions = true;
  CHECK_EQUAL(list_dataset(options).entries.size(), 1u);  // no image JPG
  CHECK(has(list_dataset(options).problems.at(0), second + ": x: has no component jpg;png, the image"));
}

TEST(the_first_alternative_in_the_archive_is_taken) {
  const Folder folder;
  const std::string archive = folder.add("a.tar", {{"x.png", kPng}, {"x.jpg", kPng}});
  CHECK_EQUAL(shown(options_for({archive}, {"jpg;png"})), "a.tar:x.png()=0|");
}

TEST(nothing_that_was_asked_for) {
  const Folder folder;
  const std::string archive = folder.add("a.tar", {{"x.png", kPng}, {"x.cls", "1"}});
  CatalogueOptions options = options_for({archive}, {"jpg"});
  options.archives->missing_component_behavior = "skip";
  CHECK(has(problem(options), "Extensions there: cls, png"));
  folder.add("none.tar", {{"README", "text"}});
  CHECK(has(problem(options_for({folder.path("none.tar")}, {"jpg"})), "none.tar: holds no samples"));
}

TEST(labels_in_text_and_json) {
  const auto numbers = [](const std::string &text, const std::optional<std::string> &field) {
    std::string shown;
    for (const double number : label_numbers(text, field)) {
      std::ostringstream stream;
      stream << number;
      shown += stream.str() + "|";
    }
    return shown;
  };
  const auto failure = [](const std::string &text, const std::optional<std::string> &field) {
    return error_of([&] { label_numbers(text, field); });
  };
  CHECK_EQUAL(numbers(" 7\n", {}), "7|");
  CHECK_EQUAL(numbers("1,-2.5 +3e2\n", {}), "1|-2.5|300|");
  CHECK_EQUAL(numbers("", {}), "");
  CHECK(has(failure("cat", {}), "\"cat\" is no number"));
  const std::string json =
      R"( {"a": "x,\"}", "b": [1, {"label": 9}, [], "y"], "c": {"label": 2, "d": null}, "label" : -7.5 , "box": [1,2] })";
  CHECK_EQUAL(numbers(json, "label"), "-7.5|");
  CHECK_EQUAL(numbers(json, "c.label"), "2|");
  CHECK_EQUAL(numbers(json, "box"), "1|2|");
  CHECK(has(failure(json, "none"), "has no field \"none\""));
  CHECK(has(failure(json, "a"), "has no number"));
  CHECK(has(failure(json, "a.label"), "a JSON object is missing"));
  CHECK(has(failure("[1]", "label"), "a JSON object is missing"));
  for (const char *bad : {"{", "{\"a\"", "{\"a\":", "{\"a\": 1", "{\"a\": 1 \"label\": 2}", "{\"a: 1}",
                          "{\"a\": x, \"label\": 1}", "{\"label\": 1x}", "{\"label\": [1, 2"})
    CHECK(!failure(bad, "label").empty());
  CHECK(has(failure("{\"a\": " + std::string(100'000, '['), "label"), "levels"));
  for (size_t size = 0; size < json.size() - 12; size++) CHECK(!failure(json.substr(0, size), "box").empty());
}

TEST(labels_of_samples) {
  const Folder folder;
  const std::string archive = folder.add("a.tar", {{"x.png", kPng},
                                                   {"x.json", R"({"id": 3, "box": [1, 2.5]})"},
                                                   {"y.png", kPng},
                                                   {"y.json", "{}"},
                                                   {"z.png", kPng},
                                                   {"w.png", kPng},
                                                   {"w.json", R"({"id": 1e10, "box": [1]})"},
                                                   {"v.png", kPng},
                                                   {"v.json", ""}});
  CatalogueOptions options = options_for({archive}, {"png"});
  options.on_error = OnError::skip;
  options.archives->label_ext = "json";
  options.archives->label_field = "id";
  CHECK_EQUAL(shown(options), "a.tar:x.png()=3|");
  const std::string problems = list_dataset(options).problems.at(0);
  CHECK(has(problems, "4 of 5 samples have bad files"));
  CHECK(has(problems, archive + ": y.json: has no field \"id\""));
  CHECK(has(problems, archive + ": z.png: its label, a component json, is missing"));
  CHECK(has(problems, "no integer of 32 bits"));
  options.archives->missing_component_behavior = "skip";
  CHECK(has(list_dataset(options).problems.at(0), "3 of 4 samples"));

  options.archives->label_field = "box";
  options.label_columns = 2;
  const Catalogue catalogue = list_dataset(options);
  CHECK_EQUAL(catalogue.entries.size(), 1u);
  CHECK_EQUAL(catalogue.label_values.values()[catalogue.entries[0].label * 2 + 1], 2.5f);
}

TEST(a_bad_label_concerns_its_own_sample) {
  const Folder folder;
  const std::string archive = folder.path("a.tar");
  write(archive, member("x.png", kPng) + member("x.cls", "cat") + header("y.png", 0, '1', "x.png") +
                     member("y.cls", "2") + end());
  CatalogueOptions options = options_for({archive}, {"png"});
  options.archives->label_ext = "cls";
  options.on_error = OnError::skip;
  CHECK_EQUAL(shown(options), "a.tar:y.png()=2|");
}

TEST(a_part_of_the_samples_holds_the_labels_in_proportion) {
  const Folder folder;
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 100; i++) {
    members.emplace_back(std::to_string(i) + ".png", kPng);
    members.emplace_back(std::to_string(i) + ".cls", std::to_string(i < 80 ? 0 : 1));
  }
  CatalogueOptions options = options_for({folder.add("a.tar", members)}, {"png"});
  options.archives->label_ext = "cls";
  options.subset.range = std::vector<float>{0.5, 1};
  const Catalogue catalogue = list_dataset(options);
  CHECK_EQUAL(catalogue.entries.size(), 50u);
  CHECK_EQUAL(std::ranges::count(catalogue.entries, 1, &Entry::label), 10);

  options.subset = {.files = Paths{"a.tar:7.png", "a.tar:90.png"}};
  CHECK_EQUAL(shown(options), "a.tar:7.png()=0|a.tar:90.png()=1|");
  options.subset = {.files = Paths{"7.png"}};
  CHECK(has(problem(options), "names such as a.tar:0.png"));
}

TEST(arguments_that_contradict_each_other) {
  const Folder folder;
  const std::string archive = folder.add("a.tar", {{"x.png", kPng}});
  const CatalogueOptions good = options_for({archive}, {"png"});
  const auto check = [&](auto change, const std::string &expected) {
    CatalogueOptions options = good;
    change(options);
    CHECK(has(problem(options), expected));
  };
  check([](auto &o) { o.file_root = "x"; }, "excludes file_root, file_list and files");
  check([](auto &o) { o.files = Paths{"x"}; }, "excludes file_root, file_list and files");
  check([](auto &o) { o.labels = std::vector<int>{1}; }, "label_ext says where");
  check([](auto &o) { o.companions = {"x"}; }, "named by ext");
  check([](auto &o) { o.missing_companions = {"empty"}; }, "missing_component_behavior for archives");
  check([](auto &o) { o.label_columns = 2; }, "label_columns goes with label_ext");
  check([](auto &o) { o.archives->paths = {}; }, "paths is an empty list");
  check([](auto &o) { o.archives->ext = {}; }, "needs the argument ext");
  check([](auto &o) { o.archives->ext = {"png;"}; }, "empty extension in \"png;\"");
  check([](auto &o) { o.archives->missing_component_behavior = "none"; }, "must be \"empty\", \"skip\" or \"error\"");
  check([](auto &o) { o.archives->label_field = "x"; }, "needs the argument label_ext");
  check([](auto &o) { o.archives->paths = {"s3://bucket/a.tar"}; }, "is a URI");
  check([](auto &o) { o.archives->index_paths = Paths{"a.idx", "b.idx"}; }, "index_paths has 2 paths");
  check([](auto &o) { o.archives->index_paths = Paths{"missing.idx"}; }, "missing.idx: No such file");
  check([](auto &o) { o.archives->paths = {"missing.tar"}; }, "missing.tar: No such file");
  CHECK_EQUAL(problem(good), "");
}

TEST(an_index_is_made_once) {
  const Folder folder;
  const std::string archive = folder.add("a.tar", {{"x.png", kPng}, {"y.png", kPng}});
  const std::string index = folder.path("a.idx");
  CHECK_EQUAL(default_index_path(archive), index);
  CHECK_EQUAL(find_index(archive).index.samples(), 2u);
  CHECK_EQUAL(std::distance(fs::directory_iterator(folder.folder.path()), fs::directory_iterator()), 2);
  CHECK(read_index(index, archive) == make_index(archive));

  write(index, "v1.2 1\npng 512 " + std::to_string(kPng.size()) + " other.png\n");  // it is what is read
  CHECK_EQUAL(shown(options_for({archive}, {"png"})), "a.tar:other.png()=0|");
  write(index, "v1.2 1\npng 1024 99 other.png\n");
  CHECK(has(error_of([&] { find_index(archive); }), index + ": does not fit " + archive));
  // A look at the images finds also what is wrong with a member that is neither in the middle nor the last.
  const std::string size = std::to_string(kPng.size());
  CatalogueOptions options = options_for({archive}, {"png"});
  options.sniff = true;
  write(index, "v1.2 2\npng 512 1 x.png\npng " + std::to_string(make_index(archive).members[1].offset) + " " + size +
                   " y.png\n");
  CHECK(has(problem(options), archive + ": x.png: is not where the index of its archive says"));
  write(index, "something else");
  CHECK(has(error_of([&] { find_index(archive); }), index + ": is no index that can be used"));

  // One of ours is made anew when it is out of date.
  fs::remove(index);
  find_index(archive);
  folder.add("a.tar", {{"x.png", kPng}, {"y.png", kPng}, {"z.png", kPng}});
  CHECK_EQUAL(find_index(archive).index.samples(), 3u);
  CHECK_EQUAL(read_index(index, archive).samples(), 3u);

  // Also if the archive has the same size and end as before.
  const std::pair<std::string, std::string> large{"x.png", kPng + std::string(2000, 'x')}, small{"y.png", kPng};
  folder.add("a.tar", {large, small, {"y.cls", "1"}});
  find_index(archive);
  folder.add("a.tar", {small, large, {"y.cls", "1"}});
  CHECK(find_index(archive).index == make_index(archive));
}

TEST(an_index_that_cannot_lie_beside_its_archive_lies_in_the_cache) {
  const Folder folder;
  const auto files = [](const std::string &path) {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator());
  };
  // So long a name leaves no room for that of a temporary file: even root cannot write it.
  const std::string name = std::string(251, 'n') + ".tar";
  const std::string archive = folder.add(name, {{"x.png", kPng}});
  CHECK_EQUAL(find_index(archive).problem, "");
  CHECK_EQUAL(files(folder.folder.path()), 1);
  CHECK_EQUAL(files(folder.cache.path() + "/dali_l3"), 1);
  const std::string cached = fs::directory_iterator(folder.cache.path() + "/dali_l3")->path();
  const std::string size = std::to_string(fs::file_size(archive));
  write(cached, "v1.2 1 size=" + size + "\npng 512 " + std::to_string(kPng.size()) + " cached.png\n");
  CHECK_EQUAL(shown(options_for({archive}, {"png"})), name + ":cached.png()=0|");
  // Another archive of this name has another index.
  folder.add(name, {{"x.png", kPng}, {"y.png", kPng}});
  CHECK_EQUAL(find_index(archive).index.samples(), 2u);

  setenv("XDG_CACHE_HOME", "/proc/none", 1);
  CHECK_EQUAL(find_index(archive).index.samples(), 2u);
  const std::string problem = list_dataset(options_for({archive}, {"png"})).problems.at(0);
  CHECK(has(problem, archive + ": its index could not be saved"));
  CHECK(has(problem, "File name too long"));
}

TEST(the_bytes_of_samples) {
  const Folder folder;
  std::mt19937 random(3);
  std::vector<std::pair<std::string, std::string>> members;
  std::map<std::string, std::string> contents;
  for (int i = 0; i < 40; i++) {
    const size_t size = i % 2 ? random() % 20'000 : i == 20 ? 3'000'000 : 4096;
    std::string mask(i == 7 ? 0 : size, static_cast<char>(i));
    const std::string image = image_files::png(image_files::chunk("IDAT", std::string(size, static_cast<char>(i))));
    members.emplace_back(std::to_string(i) + ".png", image);
    members.emplace_back(std::to_string(i) + ".mask", mask);
    contents["a.tar:" + std::to_string(i) + ".png"] = image + "+" + mask;
  }
  CatalogueOptions options = options_for({folder.add("a.tar", members)}, {"png", "mask"});
  options.sniff = true;
  const Catalogue catalogue = list_dataset(options);
  for (const ReadMode mode : {ReadMode::buffered, ReadMode::direct}) {
    SampleReader reader({.mode = mode, .check = Check::content}, [](const std::string &) {});
    for (const Entry &entry : catalogue.entries) {
      const Sample sample = reader.read(catalogue, entry, false);
      std::string bytes(sample.image.bytes().begin(), sample.image.bytes().end());
      bytes += "+" + std::string(sample.companions.front().bytes().begin(), sample.companions.front().bytes().end());
      CHECK(bytes == contents.at(name_of(catalogue.archives, entry.file)));
    }
    // The archive is cut off while it is open.
    fs::copy_file(folder.path("a.tar"), folder.path("copy.tar"), fs::copy_options::overwrite_existing);
    Catalogue copy = catalogue;
    copy.archives[0] = "copy.tar";
    reader.read(copy, copy.entries[0], false);
    fs::resize_file(folder.path("copy.tar"), copy.entries[5].file.offset + 1);
    CHECK_EQUAL(error_of([&] { reader.read(copy, copy.entries[5], false); }),
                folder.path("copy.tar") +
                    ": 5.png: lies beyond the end of the archive, which is no longer what its index says");
  }
}

TEST(files_stay_open_up_to_a_limit) {
  const Folder folder;
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  for (int i = 0; i < 5; i++) write(folder.path(std::to_string(i)), std::to_string(i));
  const auto before = open_files();
  {
    OpenFiles files(false, 2);
    const auto first = files.open(folder.path("0"));
    for (int round = 0; round < 3; round++)
      for (int i = 0; i < 5; i++) {
        uint8_t byte = 0;
        files.open(folder.path(std::to_string(i)))->read_at(0, {&byte, 1});
        CHECK_EQUAL(byte, '0' + i);
      }
    CHECK_EQUAL(open_files() - before, 3);  // the first is in use
    CHECK(files.open(folder.path("4")) == files.open(folder.path("4")));
    CHECK(first != files.open(folder.path("0")));
  }
  CHECK_EQUAL(open_files(), before);
}
