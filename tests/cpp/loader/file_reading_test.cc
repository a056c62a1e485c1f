// Reading of files: their bytes, what is wrong with them, and what file systems and signals do to reads.
#include "input/file_reading.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "input/arena.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;
namespace fs = std::filesystem;

namespace {

// What the system is made to do, and what it was asked for. The test program's own open, pread and posix_fadvise,
// below, see to that.
struct System {
  int direct_open_error = 0;  // errno of opening for direct reads
  int direct_read_error = 0;
  size_t direct_alignment = kPage;
  size_t longest_read = SSIZE_MAX;
  int interruptions = 0;  // of the next reads
  int read_error = 0;     // errno of all reads
  std::function<void(off_t offset, size_t size)> before_read = [](off_t, size_t) {};
  std::function<void()> before_refusal = [] {};

  std::atomic<int> direct_reads{0}, buffered_reads{0}, dropped{0};
  std::atomic<off_t> dropped_offset{0}, dropped_size{0};  // the last ones
};

System *simulated = nullptr;  // null: the system as it is

struct Simulation : System {
  Simulation() { simulated = this; }
  ~Simulation() { simulated = nullptr; }
};

bool is_direct(int descriptor) { return fcntl(descriptor, F_GETFL) & O_DIRECT; }

int fail_with(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (simulated && simulated->direct_open_error && (flags & O_DIRECT)) return fail_with(simulated->direct_open_error);
  return int(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

// What open becomes with _FORTIFY_SOURCE.
extern "C" int __open_2(const char *path, int flags) { return open(path, flags); }

extern "C" ssize_t pread(int descriptor, void *data, size_t size, off_t offset) {
  if (simulated) {
    const bool direct = is_direct(descriptor);
    if (simulated->read_error) return fail_with(simulated->read_error);
    if (simulated->interruptions > 0) {
      simulated->interruptions--;
      return fail_with(EINTR);
    }
    if (direct && simulated->direct_read_error) {
      simulated->before_refusal();
      return fail_with(simulated->direct_read_error);
    }
    const auto is_aligned = [](size_t number) { return number % simulated->direct_alignment == 0; };
    if (direct && !(is_aligned(size_t(offset)) && is_aligned(size))) return fail_with(EINVAL);
    (direct ? simulated->direct_reads : simulated->buffered_reads)++;
    simulated->before_read(offset, size);
  }
  const ssize_t count = syscall(SYS_pread64, descriptor, data, size, offset);
  if (!simulated || count <= ssize_t(simulated->longest_read)) return count;
  std::memset(static_cast<uint8_t *>(data) + simulated->longest_read, 0, size - simulated->longest_read);
  return ssize_t(simulated->longest_read);
}

extern "C" int posix_fadvise(int descriptor, off_t offset, off_t size, int advice) {
  if (simulated && advice == POSIX_FADV_DONTNEED) {
    simulated->dropped++;
    simulated->dropped_offset = offset;
    simulated->dropped_size = size;
  }
  return int(syscall(SYS_fadvise64, descriptor, offset, size, advice));
}

namespace {

using Bytes = std::vector<uint8_t>;

Bytes random_bytes(size_t size) {
  std::mt19937 random{std::mt19937::result_type(size)};
  Bytes bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return uint8_t(random()); });
  return bytes;
}

class Folder {
 public:
  std::string path(const std::string &name) const { return folder_.path() + "/" + name; }

  // Whether its file system does so: not all have to.
  bool takes_direct_reads() const {
    const int descriptor =
        int(syscall(SYS_openat, AT_FDCWD, folder_.path().c_str(), O_TMPFILE | O_RDWR | O_DIRECT, 0600));
    if (descriptor < 0) return false;
    close(descriptor);
    return true;
  }

  std::string add(const std::string &name, const Bytes &bytes) const {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
    return path(name);
  }

 private:
  const TemporaryFolder folder_;
};

// Reads with memory from an arena, and keeps the warnings.
struct Reader {
  explicit Reader(ReadMode mode) : files(mode, [this](const std::string &line) { warnings.push_back(line); }) {}

  FileBytes read(const std::string &path) {
    return files.read(path, [this](size_t size) { return arena.allocate(size); });
  }

  // The message of what read() throws, or "" if it does not.
  std::string failure(const std::string &path) {
    try {
      read(path);
      return "";
    } catch (const std::runtime_error &error) {
      return error.what();
    }
  }

  std::vector<std::string> warnings;
  Arena arena{0};
  FileReader files;
};

bool equal(const FileBytes &actual, const Bytes &expected) { return std::ranges::equal(actual.bytes(), expected); }

// Of blocks that have another owner.
struct Lender final : Memory {
  void take_back(uint8_t *, size_t) override {}
};

constexpr ReadMode kModes[] = {ReadMode::buffered, ReadMode::direct};
constexpr size_t kSizes[] = {1, 4095, 4096, 4097, 100'003, 3'000'000};

const char *name(ReadMode mode) { return mode == ReadMode::direct ? "direct" : "buffered"; }

}  // namespace

TEST(whole_files) {
  const Folder folder;
  for (ReadMode mode : kModes) {
    for (size_t size : kSizes) {
      const testing::Context context("%s, %zu bytes", name(mode), size);
      const Bytes bytes = random_bytes(size);
      const std::string path = folder.add("file", bytes);
      Reader reader(mode);
      CHECK(equal(reader.read(path), bytes));
    }
  }
}

TEST(memory_is_asked_for_once_and_not_exceeded) {
  const Folder folder;
  Arena arena(0);
  for (ReadMode mode : kModes) {
    FileReader reader(mode, [](const std::string &) {});
    for (size_t size : kSizes) {
      const testing::Context context("%s, %zu bytes", name(mode), size);
      const std::string path = folder.add("file", random_bytes(size));
      const Block memory = arena.allocate(whole_pages(size) + kPage);
      std::fill_n(memory.get() + whole_pages(size), kPage, 0xA5);
      int calls = 0;
      const FileBytes read = reader.read(path, [&](size_t asked) {
        CHECK_EQUAL(asked, size);
        calls++;
        return Block(memory.get(), FreeBlock{std::make_shared<Lender>(), asked});
      });
      CHECK_EQUAL(calls, 1);
      CHECK(read.block.get() == memory.get());
      CHECK_EQUAL(std::count(memory.get() + whole_pages(size), memory.get() + whole_pages(size) + kPage, 0xA5),
                  std::ptrdiff_t(kPage));
    }
  }
}

TEST(direct_means_direct_and_buffered_keeps_the_page_cache) {
  const Folder folder;
  const Bytes bytes = random_bytes(10'000);
  const std::string path = folder.add("file", bytes);
  for (ReadMode mode : kModes) {
    const testing::Context context("%s", name(mode));
    Simulation system;
    Reader reader(mode);
    CHECK(equal(reader.read(path), bytes));
    const bool direct = mode == ReadMode::direct && folder.takes_direct_reads();
    CHECK_EQUAL(system.direct_reads, direct);
    CHECK_EQUAL(system.buffered_reads, !direct);
    CHECK_EQUAL(system.dropped, mode == ReadMode::direct && !direct);
  }
}

TEST(file_systems_that_refuse_direct_reads) {
  const Folder folder;
  const Bytes bytes = random_bytes(10'000);
  const std::string first = folder.add("first", bytes), second = folder.add("second", bytes);
  for (const auto &[at_open, error] :
       {std::pair{true, EINVAL}, {true, EOPNOTSUPP}, {false, EINVAL}, {false, EOPNOTSUPP}}) {
    const testing::Context context("refused %s, error %d", at_open ? "when a file is opened" : "when it is read",
                                   error);
    Simulation system;
    (at_open ? system.direct_open_error : system.direct_read_error) = error;
    Reader reader(ReadMode::direct);
    for (const std::string &path : {first, second, first}) CHECK(equal(reader.read(path), bytes));
    CHECK_EQUAL(system.direct_reads, 0);
    CHECK_EQUAL(system.dropped, 3);
    CHECK_EQUAL(reader.warnings.size(), 1u);
    CHECK(reader.warnings[0].starts_with(first + ": "));
  }
}

TEST(short_and_interrupted_reads) {
  const Folder folder;
  const Bytes bytes = random_bytes(20'001);
  const std::string path = folder.add("file", bytes);
  for (ReadMode mode : kModes) {
    for (size_t longest_read : {4097, 5000, 8192}) {
      const testing::Context context("%s, at most %zu bytes a read", name(mode), longest_read);
      Simulation system;
      system.longest_read = longest_read;
      system.interruptions = 2;
      size_t memory_needed = 0;
      system.before_read = [&](off_t offset, size_t size) {
        memory_needed = std::max(memory_needed, size_t(offset) + size);
      };
      Reader reader(mode);
      CHECK(equal(reader.read(path), bytes));
      CHECK(system.direct_reads + system.buffered_reads >= 3);
      CHECK(memory_needed <= whole_pages(bytes.size()));
      CHECK(reader.warnings.empty() ||
            !folder.takes_direct_reads());  // as after a direct read that does not begin at a page
    }
  }
}

TEST(what_is_wrong_is_said) {
  const Folder folder;
  fs::create_directory(folder.path("folder"));
  fs::create_symlink("nowhere", folder.path("dangling"));
  fs::create_symlink("circle", folder.path("circle"));
  CHECK_EQUAL(mkfifo(folder.path("fifo").c_str(), 0600), 0);
  folder.add("empty", {});
  for (ReadMode mode : kModes) {
    const testing::Context context("%s", name(mode));
    Reader reader(mode);
    const auto check = [&](const std::string &path, const std::string &problem) {
      CHECK_EQUAL(reader.failure(path), path + ": " + problem);
    };
    check(folder.path("missing"), "No such file or directory");
    check(folder.path("dangling"), "No such file or directory");
    check(folder.path("circle"), "Too many levels of symbolic links");
    check(folder.path("empty/file"), "Not a directory");
    check(folder.path("folder"), "is a directory, not a file");
    check(folder.path("fifo"), "is not a regular file");  // without waiting for someone to write to it
    check("/dev/null", "is not a regular file");
    check(folder.path("empty"), "is empty");
    CHECK_EQUAL(reader.arena.reserved(), 0u);
    CHECK(reader.warnings.empty());
  }
}

TEST(files_without_permission) {
  if (geteuid() == 0) return;  // root may read everything
  const Folder folder;
  const std::string path = folder.add("file", random_bytes(10));
  fs::permissions(path, fs::perms::none);
  Reader reader(ReadMode::buffered);
  CHECK_EQUAL(reader.failure(path), path + ": Permission denied");
}

TEST(disks_that_fail) {
  const Folder folder;
  const std::string path = folder.add("file", random_bytes(10));
  for (ReadMode mode : kModes) {
    Simulation system;
    system.read_error = EIO;
    Reader reader(mode);
    CHECK_EQUAL(reader.failure(path), path + ": Input/output error");
    CHECK_EQUAL(reader.arena.used(), 0u);
  }
}

TEST(files_too_large_take_no_memory) {
  const Folder folder;
  const std::string path = folder.add("file", random_bytes(10));
  fs::resize_file(path, kMaxFileSize + 1);
  Reader reader(ReadMode::buffered);
  CHECK_EQUAL(reader.failure(path), path + ": has 4294967297 bytes, more than the 4294967296 allowed");
  CHECK_EQUAL(reader.arena.reserved(), 0u);
}

TEST(files_that_change_their_size) {
  const Folder folder;
  for (ReadMode mode : kModes) {
    for (const auto &[new_size, read_so_far] :
         {std::pair<size_t, off_t>{0, 0}, {9'999, 0}, {10'001, 0}, {90'000, 0}, {9'000, 8'192}}) {
      const testing::Context context("%s, to %zu bytes after %d", name(mode), new_size, int(read_so_far));
      const std::string path = folder.add("file", random_bytes(10'000));
      Simulation system;
      if (read_so_far) system.longest_read = size_t(read_so_far);
      system.before_read = [&, size = new_size, when = read_so_far](off_t offset, size_t) {
        if (offset == when) fs::resize_file(path, size);
      };
      Reader reader(mode);
      CHECK_EQUAL(reader.failure(path), path + ": changed its size while it was read");
      CHECK_EQUAL(reader.arena.used(), 0u);
    }
  }
}

TEST(failures_leave_no_file_open) {
  const Folder folder;
  const std::string path = folder.add("file", random_bytes(10));
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_files();
  for (ReadMode mode : kModes) {
    FileReader reader(mode, [](const std::string &) {});
    bool passed_on = false;
    try {
      reader.read(path, [](size_t) -> Block { throw std::length_error("no memory"); });
    } catch (const std::length_error &) {
      passed_on = true;
    }
    CHECK(passed_on);
    Reader other(mode);
    for (const std::string &bad : {folder.path("missing"), folder.path("")}) CHECK(!other.failure(bad).empty());
    other.read(path);
  }
  CHECK_EQUAL(open_files(), before);
}

// Offsets in an archive are multiples of 512.
TEST(members_of_archives) {
  const Folder folder;
  const Bytes bytes = random_bytes(5'000'000);
  const std::string path = folder.add("archive", bytes), member_name = "member";
  const bool takes_direct = folder.takes_direct_reads();
  for (const ReadMode mode : kModes) {
    for (const size_t alignment : {size_t{512}, kPage}) {
      Simulation system;
      system.direct_alignment = alignment;
      Reader reader(mode);
      Arena arena(0);
      int reads = 0, pieces = 0;
      for (const uint64_t offset : {512, 4096, 12'800, 1'048'576 + 1024}) {
        for (const size_t size : {0, 1, 511, 512, 4096, 10'000, 3'000'001}) {
          const testing::Context context("%s, by %zu bytes, %zu from %zu on", name(mode), alignment, size,
                                         size_t(offset));
          const Block memory = arena.allocate(whole_pages(size) + kPage);
          std::fill_n(memory.get() + whole_pages(size), kPage, 0xA5);
          const FileBytes read = reader.files.read(Member{path, member_name, offset, size}, [&](size_t asked) {
            return Block(memory.get(), FreeBlock{std::make_shared<Lender>(), asked});
          });
          CHECK(equal(read, Bytes(bytes.begin() + ptrdiff_t(offset), bytes.begin() + ptrdiff_t(offset + size))));
          CHECK_EQUAL(std::count(memory.get() + whole_pages(size), memory.get() + whole_pages(size) + kPage, 0xA5),
                      std::ptrdiff_t(kPage));
          reads += size > 0;
          pieces += size > 3'000'000 ? 3 : size > 0;
        }
      }
      const bool direct = mode == ReadMode::direct && takes_direct;
      CHECK_EQUAL(system.buffered_reads, direct ? 0 : reads);
      if (direct) CHECK(alignment == 512 ? system.direct_reads == reads : system.direct_reads > reads);
      CHECK(system.direct_reads <= pieces);
      CHECK(reader.warnings.empty() || !takes_direct);
    }
  }
}

TEST(members_on_file_systems_that_refuse_direct_reads) {
  const Folder folder;
  const Bytes bytes = random_bytes(20'000);
  const std::string path = folder.add("archive", bytes), member_name = "member";
  for (const bool at_open : {true, false}) {
    Simulation system;
    (at_open ? system.direct_open_error : system.direct_read_error) = EINVAL;
    Reader reader(ReadMode::direct);
    for (int i = 0; i < 3; i++) {
      const FileBytes read = reader.files.read(Member{path, member_name, 1536, 5000},
                                               [&](size_t size) { return reader.arena.allocate(size); });
      CHECK(equal(read, Bytes(bytes.begin() + 1536, bytes.begin() + 6536)));
      CHECK_EQUAL(system.dropped_offset, 1536);
      CHECK_EQUAL(system.dropped_size, 5000);
    }
    CHECK_EQUAL(system.direct_reads, 0);
    CHECK_EQUAL(system.dropped, 3);
    CHECK_EQUAL(reader.warnings.size(), 1u);
  }
}

TEST(what_is_wrong_with_members_is_said) {
  const Folder folder;
  const std::string path = folder.add("archive", random_bytes(5000)), missing = folder.path("missing");
  const std::string member_name = "dir/a b.png";
  for (const ReadMode mode : kModes) {
    Simulation system;
    Reader reader(mode);
    size_t asked_for = 0;
    const auto failure = [&](const std::string &archive, uint64_t offset, uint64_t size) {
      try {
        reader.files.read(Member{archive, member_name, offset, size},
                          [&](size_t asked) { return reader.arena.allocate(asked_for = asked); });
      } catch (const std::runtime_error &error) {
        return std::string(error.what());
      }
      return std::string();
    };
    const std::string beyond = "lies beyond the end of the archive, which is no longer what its index says";
    CHECK_EQUAL(failure(path, 4608, 393), path + ": dir/a b.png: " + beyond);
    CHECK_EQUAL(failure(path, 4608, 392), "");
    CHECK_EQUAL(failure(path, 1 << 20, 1), path + ": dir/a b.png: " + beyond);
    CHECK_EQUAL(failure(path, 512, kMaxFileSize), path + ": dir/a b.png: " + beyond);
    CHECK_EQUAL(asked_for, 392u);  // no memory for what is not there
    CHECK_EQUAL(failure(missing, 512, 1), missing + ": dir/a b.png: No such file or directory");
    CHECK_EQUAL(failure(path, 512, kMaxFileSize + 1),
                path + ": dir/a b.png: has 4294967297 bytes, more than the 4294967296 allowed");
    system.read_error = EIO;
    CHECK_EQUAL(failure(path, 512, 1), path + ": dir/a b.png: Input/output error");
    CHECK_EQUAL(reader.arena.used(), 0u);
  }
}

// More of them than one system call takes, some of them with other bytes between.
TEST(parts_of_archives) {
  const Folder folder;
  const Bytes bytes = random_bytes(3'000'000);
  const std::string path = folder.add("archive", bytes);
  Reader reader(ReadMode::buffered);
  Bytes read(bytes.size() + 1, 0xA5);
  std::vector<FilePart> parts;
  Bytes expected;
  for (uint64_t number = 0, offset = 512; offset + 1600 <= bytes.size(); number++) {
    const size_t size = 1 + 37 * number % 1500;
    parts.push_back({offset, std::span(read).subspan(expected.size(), size)});
    expected.insert(expected.end(), bytes.begin() + ptrdiff_t(offset), bytes.begin() + ptrdiff_t(offset + size));
    offset += size + (number % 3 == 0 ? 0 : number % 100 == 1 ? kMaxGap : 512);
  }
  CHECK(parts.size() > 2 * IOV_MAX);
  CHECK(reader.files.read_parts(path, 0, parts));
  CHECK(std::equal(expected.begin(), expected.end(), read.begin()));
  CHECK_EQUAL(std::count(read.begin() + ptrdiff_t(expected.size()), read.end(), 0xA5),
              ptrdiff_t(read.size() - expected.size()));

  CHECK(reader.files.read_parts(path, bytes.size(), parts));
  CHECK(!reader.files.read_parts(path, bytes.size() + 1, parts));
  CHECK(!reader.files.read_parts(folder.path("missing"), 0, parts));
  std::ranges::reverse(parts);  // none lies behind the one before, and now and then there is too much between
  parts.insert(parts.begin(), {0, std::span(read).last(1)});
  std::ranges::fill(read, uint8_t{0});
  CHECK(reader.files.read_parts(path, 0, parts));
  CHECK(std::equal(expected.begin(), expected.end(), read.begin()));
  CHECK_EQUAL(read.back(), bytes[0]);

  parts.push_back({bytes.size() - 9, std::span(read).first(10)});
  CHECK(!reader.files.read_parts(path, 0, parts));
}

TEST(many_threads) {
  const Folder folder;
  std::vector<Bytes> contents;
  for (size_t size : kSizes) contents.push_back(random_bytes(size));
  for (size_t i = 0; i < contents.size(); i++) folder.add(std::to_string(i), contents[i]);
  for (const bool refuse : {false, true}) {
    Simulation system;
    system.direct_open_error = refuse ? EINVAL : 0;
    std::atomic<int> wrong{0}, warnings{0};
    Arena arena(size_t{4} << 20);
    FileReader reader(ReadMode::direct, [&](const std::string &) { warnings++; });
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < 4; thread++) {
        threads.emplace_back([&] {
          for (size_t i = 0; i < 60; i++) {
            const size_t file = i % contents.size();
            const auto allocate = [&](size_t size) { return arena.allocate(size); };
            wrong += !equal(reader.read(folder.path(std::to_string(file)), allocate), contents[file]);
          }
        });
      }
    }
    CHECK_EQUAL(wrong, 0);
    CHECK(refuse ? warnings == 1 : warnings <= 1);
  }
}

TEST(many_threads_find_out_that_an_archive_refuses_direct_reads) {
  const Folder folder;
  const Bytes bytes = random_bytes(200'000);
  const std::string path = folder.add("archive", bytes), member_name = "member";
  Simulation system;
  system.direct_read_error = EINVAL;
  std::barrier all(4);  // are told so at once, first where a sector begins and then where a page does
  system.before_refusal = [&] { all.arrive_and_wait(); };
  std::atomic<int> wrong{0};
  Arena arena(0);
  FileReader reader(ReadMode::direct, [](const std::string &) {});
  {
    std::vector<std::jthread> threads;
    for (uint64_t thread = 0; thread < 4; thread++) {
      threads.emplace_back([&, thread] {
        for (uint64_t i = 0; i < 5; i++) {
          const uint64_t offset = 512 * (1 + thread + 8 * i);
          try {
            const FileBytes read =
                reader.read(Member{path, member_name, offset, 3000}, [&](size_t size) { return arena.allocate(size); });
            wrong += !equal(read, Bytes(bytes.begin() + ptrdiff_t(offset), bytes.begin() + ptrdiff_t(offset + 3000)));
          } catch (const std::runtime_error &) {
            wrong++;
          }
        }
      });
    }
  }
  CHECK_EQUAL(wrong, 0);
}
