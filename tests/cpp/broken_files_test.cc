// The broken files of tests/data: every back end gives each the status that broken.json says.
#include <map>
#include <sstream>

#include "backends.h"
#include "data_files.h"
#include "testing.h"

using namespace l3;

namespace {

struct Expectation {
  std::string status, reader;  // reader: who must refuse the file: "decode", "verify" or "metadata"
};

// By the files' names. Each has a line of its own: "name": {"status": "…", "reader": "…"}
std::map<std::string, Expectation> expectations() {
  std::map<std::string, Expectation> expectations;
  std::istringstream json(data_text("broken.json"));
  for (std::string line; std::getline(json, line);) {
    std::vector<std::string> parts;  // what stands between quotes has odd numbers
    std::istringstream rest(line);
    for (std::string part; std::getline(rest, part, '"');) parts.push_back(part);
    if (parts.size() < 2) continue;  // a brace
    CHECK_EQUAL(parts.size(), 11u);
    CHECK_EQUAL(parts[3], "status");
    CHECK_EQUAL(parts[7], "reader");
    expectations[parts[1]] = {parts[5], parts[9]};
  }
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
  const auto expected = expectations();
  const auto files = data_files("broken");
  CHECK_EQUAL(files.size(), expected.size());  // and each has its own, so none is without a file
  for (const DataFile &file : files) {
    const testing::Context context("%s", file.name.c_str());
    CHECK(expected.count(file.name));
    const Expectation &expectation = expected.at(file.name);
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
