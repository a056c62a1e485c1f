// Checking files without decoding them: every bit that a checksum covers, and the same verdict as the decoder's.
// (mutation_test.cc has more of the latter.)
#include <map>

#include "backends.h"
#include "checksums.h"
#include "data_files.h"
#include "format/bytes.h"
#include "testing.h"

using namespace l3;

namespace {

struct Verdict {
  l3_status status;
  std::string message;
};

Verdict verify(const Bytes &file) {
  l3_file parsed;
  l3_error error{};
  l3_status status = l3_open(file.data(), file.size(), &parsed, &error);
  if (!status) status = l3_verify(&parsed, &error);
  CHECK_EQUAL(error.status, status);
  CHECK_EQUAL(error.message[0] != 0, status != L3_OK);
  return {status, error.message};
}

// A file with something of all that a file can hold: several tiles, cut ones among them, and metadata.
Bytes some_file(l3_profile profile, uint32_t bits, bool checksums = true) {
  Random random(1);
  const l3_metadata metadata[] = {{"icc", 3, "a colour profile", 16}, {"xmp", 3, "", 0}};
  l3_encode_options options = encode_options(profile, 2, checksums);
  options.metadata = metadata;
  options.metadata_count = 2;
  return encode(make_image(random, 70, 66, 2, bits, Kind::kSlope), options);
}

}  // namespace

TEST(whole_files_pass) {
  for (const DataFile &file : data_files("golden")) {
    const testing::Context context("%s", file.name.c_str());
    CHECK_EQUAL(verify(file.bytes).message, "");
  }
}

TEST(every_bit_that_a_checksum_covers) {
  for (const l3_profile profile : {L3_PROFILE_RAW, L3_PROFILE_PAPER, L3_PROFILE_FAST})
    for (const uint32_t bits : {8u, 16u}) {
      const Bytes file = some_file(profile, bits);
      CHECK_EQUAL(verify(file).message, "");
      constexpr uint32_t kTrailer = 16;  // which decoders ignore
      for (uint32_t bit = 0; bit < 8 * file.size(); bit++) {
        const testing::Context context("profile %d, %u bits, bit %u of %zu bytes", int(profile), bits, bit,
                                       file.size());
        Bytes flipped = file;
        flipped[bit / 8] = uint8_t(flipped[bit / 8] ^ 1u << bit % 8);
        CHECK_EQUAL(verify(flipped).status != L3_OK, bit / 8 < file.size() - kTrailer);
      }
    }
}

TEST(every_truncation) {
  const Bytes file = some_file(L3_PROFILE_FAST, 8);
  for (size_t size = 0; size < file.size(); size++)
    CHECK_EQUAL(verify(Bytes(file.begin(), file.begin() + ptrdiff_t(size))).status, L3_ERROR_TRUNCATED);
}

TEST(the_part_that_is_damaged_is_named) {
  const Bytes file = some_file(L3_PROFILE_FAST, 8);
  l3_file parsed;
  CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
  const auto message = [&](const uint8_t *at) {
    Bytes damaged = file;
    damaged[size_t(at - parsed.data)] ^= 1;
    return verify(damaged).message;
  };
  CHECK_EQUAL(message(parsed.data + 12), "the header's checksum does not match");
  CHECK_EQUAL(message(parsed.offsets + 4), "the tables' checksum does not match");
  CHECK_EQUAL(message(parsed.checksums), "the tables' checksum does not match");
  CHECK_EQUAL(message(parsed.metadata), "the metadata's checksum does not match");
  CHECK_EQUAL(message(parsed.payload), "tile 0 (row 0, column 0): the checksum does not match");
  CHECK_EQUAL(message(parsed.payload + parsed.info.payload_size - 1),
              "tile 3 (row 1, column 1): the checksum does not match");
}

// Files without checksums, and forged ones whose checksums are right, are judged by their structure alone.
TEST(the_verdict_is_that_of_the_decoder) {
  Random random(2);
  std::map<std::string, uint32_t> problems;
  for (const l3_profile profile : {L3_PROFILE_RAW, L3_PROFILE_PAPER, L3_PROFILE_FAST})
    for (const uint32_t bits : {8u, 16u})
      for (const bool checksums : {false, true}) {
        const Bytes file = some_file(profile, bits, checksums);
        l3_file parsed;
        CHECK_EQUAL(l3_open(file.data(), file.size(), &parsed, nullptr), L3_OK);
        for (uint32_t i = 0; i < 400; i++) {
          const testing::Context context("profile %d, %u bits, checksums %d, mutant %u", int(profile), bits, checksums,
                                         i);
          Bytes damaged = file;
          const uint32_t payload = uint32_t(parsed.payload - file.data());
          damaged[payload + random.below(parsed.info.payload_size)] = uint8_t(random());
          if (i % 4) repair_checksums(damaged.data(), damaged.size());
          const std::string message = verify(damaged).message;
          CHECK_EQUAL(message, decode(damaged, nullptr, L3_VERIFY).message);
          problems[message.substr(message.find(": ") + 1)]++;  // without the tile
        }
      }
  for (const char *problem :
       {"", " the checksum does not match", " a body that is not consumed exactly", " a row wider than the samples"})
    CHECK(problems[problem] > 5);
}

static l3_status metadata_status(const Bytes &file) {
  l3_file parsed;
  if (l3_status status = l3_open(file.data(), file.size(), &parsed, nullptr)) return status;
  size_t cursor = 0;
  l3_metadata entry;
  return l3_next_metadata(&parsed, &cursor, &entry, nullptr);  // the first call judges the whole area
}

TEST(broken_files_are_refused_as_the_decoder_refuses_them) {
  uint32_t refused = 0;
  for (const DataFile &file : data_files("broken")) {
    const testing::Context context("%s", file.name.c_str());
    const Verdict verdict = verify(file.bytes);
    const Decoded decoded = decode(file.bytes, nullptr, L3_VERIFY);
    if (decoded.status != L3_OK)
      CHECK_EQUAL(verdict.message, decoded.message);
    else
      CHECK_EQUAL(verdict.status, metadata_status(file.bytes));
    refused += verdict.status != L3_OK;
  }
  CHECK(refused > 50);
}
