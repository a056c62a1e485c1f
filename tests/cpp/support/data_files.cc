#include "data_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "testing.h"

namespace l3 {
namespace {

const std::filesystem::path kData = L3_TEST_DATA;

std::string read(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) testing::fail(__FILE__, __LINE__, "cannot read " + path.string());
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

std::vector<DataFile> data_files(const std::string &folder) {
  std::vector<DataFile> files;
  for (const auto &entry : std::filesystem::directory_iterator(kData / folder)) {
    const std::string bytes = read(entry.path());
    files.push_back({entry.path().filename(), Bytes(bytes.begin(), bytes.end())});
  }
  std::sort(files.begin(), files.end(), [](const DataFile &a, const DataFile &b) { return a.name < b.name; });
  return files;
}

std::string data_text(const std::string &name) { return read(kData / name); }

}  // namespace l3
