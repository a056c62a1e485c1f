// Headers of tar archives: POSIX.1-2017 "pax", and the manual of GNU tar for its own.

#include "archives/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "input/open_file.h"

namespace dali_l3::loader {
namespace {

// Longer names and extended headers are refused.
constexpr uint64_t kMaxExtendedHeader = uint64_t{1} << 20;

// Bytes that are read at once where a header is expected: those of small members that follow may be among them.
constexpr size_t kWindow = size_t{16} << 10;

// What may stand between the end mark and the end of the file: archives are padded to records. More is a hole in a file
// that was not written or downloaded to its end.
constexpr uint64_t kMaxPadding = uint64_t{1} << 20;

struct Field {
  size_t offset, size;
};

constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kLinkName{157, 100}, kMagic{257, 8},
    kPrefix{345, 155};
constexpr size_t kTypeOffset = 156;

using Block = std::array<uint8_t, kTarBlock>;

std::string_view field(const Block &block, Field field) {
  return {reinterpret_cast<const char *>(block.data()) + field.offset, field.size};
}

// Up to its first zero.
std::string_view text(std::string_view field) { return field.substr(0, field.find('\0')); }

// Octal digits between spaces and zeros; or, of GNU, the number itself behind a byte that is 0x80.
std::optional<uint64_t> number(std::string_view field) {
  if (static_cast<uint8_t>(field[0]) == 0x80) {
    uint64_t value = 0;
    for (const char byte : field.substr(1)) {
      if (value >> 56) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(byte);
    }
    return value;
  }
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  field = field.substr(0, field.find_first_of(std::string_view(" \0", 2)));
  uint64_t value = 0;
  if (field.empty()) return value;
  const auto [end, error] = std::from_chars(field.begin(), field.end(), value, 8);
  if (error != std::errc() || end != field.end()) return std::nullopt;
  return value;
}

// The sum of all bytes, those of the checksum taken for spaces. Some old programs have added signed ones.
bool checksum_is_right(const Block &block) {
  const std::optional<uint64_t> expected = number(field(block, kChecksum));
  uint64_t sum = 8 * ' ';
  int64_t signed_sum = 8 * ' ';
  for (size_t i = 0; i < block.size(); i++) {
    if (i >= kChecksum.offset && i < kChecksum.offset + kChecksum.size) continue;
    sum += block[i];
    signed_sum += static_cast<int8_t>(block[i]);
  }
  return expected && (*expected == sum || static_cast<int64_t>(*expected) == signed_sum);
}

bool is_zero(std::span<const uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

// What a header says of the member after it. Names that are empty and sizes that are none: nothing.
struct Extended {
  std::string name, link_name;
  std::optional<uint64_t> size;
};

class TarReader {
 public:
  TarReader(const std::string &path, uint64_t size, const ReadAt &read, const std::atomic<bool> *cancelled)
      : path_(path), size_(size), read_(read), cancelled_(cancelled) {}

  std::vector<TarMember> members() {
    refuse_compressed();
    while (next()) {
    }
    check_rest();
    return std::move(members_);
  }

 private:
  [[noreturn]] void fail(const std::string &problem) const { fail_file(path_, problem); }
  [[noreturn]] void fail_at(const std::string &problem) const {
    fail(problem + " at byte " + std::to_string(at_) + ": it is damaged, or cut off and written over");
  }
  [[noreturn]] void fail_cut_off(const std::string &what) const {
    fail("is cut off: " + what + ", but it has only " + std::to_string(size_) + " bytes");
  }

  void refuse_compressed() {
    using namespace std::string_view_literals;
    static constexpr std::pair<std::string_view, const char *> kSignatures[] = {{"\x1f\x8b"sv, "gzip"},
                                                                                {"\x28\xb5\x2f\xfd"sv, "Zstandard"},
                                                                                {"\xfd"
                                                                                 "7zXZ\0"sv,
                                                                                 "xz"},
                                                                                {"BZh"sv, "bzip2"},
                                                                                {"\x04\x22\x4d\x18"sv, "LZ4"},
                                                                                {"LZIP"sv, "lzip"},
                                                                                {"\x1f\x9d"sv, "compress"}};
    const std::span<const uint8_t> head = window(0, 8);
    const std::string_view begin(reinterpret_cast<const char *>(head.data()), head.size());
    for (const auto &[signature, name] : kSignatures)
      if (begin.starts_with(signature))
        fail(std::string("is compressed with ") + name +
             ", so that no member can be read without all before it. Decompress it; images are compressed anyway");
  }

  // Bytes of the archive; fewer than asked for at its end.
  std::span<const uint8_t> window(uint64_t offset, size_t size) {
    if (offset < window_at_ || offset + size > window_at_ + window_.size()) {
      window_.resize(std::max(size, kWindow));
      window_.resize(read_(offset, window_));
      window_at_ = offset;
    }
    return std::span<const uint8_t>(window_).subspan(offset - window_at_,
                                                     std::min<uint64_t>(size, window_at_ + window_.size() - offset));
  }

  // Goes on to the next header and what follows it. Returns false at the end of the archive.
  bool next() {
    if (cancelled_ && *cancelled_) fail("its listing was interrupted");
    const std::span<const uint8_t> bytes = window(at_, kTarBlock);
    if (bytes.size() < kTarBlock) fail_cut_off("there is no end mark");
    Block block;
    std::memcpy(block.data(), bytes.data(), kTarBlock);
    if (is_zero(block)) return false;
    if (!checksum_is_right(block)) {
      if (at_ == 0) fail("is no tar archive: it does not begin with a header");
      fail_at("has no sound header");
    }
    const std::optional<uint64_t> size = number(field(block, kSize));
    if (!size) fail_at("has a header with an impossible size");
    at_ += kTarBlock;
    handle(block, *size);
    return true;
  }

  void handle(const Block &block, uint64_t size) {
    const char type = static_cast<char>(block[kTypeOffset]);
    switch (type) {
      case 'x':  // PAX
      case 'X':  // the same, of Solaris
        read_pax(extended_data(size));
        return;
      case 'g': refuse_global(extended_data(size)); return;
      case 'L': extended_.name = text(as_text(extended_data(size))); return;
      case 'K': extended_.link_name = text(as_text(extended_data(size))); return;
      default: break;
    }
    const Extended extended = std::exchange(extended_, {});
    const std::string name = extended.name.empty() ? name_of(block) : extended.name;
    size = extended.size.value_or(size);
    switch (type) {
      case '0':
      case '7':  // contiguous
      case '\0':
        check_inside(name, size);
        if (!name.ends_with('/')) members_.push_back({name, at_, size});  // or a folder of v7
        skip(size);
        return;
      case '1': add_link(name, extended.link_name.empty() ? text(field(block, kLinkName)) : extended.link_name); return;
      case '2':
      case '3':
      case '4':
      case '5':
      case '6': return;  // a symbolic link, device, folder or FIFO
      case 'V': return;  // the name of the volume
      case 'D':          // the names in a folder
      case 'A':          // access rights
        check_inside(name, size);
        skip(size);
        return;
      case 'S': fail("has the sparse file " + name + ", which cannot be read. Make it anew without --sparse"); return;
      case 'M': fail("is a volume that begins within " + name + ". Make one archive of all volumes"); return;
      default: fail("has the member " + name + " of an unknown type, number " + std::to_string(block[kTypeOffset]));
    }
  }

  static std::string name_of(const Block &block) {
    std::string name(text(field(block, kName)));
    const bool posix = field(block, kMagic).starts_with(std::string_view("ustar\0", 6));
    const std::string_view prefix = posix ? text(field(block, kPrefix)) : "";
    return prefix.empty() ? name : std::string(prefix) + "/" + name;
  }

  void check_inside(const std::string &name, uint64_t size) const {
    if (at_ > size_ || size > size_ - at_)
      fail_cut_off(name + " has " + std::to_string(size) + " bytes from byte " + std::to_string(at_) + " on");
  }

  // Goes to where the next header is after so many bytes, which are inside the archive.
  void skip(uint64_t size) { at_ += (size + kTarBlock - 1) / kTarBlock * kTarBlock; }

  static std::string_view as_text(std::span<const uint8_t> bytes) {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  }

  std::span<const uint8_t> extended_data(uint64_t size) {
    check_inside("an extended header", size);
    if (size > kMaxExtendedHeader) fail_at("has an extended header of " + std::to_string(size) + " bytes");
    const std::span<const uint8_t> data = window(at_, size);
    if (data.size() < size) fail_cut_off("it ends in an extended header");
    skip(size);
    return data;
  }

  // Calls `take` for each record: "LENGTH KEY=VALUE\n".
  template <typename Take>
  void for_each_record(std::span<const uint8_t> data, Take take) {
    std::string_view rest = as_text(data);
    while (!rest.empty() && rest[0] != '\0') {
      size_t length = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
      const size_t key = static_cast<size_t>(end - rest.data()) + 1;
      if (error != std::errc() || length > rest.size() || length <= key || *end != ' ' || rest[length - 1] != '\n')
        fail_at("has a damaged extended header");
      const std::string_view record = rest.substr(key, length - 1 - key);
      const size_t equals = record.find('=');
      if (equals == std::string_view::npos) fail_at("has a damaged extended header");
      take(record.substr(0, equals), record.substr(equals + 1));
      rest.remove_prefix(length);
    }
  }

  void read_pax(std::span<const uint8_t> data) {
    for_each_record(data, [&](std::string_view key, std::string_view value) {
      if (key == "path") extended_.name = value;
      if (key == "linkpath") extended_.link_name = value;
      if (key == "size") {
        uint64_t size = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
        if (error != std::errc() || end != value.data() + value.size()) fail_at("has a damaged extended header");
        extended_.size = size;
      }
      if (key.starts_with("GNU.sparse."))
        fail("has a sparse file, which cannot be read. Make the archive anew without --sparse");
    });
  }

  void refuse_global(std::span<const uint8_t> data) {
    for_each_record(data, [&](std::string_view key, std::string_view) {
      if (key == "path" || key == "linkpath" || key == "size" || key.starts_with("GNU.sparse."))
        fail("has a global header that gives all members the same " + std::string(key));
    });
  }

  void add_link(const std::string &name, std::string_view target) {
    for (; named_ < members_.size(); named_++) by_name_[members_[named_].name] = named_;
    const auto found = by_name_.find(std::string(target));
    if (found == by_name_.end())
      fail("has the hard link " + name + " to " + std::string(target) + ", which does not come before it");
    const TarMember &member = members_[found->second];
    members_.push_back({name, member.offset, member.size});
  }

  // An archive behind the end mark of this one would be passed over, and so would members behind a hole.
  void check_rest() {
    if (size_ - at_ > kMaxPadding)
      fail("has its end mark at byte " + std::to_string(at_) + ", but " + std::to_string(size_ - at_) +
           " bytes behind it: it may not have been written or downloaded to its end");
    for (uint64_t at = at_; at < size_;) {
      const std::span<const uint8_t> bytes = window(at, std::min<uint64_t>(kWindow, size_ - at));
      if (bytes.empty()) return;
      if (!is_zero(bytes))
        fail("has more behind its end mark at byte " + std::to_string(at_) +
             ": if it is several archives in one file, join them with tar --concatenate");
      at += bytes.size();
    }
  }

  const std::string &path_;
  const uint64_t size_;
  const ReadAt &read_;
  const std::atomic<bool> *const cancelled_;

  std::vector<uint8_t> window_;
  uint64_t window_at_ = 0;
  uint64_t at_ = 0;
  Extended extended_;  // of the next member
  std::vector<TarMember> members_;
  std::unordered_map<std::string, size_t> by_name_;  // of the first `named_` members; only links need it
  size_t named_ = 0;
};

}  // namespace

std::vector<TarMember> list_tar(const std::string &path, uint64_t size, const ReadAt &read,
                                const std::atomic<bool> *cancelled) {
  return TarReader(path, size, read, cancelled).members();
}

bool is_tar_member(uint64_t offset, uint64_t size, const ReadAt &read) {
  Block block;
  if (offset < kTarBlock || read(offset - kTarBlock, block) != kTarBlock || !checksum_is_right(block)) return false;
  const std::optional<uint64_t> own = number(field(block, kSize));
  return own && (*own == size || *own == 0);  // PAX may give it elsewhere
}

}  // namespace dali_l3::loader
