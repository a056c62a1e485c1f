// Damaged files: the golden ones cut short, with single bits flipped, with bytes changed at random, with forged
// offsets, and with random bytes behind a sound header. Decoding gives an error or pixels, never a crash or an access
// outside the buffers, which a sanitizer sees as these have exactly their sizes; with verification, an error or the
// right pixels. All back ends come to the same verdict, and so does l3_verify, which does not decode.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>

#include "backends.h"
#include "checksums.h"
#include "data_files.h"
#include "format/bytes.h"
#include "testing.h"

using namespace l3;

namespace {

constexpr uint32_t kRandomMutants = 1000;  // of each file

struct Golden {
  std::string name;
  Bytes file;
  Decoded decoded;
  l3_file parsed;  // from `file`
};

const std::vector<Golden> &golden_files() {
  static const std::vector<Golden> files = [] {
    std::vector<Golden> files;
    for (DataFile &file : data_files("golden")) {
      Golden golden{file.name, std::move(file.bytes), {}, {}};
      golden.decoded = decode(golden.file, nullptr, L3_VERIFY);
      CHECK_EQUAL(golden.decoded.message, "");
      files.push_back(std::move(golden));
      l3_open(files.back().file.data(), files.back().file.size(), &files.back().parsed, nullptr);
    }
    return files;
  }();
  return files;
}

// Counts decodings and tells how many there were and how long they took.
class Executions {
 public:
  ~Executions() {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    std::printf("%llu decodings in %.1f s\n", count_, seconds.count());
  }
  Decoded decode(const Bytes &file, const l3_rect *roi, uint32_t options) {
    count_++;
    return l3::decode(file, roi, options);
  }

 private:
  unsigned long long count_ = 0;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

l3_status read_metadata(const l3_file &parsed) {
  size_t cursor = 0, bytes = 0;
  l3_metadata entry;
  l3_status status;
  while (!(status = l3_next_metadata(&parsed, &cursor, &entry, nullptr)) && entry.key) {
    for (size_t i = 0; i < entry.key_size; i++) bytes += uint8_t(entry.key[i]);
    for (size_t i = 0; i < entry.value_size; i++) bytes += static_cast<const uint8_t *>(entry.value)[i];
  }
  CHECK(cursor <= parsed.info.metadata_size);
  volatile size_t read = bytes;  // so that a sanitizer sees the reads
  (void)read;
  return status;
}

// What l3_verify says of a file.
struct Verdict {
  std::string problem;  // empty: none
  bool of_metadata = false;
};

Verdict verify(const Bytes &file) {
  l3_file parsed;
  l3_error error{};
  if (l3_open(file.data(), file.size(), &parsed, &error)) return {error.message};
  const l3_status status = l3_verify(&parsed, &error);
  const l3_status of_metadata = read_metadata(parsed);
  if (of_metadata) CHECK_EQUAL(status, of_metadata);
  return {error.message, of_metadata != L3_OK};
}

// A region inside the image of a file, or nothing where the file cannot be opened.
l3_rect random_region(Random &random, const Bytes &file) {
  l3_info info;
  if (l3_peek(file.data(), file.size(), &info, nullptr)) return {0, 0, 1, 1};
  const uint32_t x = random.below(info.width), y = random.below(info.height);
  return {x, y, random.between(1, info.width - x), random.between(1, info.height - y)};
}

// What must hold of any bytes. `backends`: those that decode it. Returns what l3_verify says of them.
Verdict check_any_bytes(Executions &executions, Random &random, const Bytes &file,
                        const std::vector<const Kernels *> &backends) {
  const l3_rect roi = random_region(random, file);
  const bool with_region = random.below(4) == 0;
  Decoded first;
  for (const Kernels *kernels : backends) {
    const UseBackend use(*kernels);
    const testing::Context context("%s", kernels->name);
    Decoded whole = executions.decode(file, nullptr, 0);
    if (with_region) {
      const Decoded part = executions.decode(file, &roi, 0);
      if (whole.status == L3_OK) CHECK_EQUAL(part.message, "");
    }
    if (kernels == backends.front()) {
      first = std::move(whole);
      continue;
    }
    CHECK_EQUAL(whole.message, first.message);
    CHECK(whole.status != L3_OK || whole.pixels == first.pixels);
  }
  Verdict verdict = verify(file);
  if (first.status != L3_OK) CHECK(!verdict.problem.empty());
  return verdict;
}

// What must hold, besides, of a file that was damaged without setting its checksums right.
void check_verified(Executions &executions, const Golden &golden, const Bytes &damaged, const Verdict &verdict) {
  const Decoded decoded = executions.decode(damaged, nullptr, L3_VERIFY);
  if (!verdict.of_metadata) CHECK_EQUAL(verdict.problem, decoded.message);
  if (golden.parsed.info.has_checksums) CHECK(decoded.status != L3_OK || decoded.pixels == golden.decoded.pixels);
}

std::vector<const Kernels *> one_backend(uint32_t number) {
  const auto &all = runnable_backends();
  return {all[number % all.size()]};
}

// All back ends, or one for files of the prototype, which take longest, and which all decode by the same code.
std::vector<const Kernels *> different_backends(const Golden &golden, uint32_t number) {
  return golden.parsed.info.prototype ? one_backend(number) : runnable_backends();
}

// Bytes before the payload.
uint32_t header_and_tables_size(const Golden &golden) { return uint32_t(golden.parsed.payload - golden.parsed.data); }

void change_random_bytes(Random &random, Bytes *file, uint32_t start) {
  for (uint32_t changes = random.between(1, 8); changes; changes--) {
    uint8_t &byte = (*file)[random.between(start, uint32_t(file->size()) - 1)];
    const uint8_t values[] = {uint8_t(random()), 0, 0xFF, 0x80, uint8_t(byte + 1), uint8_t(byte - 1)};
    byte = values[random.below(std::size(values))];
  }
}

}  // namespace

TEST(truncations) {
  Executions executions;
  for (const Golden &golden : golden_files())
    for (size_t size = 0; size < golden.parsed.info.file_size; size++) {
      const testing::Context context("%s, the first %zu bytes", golden.name.c_str(), size);
      const Bytes cut(golden.file.begin(), golden.file.begin() + ptrdiff_t(size));
      // The start of the prototype's signature is not that of the format's.
      const bool is_unknown = golden.parsed.info.prototype && size > 0 && size < 4;
      CHECK_EQUAL(executions.decode(cut, nullptr, 0).status, is_unknown ? L3_ERROR_SIGNATURE : L3_ERROR_TRUNCATED);
    }
}

TEST(flipped_bits) {
  Executions executions;
  Random random(1);
  for (const Golden &golden : golden_files())
    // Prototype files take longest to decode, and have no checksums: one bit of each byte.
    for (uint32_t bit = 0; bit < 8 * golden.file.size(); bit += golden.parsed.info.prototype ? 7 : 1) {
      const testing::Context context("%s, bit %u", golden.name.c_str(), bit);
      Bytes flipped = golden.file;
      flipped[bit / 8] = uint8_t(flipped[bit / 8] ^ 1u << bit % 8);
      const Verdict verdict = check_any_bytes(executions, random, flipped, one_backend(bit));
      if (bit % 7 == 0)
        check_verified(executions, golden, flipped, verdict);  // one of each byte: checksums are of bytes
    }
}

TEST(flipped_bits_of_headers_behind_right_checksums) {
  Executions executions;
  Random random(2);
  for (const Golden &golden : golden_files())
    for (uint32_t bit = 0; bit < 8 * header_and_tables_size(golden); bit++) {
      const testing::Context context("%s, bit %u", golden.name.c_str(), bit);
      Bytes flipped = golden.file;
      flipped[bit / 8] = uint8_t(flipped[bit / 8] ^ 1u << bit % 8);
      repair_checksums(flipped.data(), flipped.size());
      check_any_bytes(executions, random, flipped, one_backend(bit));
    }
}

TEST(random_changes) {
  Executions executions;
  Random random(3);
  for (const Golden &golden : golden_files())
    for (uint32_t i = 0; i < kRandomMutants; i++) {
      const testing::Context context("%s, mutant %u", golden.name.c_str(), i);
      Bytes changed = golden.file;
      change_random_bytes(random, &changed, i % 2 ? 0 : header_and_tables_size(golden));
      check_verified(executions, golden, changed, verify(changed));
      repair_checksums(changed.data(), changed.size());
      check_any_bytes(executions, random, changed, different_backends(golden, i));
    }
}

TEST(random_bytes_behind_the_header_and_tables) {
  Executions executions;
  Random random(4);
  for (const Golden &golden : golden_files())
    for (uint32_t i = 0; i < kRandomMutants / 4; i++) {
      const testing::Context context("%s, mutant %u", golden.name.c_str(), i);
      Bytes random_payload = golden.file;
      // With the heads of the first tile, half of the times, or no payload would be sound enough to be decoded.
      const uint32_t start = header_and_tables_size(golden) + i % 2 * 24;
      for (uint32_t at = start; at < random_payload.size(); at++) random_payload[at] = uint8_t(random());
      check_verified(executions, golden, random_payload, verify(random_payload));
      repair_checksums(random_payload.data(), random_payload.size());
      check_any_bytes(executions, random, random_payload, different_backends(golden, i));
    }
}

TEST(random_bytes_behind_the_header) {
  Executions executions;
  Random random(5);
  for (const Golden &golden : golden_files())
    for (uint32_t i = 0; i < kRandomMutants / 4; i++) {
      const testing::Context context("%s, mutant %u", golden.name.c_str(), i);
      Bytes bytes(golden.file.begin(), golden.file.begin() + L3_HEADER_SIZE);
      const Bytes rest = random.bytes(golden.file.size() - L3_HEADER_SIZE);
      bytes.insert(bytes.end(), rest.begin(), rest.end());
      if (i % 2) repair_checksums(bytes.data(), bytes.size());
      check_any_bytes(executions, random, bytes, one_backend(i));
    }
}

TEST(forged_offsets) {
  Executions executions;
  Random random(6);
  for (const Golden &golden : golden_files()) {
    if (golden.parsed.info.prototype) continue;  // whose table holds sizes
    const uint32_t offsets = uint32_t(golden.parsed.offsets - golden.parsed.data);
    const uint32_t tiles = golden.parsed.info.tiles_x * golden.parsed.info.tiles_y;
    for (uint32_t i = 0; i < kRandomMutants / 4; i++) {
      const testing::Context context("%s, mutant %u", golden.name.c_str(), i);
      Bytes forged = golden.file;
      uint8_t *const entry = forged.data() + offsets + 4 * random.below(tiles + 1);
      const uint32_t payload = golden.parsed.info.payload_size, right = load<uint32_t>(entry);
      const uint32_t values[] = {random.below(payload + 1),
                                 random.below(payload / 4 + 1) * 4,
                                 payload,
                                 payload + 4,
                                 right + 4,
                                 right - 4,
                                 0xFFFFFFFC,
                                 0x80000000};
      store(entry, values[i % std::size(values)]);
      check_verified(executions, golden, forged, verify(forged));
      repair_checksums(forged.data(), forged.size());
      check_any_bytes(executions, random, forged, runnable_backends());
    }
  }
}
