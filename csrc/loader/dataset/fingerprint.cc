#include "dataset/fingerprint.h"

#include <cstdio>

#include "l3/format/crc32.h"

namespace dali_l3::loader {
namespace {

// The CRC-32 of what is added.
class Checksum {
 public:
  void add(const void *data, size_t size) { crc_ = l3::crc32_ieee(data, size, crc_); }
  std::string text() const {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%08x", crc_);
    return digits;
  }

 private:
  uint32_t crc_ = 0;
};

}  // namespace

Settings fingerprint(const Catalogue &catalogue, bool formats, bool sizes) {
  Checksum name, label, format, size;
  for (const Entry &entry : catalogue.entries) {
    name.add(entry.file.path.c_str(), entry.file.path.size() + 1);  // the zero parts it from the next
    label.add(&entry.label, sizeof entry.label);
    if (formats) format.add(&entry.format, sizeof entry.format);
    const uint64_t bytes = sizes ? memory_of(entry) : 0;
    if (sizes) size.add(&bytes, sizeof bytes);
  }
  label.add(catalogue.label_values.data(), catalogue.label_values.size() * sizeof(float));
  Settings settings{
      {kFiles, std::to_string(catalogue.entries.size())}, {"names", name.text()}, {"labels", label.text()}};
  if (formats) settings.push_back({"formats", format.text()});
  if (sizes) settings.push_back({"sizes", size.text()});
  return settings;
}

}  // namespace dali_l3::loader
