// Checksums: known values, and the fast forms against the portable ones.
#include "format/crc32.h"

#include "images.h"
#include "testing.h"

using namespace l3;

namespace {

using Crc = uint32_t (*)(const void *, size_t, uint32_t);

struct Polynomial {
  const char *name;
  Crc fast, portable;
};

constexpr Polynomial kPolynomials[] = {{"CRC-32C", crc32c, crc32c_portable},
                                       {"CRC-32", crc32_ieee, crc32_ieee_portable}};

}  // namespace

TEST(known_values_of_crc32c) {
  uint8_t ascending[32];
  for (uint8_t i = 0; i < 32; i++) ascending[i] = i;
  const Bytes zeros(32, 0), ones(32, 0xFF);
  for (const Crc function : {crc32c, crc32c_portable}) {
    CHECK_EQUAL(function("123456789", 9, 0), 0xE3069283u);
    CHECK_EQUAL(function("", 0, 0), 0u);
    CHECK_EQUAL(function(zeros.data(), 32, 0), 0x8A9136AAu);  // these three: RFC 3720, appendix B.4
    CHECK_EQUAL(function(ones.data(), 32, 0), 0x62A8AB43u);
    CHECK_EQUAL(function(ascending, 32, 0), 0x46DD794Eu);
  }
}

TEST(known_values_of_crc32) {
  Bytes bytes(1 << 16);
  uint32_t state = 1;
  for (uint8_t &byte : bytes) byte = uint8_t((state = state * 1664525 + 1013904223) >> 24);
  for (const Crc function : {crc32_ieee, crc32_ieee_portable}) {
    CHECK_EQUAL(function("123456789", 9, 0), 0xCBF43926u);
    CHECK_EQUAL(function("", 0, 0), 0u);
    CHECK_EQUAL(function("IEND", 4, 0), 0xAE426082u);          // the end of every PNG file
    CHECK_EQUAL(function(bytes.data(), 100, 0), 0xAE4320E2u);  // these: zlib.crc32 of Python
    CHECK_EQUAL(function(bytes.data(), 1000, 0), 0x4A2843A1u);
    CHECK_EQUAL(function(bytes.data(), bytes.size(), 0), 0x52C975FAu);
    CHECK_EQUAL(function(bytes.data(), bytes.size(), 0x12345678), 0x4A33BF6Cu);
  }
}

TEST(fast_equals_portable) {
  for (const Polynomial &polynomial : kPolynomials) {
    Random random(1);
    const auto check = [&](size_t size) {
      const testing::Context context("%s of %zu bytes", polynomial.name, size);
      const Bytes bytes = random.bytes(size);
      const uint32_t before = random.below(2) ? random() : 0;
      CHECK_EQUAL(polynomial.fast(bytes.data(), size, before), polynomial.portable(bytes.data(), size, before));
    };
    for (size_t size = 0; size < 2000; size++) check(size);
    for (size_t size : {4096, 12287, 12288, 12289, 65536, 100003}) check(size);
  }
}

TEST(pieces_and_alignments) {
  for (const Polynomial &polynomial : kPolynomials) {
    Random random(2);
    const Bytes bytes = random.bytes(5000);
    for (uint32_t i = 0; i < 1000; i++) {
      const uint32_t start = random.below(64), end = random.between(start, uint32_t(bytes.size())),
                     middle = random.between(start, end);
      const testing::Context context("%s of bytes %u to %u, split at %u", polynomial.name, start, end, middle);
      const uint32_t whole = polynomial.fast(bytes.data() + start, end - start, 0);
      const uint32_t first = polynomial.fast(bytes.data() + start, middle - start, 0);
      CHECK_EQUAL(polynomial.fast(bytes.data() + middle, end - middle, first), whole);
    }
  }
}
