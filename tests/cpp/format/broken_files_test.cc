// The broken files of tests/data: every back end says of each what broken.json says. (batch_test.cc: and so does the
// host of a GPU.)
#include <map>
#include <sstream>

#include "backends.h"
#include "data_files.h"
#include "testing.h"

using namespace l3;

namespace {

// What decoding says, with and without tile checksums, and reading metadata: "ok", or the text of a status.
struct Verdicts {
  std::string decode, verify, metadata;
};

// By the files' names. Each has a line of its own: "name": {"decode": "…", "verify": "…", "metadata": "…"}
std::map<std::string, Verdicts> expectations() {
  std::map<std::string, Verdicts> expectations;
  std::istringstream json(data_text("broken.json"));
  for (std::string line; std::getline(json, line);) {
    std::vector<std::string> parts;  // what stands between quotes has odd numbers
    std::istringstream rest(line);
    for (std::string part; std::getline(rest, part, '"');) parts.push_back(part);
    if (parts.size() < 2) continue;  // a brace
    CHECK_EQUAL(parts.size(), 15u);
    CHECK_EQUAL(parts[3], "decode");
    CHECK_EQUAL(parts[7], "verify");
    CHECK_EQUAL(parts[11], "metadata");
    expectations[parts[1]] = {parts[5], parts[9], parts[13]};
  }
  return expectations;
}

l3_status read_metadata(const Bytes &file) {
  l3_file parsed;
  if (l3_status status = l3_open(file.data(), file.size(), &parsed, nullptr)) return status;
  size_t cursor = 0;
  l3_metadata entry;
  l3_status status;
  do status = l3_next_metadata(&parsed, &cursor, &entry, nullptr);
  while (!status && entry.key);
  return status;
}

std::string text(l3_status status) { return l3_status_text(status); }

}  // namespace

TEST(broken_files) {
  const auto expected = expectations();
  const auto files = data_files("broken");
  CHECK_EQUAL(files.size(), expected.size());  // and each has its own, so none is without a file
  for (const DataFile &file : files) {
    const testing::Context context("%s", file.name.c_str());
    CHECK(expected.count(file.name));
    const Verdicts &verdicts = expected.at(file.name);
    CHECK_EQUAL(text(read_metadata(file.bytes)), verdicts.metadata);
    for (const Kernels *kernels : runnable_backends()) {
      const UseBackend use(*kernels);
      CHECK_EQUAL(text(decode(file.bytes, nullptr, 0).status), verdicts.decode);
      CHECK_EQUAL(text(decode(file.bytes, nullptr, L3_VERIFY).status), verdicts.verify);
    }
  }
}
