#include "dataset/fingerprint.h"

#include "dataset/checksum.h"

namespace dali_l3::loader {

Settings fingerprint(const Catalogue &catalogue, bool formats, bool sizes) {
  Checksum name, label, format, size;
  for (const Entry &entry : catalogue.entries) {
    const std::string called = name_of(catalogue.archives, entry.file);
    name.add(called.c_str(), called.size() + 1);  // the zero parts it from the next
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
