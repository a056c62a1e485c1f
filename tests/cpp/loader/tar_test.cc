// Tar archives: their members, in every format, and what is refused.
#include "archives/tar.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tar_files.h"
#include "testing.h"

using namespace dali_l3::loader;
using namespace tar_files;
using testing::error_of;

namespace {

std::vector<TarMember> members(const std::string &archive) {
  return list_tar("a.tar", archive.size(), read_from(archive));
}

std::string problem(const std::string &archive) {
  return error_of([&] { members(archive); });
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

// A member's bytes in these tests: its name, or the first 50 characters of it, in angle brackets.
std::string bytes_of(const std::string &name) {
  std::string bytes = "<";
  return bytes.append(name, 0, 50) += '>';
}

std::string names(const std::string &archive) {
  std::string text;
  for (const TarMember &member : members(archive)) {
    if (archive.substr(member.offset, member.size) != bytes_of(member.name)) text += "wrong bytes: ";
    text += member.name + "|";
  }
  return text;
}

std::string named(const std::string &name) { return member(name, bytes_of(name)); }

}  // namespace

TEST(members_of_all_formats) {
  const std::string long_name = std::string(150, 'd') + "/" + std::string(120, 'n') + ".png";
  const std::string bytes = padded(bytes_of(long_name)), short_bytes = padded(bytes_of("a b.png"));
  const uint64_t size = bytes_of(long_name).size(), short_size = bytes_of("a b.png").size();
  const std::string gnu_magic("ustar  \0", 8);

  CHECK_EQUAL(names(named("1.png") + named("dir/2.png") + end()), "1.png|dir/2.png|");
  // v7: no magic, type zero
  CHECK_EQUAL(names(header("a b.png", short_size, '\0', "", "", "") + short_bytes + end()), "a b.png|");
  // ustar: a prefix
  CHECK_EQUAL(names(header("x.png", 15, '0', "", "pre/fix") + padded("<pre/fix/x.png>") + end()), "pre/fix/x.png|");
  // GNU: what is in the place of the prefix is none; a long name before the member
  CHECK_EQUAL(names(header("a b.png", short_size, '0', "", "no/prefix", gnu_magic) + short_bytes + end()), "a b.png|");
  CHECK_EQUAL(names(header("././@LongLink", long_name.size() + 1, 'L') + padded(long_name + '\0') +
                    header(long_name, size, '0', "", "", gnu_magic) + bytes + named("next.png") + end()),
              long_name + "|next.png|");
  // PAX: a name and a size before the member, and nothing for the one after
  CHECK_EQUAL(names(pax(record("mtime", "1.5") + record("path", long_name) + record("size", std::to_string(size))) +
                    header("x", 0) + bytes + named("next.png") + end()),
              long_name + "|next.png|");
  CHECK_EQUAL(names(pax(record("comment", "git"), 'g') + named("1.png") + end()), "1.png|");
  // a size in binary
  std::string binary(12, '\0');
  binary[0] = static_cast<char>(0x80);
  binary[11] = static_cast<char>(short_size);
  CHECK_EQUAL(names(header("a b.png", 0, '0', "", "", gnu_magic, binary) + short_bytes + end()), "a b.png|");
  // spaces around the digits, as some programs write them
  CHECK_EQUAL(names(header("a b.png", 0, '0', "", "", "", "        11 ") + short_bytes + end()), "a b.png|");
}

TEST(what_is_no_regular_file_is_passed_over) {
  const std::string others = header("dir/", 0, '5') + header("link", 0, '2', "1.png") + header("pipe", 0, '6') +
                             header("device", 0, '3') + header("volume", 0, 'V') + header("old/", 0, '\0') +
                             header("dump", 3, 'D') + padded("Y1");
  CHECK_EQUAL(names(others + named("1.png") + end()), "1.png|");
  CHECK(members(end()).empty());
}

TEST(hard_links_have_the_bytes_of_their_targets) {
  const std::string archive = named("1.png") + header("2.png", 0, '1', "1.png") + named("3.png") + end();
  const auto listed = members(archive);
  CHECK_EQUAL(listed.size(), 3u);
  CHECK_EQUAL(listed[1].name, "2.png");
  CHECK_EQUAL(listed[1].offset, listed[0].offset);
  CHECK_EQUAL(listed[1].size, listed[0].size);
  CHECK(has(problem(header("2.png", 0, '1', "1.png") + named("1.png") + end()), "hard link 2.png to 1.png"));
}

TEST(names_that_repeat_are_all_listed) { CHECK_EQUAL(names(named("1.png") + named("1.png") + end()), "1.png|1.png|"); }

TEST(compressed_archives_are_refused_by_name) {
  const auto check = [](const std::string &begin, const char *name) {
    CHECK(has(problem(begin + std::string(1000, 'x')), std::string("a.tar: is compressed with ") + name));
  };
  check("\x1f\x8b", "gzip");
  check("\x28\xb5\x2f\xfd", "Zstandard");
  check("BZh9", "bzip2");
  check(std::string("\xfd"
                    "7zXZ\0",
                    6),
        "xz");
  check("\x04\x22\x4d\x18", "LZ4");
}

TEST(damage_is_found) {
  const std::string good = named("1.png") + named("2.png") + end();
  CHECK(has(problem("a text"), "is cut off"));
  CHECK(has(problem(std::string(2000, 'x')), "is no tar archive"));
  std::string bad = good;
  bad[1024 + 3] ^= 1;  // in the second header
  CHECK(has(problem(bad), "has no sound header at byte 1024"));
  CHECK(has(problem(header("1.png", 0, '0', "", "", "", "99999999999") + end()), "impossible size"));
  CHECK(has(problem(header("1.png", 1'000'000) + std::string(5000, 'x')), "is cut off: 1.png has 1000000 bytes"));
  CHECK(has(problem(header("1.png", 1, 'S') + end()), "the sparse file 1.png"));
  CHECK(has(problem(pax(record("GNU.sparse.major", "1")) + named("1.png") + end()), "sparse"));
  CHECK(has(problem(header("1.png", 1, 'M') + end()), "volume"));
  CHECK(has(problem(header("1.png", 1, 'Z') + end()), "unknown type"));
  CHECK(has(problem(pax("99 path=x\n") + named("1.png") + end()), "damaged extended header"));
  CHECK(has(problem(pax("path=x\n") + named("1.png") + end()), "damaged extended header"));
  CHECK(has(problem(pax(record("size", "-1")) + named("1.png") + end()), "damaged extended header"));
  CHECK(has(problem(pax(record("path", "x"), 'g') + named("1.png") + end()), "global header"));
  CHECK(has(problem(header("x", uint64_t{1} << 30, 'L') + end()), "is cut off"));
  CHECK(has(problem(header("x", uint64_t{2} << 20, 'L') + std::string(3 << 20, 'x')), "extended header of"));
  CHECK(has(problem(good + named("3.png") + end()), "has more behind its end mark at byte 2048"));
  CHECK_EQUAL(problem(good + std::string(100 * kBlock, '\0')), "");
  const std::string hole(2 << 20, '\0');  // in a file that is being downloaded
  CHECK(has(problem(named("1.png") + hole + named("3.png") + end()), "has its end mark at byte 1024, but"));
  CHECK(has(problem(named("1.png") + hole), "downloaded to its end"));
}

TEST(an_archive_cut_off_anywhere_is_never_taken_for_a_whole_one) {
  const std::string good = pax(record("path", "long.png")) + named("1.png") + named("2.png") + named("3.png") + end();
  for (size_t size = 0; size + 2 * kBlock < good.size(); size++) {
    const testing::Context context("%zu bytes", size);
    CHECK(!problem(good.substr(0, size)).empty());
  }
}

TEST(random_bytes_in_headers_do_no_harm) {
  std::mt19937 random(1);
  const std::string good = pax(record("path", "long.png") + record("size", "6")) + header("x", 6) + padded("<long>") +
                           header("././@LongLink", 30, 'L') + padded(std::string(29, 'n')) + named("2.png") +
                           header("3.png", 0, '1', "long.png") + end();
  CHECK_EQUAL(members(good).size(), 3u);
  int listed = 0;
  for (int round = 0; round < 20'000; round++) {
    std::string bytes = good;
    const size_t block = random() % (bytes.size() / kBlock) * kBlock;
    for (int i = 0; i < 3; i++) bytes[block + random() % kBlock] = static_cast<char>(random());
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(block) + 148, 8, ' ');  // the checksum made right
    uint64_t sum = 0;
    for (size_t i = 0; i < kBlock; i++) sum += static_cast<uint8_t>(bytes[block + i]);
    bytes.replace(block + 148, 8, octal(sum, 6) + std::string("\0 ", 2));
    try {
      for (const TarMember &member : members(bytes)) {
        listed++;
        CHECK(member.offset <= bytes.size() && member.size <= bytes.size() - member.offset);
      }
    } catch (const std::runtime_error &) {
    }
  }
  CHECK(listed > 1000);
}

TEST(headers_tell_whether_a_member_is_where_an_index_says) {
  const std::string archive = named("1.png") + named("2.png") + end();
  const auto is_one = [&](uint64_t offset, uint64_t size) { return is_tar_member(offset, size, read_from(archive)); };
  CHECK(is_one(512, 7));
  CHECK(is_one(1536, 7));
  CHECK(!is_one(1536, 8));
  CHECK(!is_one(1024, 7));
  CHECK(!is_one(0, 7));
  CHECK(!is_one(5120, 7));
}
