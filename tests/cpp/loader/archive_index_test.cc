// Samples of archives, and the text of indices.
#include "archives/archive_index.h"

#include <random>

#include "testing.h"

using namespace dali_l3::loader;
using testing::error_of;

namespace {

constexpr uint64_t kArchive = uint64_t{1} << 30;

std::vector<TarMember> members(const std::vector<std::string> &names) {
  std::vector<TarMember> list;
  for (size_t i = 0; i < names.size(); i++) list.push_back({names[i], 512 * (2 * i + 1), i});
  return list;
}

// "a.jpg,a.cls|b.jpg|"
std::string shown(const ArchiveIndex &index) {
  std::string text;
  for (size_t i = 0; i < index.samples(); i++) {
    for (size_t m = index.begins[i]; m < index.begins[i + 1]; m++)
      text += (m > index.begins[i] ? "," : "") + index.members[m].name;
    text += "|";
  }
  return text;
}

std::string grouped(const std::vector<std::string> &names) { return shown(group(members(names))); }

std::string parsed(const std::string &text) { return shown(parse_index("a.idx", text, kArchive)); }

std::string problem(const std::string &text) {
  return error_of([&] { parse_index("a.idx", text, kArchive); });
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(names_have_a_key_and_an_extension) {
  CHECK_EQUAL(key_of("dir.d/a.seg.png"), "dir.d/a");
  CHECK_EQUAL(extension_of("dir.d/a.seg.png"), "seg.png");
  CHECK_EQUAL(key_of("dir.d/a"), "dir.d/a");
  CHECK_EQUAL(extension_of("dir.d/a"), "");
}

TEST(members_of_one_key_make_a_sample) {
  CHECK_EQUAL(grouped({"a.jpg", "a.cls", "b.jpg", "b.cls"}), "a.jpg,a.cls|b.jpg,b.cls|");
  CHECK_EQUAL(grouped({"x/a.jpg", "y/a.jpg", "x/a.cls"}), "x/a.jpg,x/a.cls|y/a.jpg|");
  CHECK_EQUAL(grouped({"a.jpg", "b.jpg", "a.cls", "b.cls"}), "a.jpg,a.cls|b.jpg,b.cls|");
}

TEST(a_name_that_repeats_begins_another_sample) {
  CHECK_EQUAL(grouped({"a.jpg", "a.cls", "a.jpg", "a.cls"}), "a.jpg,a.cls|a.jpg,a.cls|");
  CHECK_EQUAL(grouped({"a.jpg", "b.jpg", "a.jpg", "a.cls", "a.jpg"}), "a.jpg|b.jpg|a.jpg,a.cls|a.jpg|");
  CHECK_EQUAL(repeated_keys(group(members({"a.jpg", "b.jpg", "a.jpg", "a.jpg"}))), 2u);
  CHECK_EQUAL(repeated_keys(group(members({"a.jpg", "b.jpg", "a.cls"}))), 0u);
}

TEST(what_belongs_to_no_sample) {
  CHECK_EQUAL(grouped({".hidden", "dir/.hidden.jpg", "README", "a.", "__meta__/x.json", "a.jpg", "d/__key__"}),
              "a.jpg|");
}

TEST(an_index_is_read_back) {
  std::mt19937 random(1);
  const std::string characters = "ab.% \t\n/\x7f\xc3\xa9";
  for (int round = 0; round < 300; round++) {
    std::vector<std::string> names;
    for (int i = 0; i < 20; i++) {
      std::string name;
      const auto length = 1 + random() % 6;
      for (size_t c = 0; c < length; c++) name += characters[random() % (round % 3 ? characters.size() : 4)];
      names.push_back(name + (random() % 2 ? ".jpg" : ".cls"));
    }
    const ArchiveIndex index = group(members(names));
    if (index.samples() == 0) continue;
    CHECK(parse_index("a.idx", write_index(index, kArchive), kArchive) == index);
  }
}

TEST(the_text_of_an_index) {
  const ArchiveIndex index = group(members({"a.jpg", "a.cls", "b.jpg"}));
  CHECK_EQUAL(write_index(index, 5120), "v1.2 2 size=5120\njpg 512 0 a.jpg cls 1536 1 a.cls\njpg 2560 2 b.jpg\n");
  CHECK_EQUAL(write_index(group(members({"a 100%.jpg"})), 5120),
              "v1.2 1 size=5120 names=percent\njpg 512 0 a%20100%25.jpg\n");
}

TEST(indices_that_others_have_made) {
  CHECK_EQUAL(parsed("v1.1 2\njpg 512 7 cls 1536 1\njpg 2560 9\n"), "0.jpg,0.cls|1.jpg|");
  CHECK_EQUAL(parsed("v1.2 2\njpg 512 7 d/a.jpg cls 1536 1 d/a.cls\njpg 2560 9 d/b.jpg"), "d/a.jpg,d/a.cls|d/b.jpg|");
  CHECK_EQUAL(parsed("v1.2 1\r\njpg 512 7 a.jpg\r\n\r\n"), "a.jpg|");
  // Names with spaces, as wds2idx writes them, also with what looks like other members.
  CHECK_EQUAL(parsed("v1.2 1\njpg 512 7 my cat.jpg cls 1536 1 my cat.cls\n"), "my cat.jpg,my cat.cls|");
  CHECK_EQUAL(parsed("v1.2 1\njpg 512 7 a.jpg and b.jpg cls 1536 1 a.jpg and b.cls\n"),
              "a.jpg and b.jpg,a.jpg and b.cls|");
  CHECK_EQUAL(parsed("v1.2 1\nb.jpg 512 7 1 2 3 a.b.jpg\n"), "1 2 3 a.b.jpg|");
}

TEST(indices_that_cannot_be_right_are_refused) {
  const auto check = [](const std::string &text, const std::string &expected) {
    const testing::Context context("%s", text.c_str());
    CHECK(has(problem(text), "a.idx: is no index that can be used: line " + expected));
  };
  check("", "1: it must begin with v1.1 or v1.2");
  check("v1.3 1\njpg 512 7 a.jpg\n", "1: it must begin");
  check("v1.2\njpg 512 7 a.jpg\n", "1: the number of samples is missing");
  check("v1.2 -1\n", "1: the number of samples is missing");
  check("v1.2 2\njpg 512 7 a.jpg\n", "3: the samples end here");
  check("v1.2 99999999999999\njpg 512 7 a.jpg\n", "3: the samples end here");
  check("v1.2 1\njpg 512 7 a.jpg\njpg 512 7 b.jpg\n", "3: there are more lines");
  check("v1.2 1\n\n", "2: it names no members");
  check("v1.2 1\njpg 513 7 a.jpg\n", "2: the offset 513 is no multiple of 512");
  check("v1.2 1\njpg 0 7 a.jpg\n", "2: the offset 0");
  check("v1.2 1\njpg 512 2000000000 a.jpg\n", "2: its archive has only 1073741824 bytes");
  check("v1.2 1\njpg 512 18446744073709551615 a.jpg\n", "2: its archive has only");
  check("v1.2 1\njpg 512 99999999999999999999999 a.jpg\n", "2: an extension, an offset and a size");
  check("v1.2 1\njpg 512\n", "2: an extension, an offset and a size");
  check("v1.2 1\njpg 512 7\n", "2: there is no name that ends with \"jpg\"");
  check("v1.2 1\njpg 512 7 a.png\n", "2: there is no name that ends with \"jpg\"");
  check("v1.2 1 size=7\njpg 512 7 a.jpg\n", "1: it was made when the archive had 7 bytes");
  check("v1.2 1 names=percent\njpg 512 7 a%2.jpg\n", "2: a name is missing or damaged");
}

TEST(an_index_cut_off_anywhere_is_refused) {
  const std::string text = write_index(group(members({"a.jpg", "a.cls", "b b.jpg", "b b.cls"})), kArchive);
  for (size_t size = 0; size < text.size(); size++) {
    const testing::Context context("%zu bytes", size);
    CHECK(!problem(text.substr(0, size)).empty());
  }
}

TEST(random_changes_do_no_harm) {
  std::mt19937 random(2);
  const std::string text = write_index(group(members({"a.jpg", "a.cls", "b b.jpg", "b b.cls"})), kArchive);
  for (int round = 0; round < 20'000; round++) {
    std::string bytes = text;
    for (int i = 0; i < 3; i++) bytes[random() % bytes.size()] = " \n0129%=v.ajpg"[random() % 14];
    try {
      for (const TarMember &member : parse_index("a.idx", bytes, kArchive).members)
        CHECK(member.offset % kTarBlock == 0 && member.offset + member.size <= kArchive);
    } catch (const std::runtime_error &) {
    }
  }
}
