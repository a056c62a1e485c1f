// CRC-32C: known values, and the fast form against the portable one.
#include "crc32c.h"

#include "images.h"
#include "testing.h"

using namespace l3;

TEST(known_values) {
  uint8_t ascending[32];
  for (uint8_t i = 0; i < 32; i++) ascending[i] = i;
  const Bytes zeros(32, 0), ones(32, 0xFF);
  for (auto *function : {crc32c, crc32c_portable}) {
    CHECK_EQUAL(function("123456789", 9, 0), 0xE3069283u);
    CHECK_EQUAL(function("", 0, 0), 0u);
    CHECK_EQUAL(function(zeros.data(), 32, 0), 0x8A9136AAu);  // these three: RFC 3720, appendix B.4
    CHECK_EQUAL(function(ones.data(), 32, 0), 0x62A8AB43u);
    CHECK_EQUAL(function(ascending, 32, 0), 0x46DD794Eu);
  }
}

TEST(fast_equals_portable) {
  Random random(1);
  const auto check = [&](size_t size) {
    const testing::Context context("%zu bytes", size);
    const Bytes bytes = random.bytes(size);
    const uint32_t before = random.below(2) ? random() : 0;
    CHECK_EQUAL(crc32c(bytes.data(), size, before), crc32c_portable(bytes.data(), size, before));
  };
  for (size_t size = 0; size < 2000; size++) check(size);
  for (size_t size : {4096, 12287, 12288, 12289, 65536, 100003}) check(size);
}

TEST(pieces_and_alignments) {
  Random random(2);
  const Bytes bytes = random.bytes(5000);
  for (uint32_t i = 0; i < 1000; i++) {
    const uint32_t start = random.below(64), end = random.between(start, uint32_t(bytes.size())), middle = random.between(start, end);
    const testing::Context context("bytes %u to %u, split at %u", start, end, middle);
    const uint32_t whole = crc32c(bytes.data() + start, end - start);
    CHECK_EQUAL(crc32c(bytes.data() + middle, end - middle, crc32c(bytes.data() + start, middle - start)), whole);
  }
}
