// Listing datasets: formats, class folders, file lists, companions, and what is reported.
#include "dataset/catalogue.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "dataset/companions.h"
#include "l3_files.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;
using namespace std::string_literals;
namespace fs = std::filesystem;

namespace {

const std::string kPng = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0\x3a\x7e\x9b\x55"s;
// Encoded by the package: an image of one black pixel.
const std::string kL3 =
    "\x89L3I\r\n\x1a\n\1\0\x30\0\1\0\0\0\1\0\0\0\1\x08\0\1\6\6\0\0\0\0\0\0\4\0\0\0y\x83\n\xf7\0\0\0\0Y\xb6j~"s +
    std::string(4, '\0') + "\4"s + std::string(23, '\0');
const std::string kJpeg = "\xff\xd8\xff\xe0\0\4ab\xff\xff\xc0\0\3c\xff\xda\0\3dpixels"s;

class Dataset {
 public:
  Dataset() { options.file_root = folder_.path(); }

  Dataset &write(const std::string &path, const std::string &bytes = kPng) {
    fs::create_directories(fs::path(this->path(path)).parent_path());
    std::ofstream(this->path(path), std::ios::binary) << bytes;
    return *this;
  }
  Dataset &link(const std::string &path, const std::string &target) {
    fs::create_directories(fs::path(this->path(path)).parent_path());
    fs::create_symlink(target, this->path(path));
    return *this;
  }
  std::string path(const std::string &relative) const { return folder_.path() + "/" + relative; }

  // "path label" of each entry.
  std::string listed() const {
    std::string text;
    for (const Entry &entry : list_dataset(options).entries)
      text += entry.file.path + " " + std::to_string(entry.label) + "; ";
    return text;
  }
  // The message of the error that listing ends with.
  std::string error() const {
    try {
      list_dataset(options);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    testing::fail(__FILE__, __LINE__, "no error");
  }

  CatalogueOptions options{.file_filters = {"*.png", "*.jpg"}, .threads = 2};

 private:
  TemporaryFolder folder_;
};

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(formats_are_told_by_signature) {
  const std::pair<std::string, FileFormat> heads[] = {
      {"\x89L3I\r\n\x1a\n"s, FileFormat::l3},
      {"LLL."s, FileFormat::l3},
      {l3_image_file(L3_PROFILE_RAW), FileFormat::l3_raw},
      {l3_image_file(L3_PROFILE_PAPER), FileFormat::l3_paper},
      {l3_image_file(L3_PROFILE_FAST), FileFormat::l3},
      {l3_image_file(L3_PROFILE_RAW).substr(0, L3_HEADER_SIZE), FileFormat::l3_raw},
      {l3_image_file(L3_PROFILE_RAW).substr(0, L3_HEADER_SIZE - 1), FileFormat::l3},
      {l3_image_file(L3_PROFILE_RAW).replace(12, 1, "?"), FileFormat::l3},  // damaged
      {"LLL."s + std::string(44, '\0'), FileFormat::l3},                    // has no profile
      {kPng, FileFormat::png},
      {kJpeg, FileFormat::jpeg},
      {"BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0"s, FileFormat::bmp},
      {"BM\0\0\0\0\0\0\0\0\0\0\0\0\x29\0\0\0"s, FileFormat::unknown},  // no header has this size
      {"BM1234567890"s, FileFormat::unknown},
      {"II*\0"s, FileFormat::tiff},
      {"MM\0*"s, FileFormat::tiff},
      {"II+\0"s, FileFormat::tiff},
      {"RIFF1234WEBP"s, FileFormat::webp},
      {"P5\n3 4 255\n"s, FileFormat::pnm},
      {"P6#"s, FileFormat::pnm},
      {"P7\n"s, FileFormat::pnm},
      {"P7 "s, FileFormat::unknown},
      {"II*\0\x10\0\0\0CR"s, FileFormat::tiff},
      {"\0\0\0\x0cjP  \r\n\x87\n"s, FileFormat::jpeg2000},
      {"\xff\x4f\xff\x51"s, FileFormat::jpeg2000},
      {"GIF89a"s, FileFormat::gif},
      {""s, FileFormat::unknown},
      {"RIFF"s, FileFormat::unknown},
      {"RIFF1234WAVE"s, FileFormat::unknown},
      {"RIFF1234WEB"s, FileFormat::unknown},
      {"P8\n"s, FileFormat::unknown},
      {"P5"s, FileFormat::unknown},
      {"\x89PNG\r\n\x1a"s, FileFormat::unknown},
      {"plain text"s, FileFormat::unknown},
  };
  for (const auto &[head, format] : heads) {
    const testing::Context context("head of %zu bytes: %s", head.size(), head.c_str());
    CHECK_EQUAL(format_name(sniff({reinterpret_cast<const uint8_t *>(head.data()), head.size()})),
                std::string(format_name(format)));
  }
}

TEST(class_folders_and_files_are_sorted_by_their_bytes) {
  Dataset dataset;
  dataset.write("b/2.png")
      .write("b/10.png")
      .write("a/x.PNG")
      .write("a/notes.txt")
      .write("Z/1.png")
      .write("a/nested/y.png");
  dataset.write("top.png");
  CHECK_EQUAL(dataset.listed(), "Z/1.png 0; a/x.PNG 1; b/10.png 2; b/2.png 2; ");
  dataset.options.case_sensitive_filter = true;
  CHECK_EQUAL(dataset.listed(), "Z/1.png 0; b/10.png 2; b/2.png 2; ");
  dataset.options.dir_filters = {"[ab]"};
  CHECK_EQUAL(dataset.listed(), "b/10.png 1; b/2.png 1; ");
}

TEST(what_users_may_not_expect_is_reported_and_refused_when_strict) {
  Dataset dataset;
  dataset.write(".hidden/1.png")
      .write("a/1.png")
      .write("b/notes.txt")
      .write("c/1.png")
      .link("c/2.png", "nowhere")
      .link("c/3.png", "../a");
  CHECK_EQUAL(dataset.listed(), ".hidden/1.png 0; a/1.png 1; c/1.png 3; c/2.png 3; ");
  const auto problems = list_dataset(dataset.options).problems;
  CHECK_EQUAL(problems.size(), size_t{4});
  CHECK(contains(problems[0], dataset.path(".hidden") + " is hidden"));
  CHECK(contains(problems[1], dataset.path("b") + " holds no"));
  CHECK(contains(problems[2], dataset.path("c/2.png") + " is a link to nothing"));
  CHECK(contains(problems[3], dataset.path("c/3.png") + " is a link to a folder"));
  dataset.options.strict = true;
  for (const std::string &problem : problems) CHECK(contains(dataset.error(), problem));
  dataset.options.files = {"a/1.png", "c/1.png", "a/1.png"};
  CHECK(contains(dataset.error(), dataset.path("a/1.png") + " is listed twice"));
}

TEST(a_root_that_cannot_be_listed_is_named) {
  Dataset dataset;
  dataset.link("dangling", "nowhere").write("a/1.png");
  CHECK(contains(dataset.error(), dataset.path("dangling")));
  dataset.options.file_root = dataset.path("missing");
  CHECK(contains(dataset.error(), dataset.path("missing")));
  dataset.options.file_root = dataset.path("a");
  CHECK(contains(dataset.error(), "No files found in " + dataset.path("a")));
}

TEST(file_lists_name_all_bad_lines) {
  Dataset dataset;
  dataset.options.file_root.reset();
  dataset.options.file_list = dataset.path("list.txt");
  dataset.write("list.txt", "a.png 3\n\n with space.png\t 7 \r\n");
  CHECK_EQUAL(dataset.listed(), "a.png 3;  with space.png 7; ");
  CHECK_EQUAL(list_dataset(dataset.options).root + "/", dataset.path(""));
  dataset.write("list.txt", "a.png 3\nb.png\n5\nc.png -1\nd.png 99999999999\ne.png 1\nf12\ng 3.5\n");
  const std::string error = dataset.error();
  for (const char *line :
       {"line 2: b.png", "line 3: 5", "line 4: c.png -1", "line 5: d.png 99999999999", "line 7: f12", "line 8: g 3.5"})
    CHECK(contains(error, line));
  CHECK(contains(error, "6 lines"));
  CHECK(!contains(error, "line 1:") && !contains(error, "line 6:"));
  dataset.options.file_list = dataset.path(".");
  CHECK(contains(dataset.error(), "cannot be opened: is a directory, not a file"));
}

TEST(files_are_labelled_by_their_position_unless_labels_are_given) {
  Dataset dataset;
  dataset.options.files = {"x.png", "/y.png"};
  CHECK_EQUAL(dataset.listed(), "x.png 0; /y.png 1; ");
  dataset.options.labels = {7, -1};
  CHECK_EQUAL(dataset.listed(), "x.png 7; /y.png -1; ");
  dataset.options.labels = {7};
  CHECK(contains(dataset.error(), "The argument labels has 1 label, the argument files 2 files"));
}

TEST(arguments_that_exclude_each_other_are_refused) {
  Dataset dataset;
  dataset.write("a/1.png");
  dataset.options.labels = {1};
  CHECK(contains(dataset.error(), "labels"));
  dataset.options.labels.reset();
  dataset.options.file_filters.clear();
  CHECK(contains(dataset.error(), "file_filters"));
  dataset.options.file_filters = {"*"};
  dataset.options.dir_filters.clear();
  CHECK(contains(dataset.error(), "dir_filters"));
  dataset.options.file_root.reset();
  CHECK(contains(dataset.error(), "file_root"));
  dataset.options.files = {"x"};
  dataset.options.file_list = "y";
  CHECK(contains(dataset.error(), "exclude"));
}

TEST(uris_are_refused) {
  for (const char *path : {"s3://bucket/a.png", "gs://b", "file:///a.png", "x+1-2.3://", "S3://"}) {
    const testing::Context context("%s", path);
    Dataset dataset;
    dataset.options.files = {"a.png", path};
    CHECK(contains(dataset.error(), path + " is a URI"s));
  }
}

TEST(bad_files_are_named_or_left_out) {
  Dataset dataset;
  dataset.write("a/1.png")
      .write("a/2.png", "")
      .write("a/3.png", "text")
      .write("a/4.png", kJpeg)
      .link("a/5.png", "nowhere");
  dataset.options.files = {"a/1.png", "a/2.png", "a/3.png", "a/4.png", "a/5.png", "a"};
  CHECK_EQUAL(list_dataset(dataset.options).entries.size(), size_t{6});  // nobody looks
  dataset.options.sniff = true;
  const std::string error = dataset.error();
  CHECK(contains(error, "4 of 6 samples"));
  for (const char *file : {"a/2.png: is empty", "a/3.png: of no known", "a/5.png: No such file", "a: is a directory"})
    CHECK(contains(error, dataset.path(file)));
  dataset.options.on_error = OnError::skip;
  CHECK_EQUAL(dataset.listed(), "a/1.png 0; a/4.png 3; ");
  const Catalogue catalogue = list_dataset(dataset.options);
  CHECK(catalogue.entries[0].format == FileFormat::png && catalogue.entries[1].format == FileFormat::jpeg);
  CHECK_EQUAL(catalogue.entries[0].file.size, kPng.size());
  CHECK(contains(catalogue.problems.back(), dataset.path("a/2.png: is empty")));
}

TEST(many_bad_files_are_counted_and_the_first_named) {
  Dataset dataset;
  dataset.write("good.png").write("bad.png", "text");
  std::vector<std::string> &files = dataset.options.files.emplace(5000, "good.png");
  for (size_t i = 0; i < files.size(); i += 50) files[i] = "bad.png";
  dataset.options.sniff = true;
  const std::string error = dataset.error();
  CHECK(contains(error, "100 of 5000 samples"));
  CHECK_EQUAL(std::count(error.begin(), error.end(), '\n'), 21);  // twenty files and an ellipsis
  dataset.options.on_error = OnError::skip;
  const Catalogue catalogue = list_dataset(dataset.options);
  CHECK_EQUAL(catalogue.entries.size(), size_t{4900});
  for (const Entry &entry : catalogue.entries) CHECK_EQUAL(format_name(entry.format), "PNG"s);
}

TEST(nothing_but_bad_files_is_an_error) {
  Dataset dataset;
  dataset.write("a/1.png", "").write("a/2.png", "text");
  dataset.options.sniff = true;
  dataset.options.on_error = OnError::skip;
  CHECK(contains(dataset.error(),
                 "No files found in " + *dataset.options.file_root + " that can be used: 2 of 2 samples"));
}

TEST(a_pipe_is_not_waited_for) {
  Dataset dataset;
  dataset.write("a/1.png");
  CHECK_EQUAL(mkfifo(dataset.path("a/2.png").c_str(), 0600), 0);
  CHECK_EQUAL(dataset.listed(), "a/1.png 0; ");
  dataset.options.files = {"a/2.png"};
  dataset.options.sizes = true;
  CHECK(contains(dataset.error(), "not a regular file"));
}

TEST(headers_that_are_cut_off_are_bad) {
  const std::string filled_jpeg = kJpeg.substr(0, 2) + "\xff\xff"s + kJpeg.substr(2);
  const std::pair<std::string, size_t> files[] = {
      {kL3, kL3.size()}, {kPng, kPng.size()}, {kJpeg, kJpeg.find("pixels")}, {filled_jpeg, filled_jpeg.find("pixels")}};
  for (const auto &[whole, header_size] : files) {
    Dataset dataset;
    dataset.options.check_headers = true;
    for (size_t size = 8; size <= whole.size(); size++) {
      const testing::Context context("%zu of %zu bytes", size, whole.size());
      dataset.write("a/1.png", whole.substr(0, size));
      bool good = true;
      try {
        list_dataset(dataset.options);
      } catch (const std::runtime_error &) {
        good = false;
      }
      CHECK_EQUAL(good, size >= header_size);
    }
  }
}

TEST(headers_that_make_no_sense_are_bad) {
  const std::string start = "\xff\xd8"s, frame = "\xff\xc0\0\3c"s, tables = "\xff\xc4\0\3c"s, scan = "\xff\xda\0\3d"s;
  const std::pair<std::string, const char *> headers[] = {
      {"\x89PNG\r\n\x1a\n\0\0\0\x0dIDAT12345678901234567"s, "does not begin with a header"},
      {kL3.substr(0, 12) + "\2" + kL3.substr(13), "checksum"},
      {start + tables + scan, "does not give the image's size"},
      {start + frame + "\xff\xd9  ", "ends before its pixels"},
      {start + "\xff\xe0\0\1"s + frame + scan, "without a length"},
      {start + frame + "\0"s + scan, "something else where a marker"},
      {start + std::string(1 << 20, '\xff'), "does not come to an end"},
  };
  for (const auto &[header, problem] : headers) {
    const testing::Context context("%s", problem);
    Dataset dataset;
    dataset.options.check_headers = true;
    dataset.write("a/1.png", header);
    const std::string error = dataset.error();
    CHECK(contains(error, dataset.path("a/1.png: ")));
    CHECK(contains(error, problem));
  }
}

TEST(headers_of_companions_that_are_images_are_checked) {
  Dataset dataset;
  dataset.write("images/a/1.png")
      .write("masks/a/1.png")
      .write("images/a/2.png")
      .write("masks/a/2.png", kPng.substr(0, 20));
  dataset.write("images/a/3.png").write("masks/a/3.png", "no image");
  dataset.options.file_root = dataset.path("images");
  dataset.options.companions = {"../masks/{dir}/{name}"};
  CHECK_EQUAL(list_dataset(dataset.options).entries.size(), size_t{3});
  dataset.options.check_headers = true;
  const std::string error = dataset.error();
  CHECK(contains(error, "2 of 3 samples have bad files:\n  "));
  CHECK(contains(error, dataset.path("images/../masks/a/2.png: the file ends within")));
  CHECK(contains(error, dataset.path("images/../masks/a/3.png: of no known image format, in spite of its name")));
  dataset.options.companions = {"../words/{dir}/{stem}.txt"};
  for (const char *path : {"words/a/1.txt", "words/a/2.txt", "words/a/3.txt"}) dataset.write(path, "no image");
  CHECK_EQUAL(list_dataset(dataset.options).entries.size(), size_t{3});
}

TEST(pointers_of_git_lfs_are_named) {
  Dataset dataset;
  dataset.write("a/1.png").write("a/2.png",
                                 "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  dataset.options.sniff = true;
  const std::string line = dataset.path("a/2.png") + " is a Git LFS pointer, not an image: run 'git lfs pull'";
  CHECK(contains(dataset.error(), "1 of 2 samples has bad files:\n  " + line));
  dataset.options.on_error = OnError::skip;
  CHECK_EQUAL(dataset.listed(), "a/1.png 0; ");
  CHECK(contains(list_dataset(dataset.options).problems.back(), line));
}

TEST(counts_agree_in_number) {
  Dataset dataset;
  dataset.write("a/1.png", "").write("b/notes.txt");
  dataset.options.sniff = true;
  CHECK(contains(dataset.error(), "1 of 1 sample has bad files:"));
  dataset.write("a/2.png", "");
  CHECK(contains(dataset.error(), "2 of 2 samples have bad files:"));
  dataset.options.strict = true;
  CHECK(contains(dataset.error(), "The dataset has 1 problem:"));
  dataset.write(".c/1.png");
  CHECK(contains(dataset.error(), "The dataset has 2 problems:"));
  dataset.options.file_list = dataset.path("list.txt");
  dataset.write("list.txt", "a.png\n");
  CHECK(contains(dataset.error(), "has 1 line that is not a path and a label"));
}

TEST(companions_are_found_by_their_templates) {
  const PathTemplate path("../masks/{dir}/{stem}.{name}|{relpath}");
  CHECK_EQUAL(path.path_for("x/y/z.tar.png"), "../masks/x/y/z.tar.z.tar.png|x/y/z.tar.png");
  CHECK_EQUAL(path.path_for("z"), "../masks/./z.z|z");
  CHECK_EQUAL(PathTemplate("fixed.png").path_for("a"), "fixed.png");
  // Cityscapes: train/aachen/aachen_000000_000019_leftImg8bit.png and its labels.
  const std::string image = "train/aachen/aachen_000000_000019_leftImg8bit.png";
  CHECK_EQUAL(PathTemplate("../gtFine/{dir}/{stem%_leftImg8bit}_gtFine_labelIds.png").path_for(image),
              "../gtFine/train/aachen/aachen_000000_000019_gtFine_labelIds.png");
  CHECK_EQUAL(PathTemplate("../gtFine/{dir}/{name/_leftImg8bit/_gtFine_labelIds}").path_for(image),
              "../gtFine/train/aachen/aachen_000000_000019_gtFine_labelIds.png");
  CHECK_EQUAL(PathTemplate("{stem#aachen_}").path_for(image), "000000_000019_leftImg8bit");
  CHECK_EQUAL(PathTemplate("{relpath/a/b}").path_for("aaa/aaa"), "baa/aaa");
  CHECK_EQUAL(PathTemplate("{relpath//a/ab}").path_for("aaa/aa"), "ababab/abab");
  CHECK_EQUAL(PathTemplate("{relpath//a/}").path_for("banana"), "bnn");
  CHECK_EQUAL(PathTemplate("{relpath/images/masks/fine}").path_for("images/1.png"), "masks/fine/1.png");
  for (const char *absent : {"{stem%x}", "{stem#x}", "{stem/x/y}", "{stem//x/y}"})
    CHECK_EQUAL(PathTemplate(absent).path_for("a/b.png"), "b");
  for (const char *bad :
       {"{", "}", "{dir", "dir}", "{stm}", "{}", "{{dir}}", "{stem%}", "{stem#}", "{stem/a}", "{stem//b}", "{stem///b}",
        "{stem%%a}", "{stem##a}", "{stem%_*}", "{stem#?}", "{stem/a*/b}", "{%a}", "{stem^a}"}) {
    const testing::Context context("%s", bad);
    bool refused = false;
    try {
      PathTemplate{bad};
    } catch (const std::runtime_error &) {
      refused = true;
    }
    CHECK(refused);
  }
}

TEST(missing_companions_are_named_or_their_images_left_out) {
  Dataset dataset;
  dataset.write("images/a/1.png").write("images/a/2.png").write("masks/a/1.png").write("masks/a/2.txt");
  dataset.options.file_root = dataset.path("images");
  dataset.options.companions = {"../masks/{dir}/{name}"};
  CHECK(contains(dataset.error(), dataset.path("images/../masks/a/2.png: No such file")));
  dataset.options.on_error = OnError::skip;
  const Catalogue catalogue = list_dataset(dataset.options);
  CHECK_EQUAL(catalogue.entries.size(), size_t{1});
  CHECK_EQUAL(catalogue.entries[0].companions[0].path, "../masks/a/1.png");
  CHECK_EQUAL(catalogue.entries[0].companions[0].size, kPng.size());
}

TEST(companions_that_may_be_missing_are_empty_or_replaced) {
  Dataset dataset;
  dataset.write("images/a/1.png").write("images/a/2.png").write("masks/a/1.png").write("none.png");
  dataset.options.file_root = dataset.path("images");
  dataset.options.companions = {"../masks/{dir}/{name}", "../{dir}/depth.png"};
  const auto companions = [&] {
    std::string text;
    for (const Entry &entry : list_dataset(dataset.options).entries)
      for (const File &companion : entry.companions)
        text += companion.path + (companion.size == kPng.size() ? "" : "!") + "; ";
    return text;
  };
  dataset.options.missing_companions = {"empty"};
  CHECK_EQUAL(companions(), "../masks/a/1.png; !; !; !; ");
  const std::vector<std::string> problems = list_dataset(dataset.options).problems;
  CHECK_EQUAL(problems.size(), size_t{2});
  CHECK_EQUAL(problems[0], "1 of 2 samples has no companion ../masks/{dir}/{name}:\n  " +
                               dataset.path("images/a/2.png") + "\nTheir output is empty");
  CHECK(contains(problems[1], "2 of 2 samples have no companion ../{dir}/depth.png:"));
  dataset.options.missing_companions = {"empty", "../none.png"};
  CHECK_EQUAL(companions(), "../masks/a/1.png; ../none.png; !; ../none.png; ");
  CHECK(contains(list_dataset(dataset.options).problems[1], "../none.png takes its place"));
  dataset.options.missing_companions = {"error", "empty"};
  CHECK(contains(dataset.error(), dataset.path("images/../masks/a/2.png: No such file")));
  dataset.options.missing_companions = {"../missing.png"};
  for (const OnError on_error : {OnError::raise, OnError::skip}) {
    dataset.options.on_error = on_error;
    CHECK(contains(dataset.error(), "missing_companions is \"../missing.png\", but must be"));
    CHECK(contains(dataset.error(), "and there is no " + dataset.path("images/../missing.png")));
  }
  dataset.options.missing_companions = {"empty", "empty", "empty"};
  CHECK(contains(dataset.error(), "missing_companions needs one value, or as many as there are companions"));
  dataset.options.missing_companions = {""};
  CHECK(contains(dataset.error(), "missing_companions has an empty value"));
}

TEST(what_there_is_of_a_companion_that_may_be_missing_must_be_good) {
  Dataset dataset;
  dataset.write("images/a/1.png").write("masks/a/1.png", "");
  dataset.options.file_root = dataset.path("images");
  dataset.options.companions = {"../masks/{dir}/{name}"};
  dataset.options.missing_companions = {"empty"};
  CHECK(contains(dataset.error(), dataset.path("images/../masks/a/1.png")));
}

TEST(where_no_files_are_found_the_error_says_what_there_is) {
  Dataset dataset;
  dataset.options.file_root = dataset.path("root");
  fs::create_directories(dataset.path("root"));
  CHECK_EQUAL(dataset.error(), "No files found in " + dataset.path("root") + "\n  It is empty");
  dataset.write("root/1.png").write("root/2.png").write("root/notes.txt");
  CHECK_EQUAL(dataset.error(), "No files found in " + dataset.path("root") +
                                   "\n  2 files, such as 1.png, in it would match, but files are looked for in its "
                                   "folders, one for each class: give its parent as file_root, or the files as files");
  for (const char *name : {"1.png", "2.png", "notes.txt"}) fs::remove(dataset.path("root/") + name);
  dataset.write("root/b/1.gif").write("root/a/2.gif").write("root/other/3.png");
  dataset.options.dir_filters = {"[ab]"};
  CHECK_EQUAL(dataset.error(), "No files found in " + dataset.path("root") +
                                   "\n  1 folder, such as other, in it matched no dir_filters"
                                   "\n  2 files, such as a/2.gif, one level below matched no file_filters");
  dataset.options.dir_filters = {"*"};
  dataset.options.file_root = dataset.path("");
  CHECK(contains(dataset.error(),
                 "There are 3 folders, such as root/a, one level below, and folders in class folders are "
                 "passed over: is file_root one level too high?"));
}

TEST(labels_can_be_vectors) {
  Dataset dataset;
  dataset.write("a/1.png").write("a/b 2.png").write("list.txt", "a/1.png 0.5 -1e3\n\na/b 2.png\t+7 .25 \r\n");
  dataset.options.file_list = dataset.path("list.txt");
  dataset.options.label_columns = 2;
  CHECK_EQUAL(dataset.listed(), "a/1.png 0; a/b 2.png 1; ");
  CHECK(list_dataset(dataset.options).label_values.own() == (std::vector<float>{0.5f, -1000, 7, 0.25f}));
  dataset.options.label_columns = 1;
  CHECK_EQUAL(dataset.listed(), "a/1.png 0.5 0; a/b 2.png\t+7 1; ");
  dataset.options.label_columns = 3;
  CHECK(contains(dataset.error(), "has 2 lines that are not a path and 3 numbers:\n  line 1: a/1.png 0.5 -1e3"));
  dataset.options.file_list.reset();
  dataset.options.files = {"a/1.png", "a/b 2.png"};
  CHECK(contains(dataset.error(), "label_columns goes with label_values or file_list"));
  dataset.options.label_values = {1, 2, 3, 4, 5, 6};
  CHECK(list_dataset(dataset.options).label_values.own() == *dataset.options.label_values);
  dataset.options.label_values = {1, 2, 3, 4, 5};
  CHECK(contains(dataset.error(), "label_values has 5 numbers, but 2 files with 3 numbers each were given"));
  dataset.options.labels = {1, 2};
  CHECK(contains(dataset.error(), "labels and label_values exclude each other"));
}

TEST(lists_may_come_from_windows) {
  Dataset dataset;
  dataset.write("a/1.png").write("ü 2.png").write("list.txt",
                                                  "\xEF\xBB\xBF"
                                                  "a/1.png 3\r\nü 2.png 4\r\n");
  dataset.options.file_list = dataset.path("list.txt");
  CHECK_EQUAL(dataset.listed(), "a/1.png 3; ü 2.png 4; ");
  dataset.options.label_columns = 1;
  CHECK_EQUAL(dataset.listed(), "a/1.png 0; ü 2.png 1; ");
  const std::string utf16(
      "\xFF\xFE"
      "a\0 \0"
      "1\0\n\0",
      10);
  for (const int columns : {0, 1}) {
    dataset.options.label_columns = columns;
    dataset.write("list.txt", utf16);
    CHECK_EQUAL(dataset.error(), "file_list " + dataset.path("list.txt") +
                                     " is not a text file in UTF-8: line 1 has a zero byte, as UTF-16 does");
    for (const char *nothing : {"", "\n \r\n", "\xEF\xBB\xBF"}) {
      dataset.write("list.txt", nothing);
      CHECK_EQUAL(dataset.error(), "file_list " + dataset.path("list.txt") + " lists no files");
    }
  }
}

TEST(lists_that_are_no_files_are_refused) {
  Dataset dataset;
  dataset.write("a/1.png");
  CHECK_EQUAL(mkfifo(dataset.path("list.txt").c_str(), 0600), 0);
  for (const int columns : {0, 1}) {
    dataset.options.label_columns = columns;
    for (const std::string &path : {dataset.path("list.txt"), std::string("/dev/zero")}) {
      dataset.options.file_list = path;
      CHECK_EQUAL(dataset.error(), "file_list " + path + " cannot be opened: is not a regular file");
    }
  }
}

TEST(numbers_that_are_none_are_refused) {
  Dataset dataset;
  dataset.write("a/1.png");
  dataset.options.file_list = dataset.path("list.txt");
  for (const int columns : {0, 1}) {
    dataset.options.label_columns = columns;
    for (const char *word :
         {"", "x", "1x", "0x10", "1,5", "++1", "-", "1e", "99999999999999999999999999999999999999999"}) {
      const testing::Context context("%s, %d columns", word, columns);
      dataset.write("list.txt", "a/1.png "s + word + "\n");
      CHECK(contains(dataset.error(), "has 1 line that is not a path and "));
    }
  }
}

TEST(companions_can_be_listed) {
  Dataset dataset;
  dataset.write("1.png").write("2.png").write("m.png").write("d.png");
  dataset.options.files = {"1.png", "2.png"};
  dataset.options.companion_files = {"m.png", "d.png", "none.png", "m.png"};
  CHECK_EQUAL(companion_count(dataset.options), size_t{2});
  CHECK(contains(dataset.error(), "1 of 2 samples has bad files:\n  " + dataset.path("none.png: No such file")));
  dataset.options.missing_companions = {"empty", "error"};
  const Catalogue catalogue = list_dataset(dataset.options);
  CHECK_EQUAL(catalogue.entries[0].companions[1].path, "d.png");
  CHECK_EQUAL(catalogue.entries[1].companions[0].path, "");
  CHECK(contains(catalogue.problems.at(0), "1 of 2 samples has no companion 0:"));
  dataset.options.companion_files = {"m.png", "d.png", "", "m.png"};
  CHECK_EQUAL(list_dataset(dataset.options).entries[1].companions[0].path, "");
  dataset.options.missing_companions = {"d.png", "error"};
  CHECK_EQUAL(list_dataset(dataset.options).entries[1].companions[0].path, "d.png");
  dataset.options.missing_companions = {"error"};
  CHECK(contains(dataset.error(), dataset.path("2.png: the path of its companion 0 is empty")));
  dataset.options.companions = {"{name}"};
  CHECK(contains(dataset.error(), "companions and companion_files exclude each other"));
  dataset.options.companions.clear();
  dataset.options.companion_files->pop_back();
  CHECK(contains(dataset.error(), "companion_files has 3 paths, which is no multiple of the 2 files"));
  dataset.options.files.reset();
  CHECK(contains(dataset.error(), "companion_files needs the argument files"));
}

TEST(listing_can_be_cancelled) {
  Dataset dataset;
  dataset.write("a/1.png");
  const std::atomic<bool> cancelled = true;
  dataset.options.cancelled = &cancelled;
  dataset.options.sniff = true;
  CHECK(contains(dataset.error(), "interrupted"));
}

TEST(what_is_outside_a_subset_is_not_looked_at) {
  Dataset dataset;
  for (const char *name : {"a/1.png", "a/2.png", "b/3.png", "b/4.png"}) dataset.write(name);
  dataset.write("b/5.png", "").options.sizes = true;
  dataset.options.subset.indices = {{0, 3}};
  dataset.options.companions = {"{dir}/{stem}.png"};
  CHECK_EQUAL(dataset.listed(), "a/1.png 0; b/4.png 1; ");
  dataset.options.subset.indices = {{0, 4}};
  CHECK(contains(dataset.error(), "1 of 2 samples has bad files"));
  dataset.options.subset = {.files = {{"b/3.png"}}};
  CHECK_EQUAL(dataset.listed(), "b/3.png 1; ");
}

TEST(weights_belong_to_listed_files) {
  Dataset dataset;
  for (const char *name : {"a/1.png", "a/2.png", "b/3.png", "b/4.png"}) dataset.write(name);
  dataset.write("a/2.png", "").options.sniff = true;
  dataset.options.on_error = OnError::skip;
  dataset.options.weights = {{1, 2, 3, 4}};
  dataset.options.subset.indices = {{0, 1, 3}};
  std::string weights;
  for (const Entry &entry : list_dataset(dataset.options).entries) weights += std::to_string(entry.weight) + " ";
  CHECK_EQUAL(weights, "1.000000 4.000000 ");
  dataset.options.weights = {{1, 2, 3}};
  CHECK_EQUAL(dataset.error(), "The argument weights has 3 numbers, but the dataset has 4 samples");
}

}  // namespace
