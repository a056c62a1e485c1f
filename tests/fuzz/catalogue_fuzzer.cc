// Reads whatever libFuzzer comes up with as a catalogue, and every entry of it, as a reader would. The size and the
// checksum in the header are made right after most mutations, or few would get past these.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "l3/format/crc32.h"
#include "loader/dataset/catalogue_file.h"
#include "loader/dataset/fingerprint.h"

using namespace dali_l3::loader;

namespace {

constexpr size_t kHeader = 64, kSection = 32, kMagic = 8, kSections = 12, kFileSize = 16, kChecksum = 60;
constexpr size_t kMostEntries = 10'000;  // a column of zeros may say more

void require(bool condition) {
  if (!condition) abort();
}

void repair(uint8_t *file, size_t size) {
  if (size < kHeader) return;
  std::memcpy(file, "\x89L3C\r\n\x1a\n", kMagic);
  const uint64_t file_size = size;
  std::memcpy(file + kFileSize, &file_size, sizeof file_size);
  uint32_t sections;
  std::memcpy(&sections, file + kSections, sizeof sections);
  if (sections > (size - kHeader) / kSection) return;
  uint32_t crc = l3::crc32_ieee(file, kChecksum);
  crc = l3::crc32_ieee(file + kHeader, sections * kSection, crc);
  std::memcpy(file + kChecksum, &crc, sizeof crc);
}

void use(const CatalogueFile &file) {
  const Catalogue &catalogue = file.catalogue;
  require(catalogue.entries.size() == file.facts.samples);
  require(catalogue.archive_sizes.size() == catalogue.archives.size());
  for (size_t i = 0; i < std::min(catalogue.entries.size(), kMostEntries); i++) {
    try {
      const Entry entry = catalogue.entries[i];
      require(static_cast<int>(entry.companions.size()) == file.facts.companions);
      require(static_cast<size_t>(entry.format) < kFormats);
      require(!full_name(catalogue, entry.file).empty() || catalogue.root.empty());
      catalogue.entries.memory(i);
      if (const auto columns = static_cast<size_t>(file.facts.label_columns); columns > 0)
        require((static_cast<size_t>(entry.label) + 1) * columns <= catalogue.label_values.values().size());
    } catch (const std::runtime_error &) {
    }
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 != 0) repair(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Columns are mapped at the border of a page.
  std::vector<uint64_t> aligned((size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  if (size > 0) std::memcpy(aligned.data(), data, size);
  try {
    use(parse_catalogue("fuzz.l3cat", {reinterpret_cast<const uint8_t *>(aligned.data()), size}, nullptr));
  } catch (const std::runtime_error &) {
  }
  return 0;
}
