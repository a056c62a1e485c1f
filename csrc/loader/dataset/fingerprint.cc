#include "dataset/fingerprint.h"

#include "dataset/checksum.h"

namespace dali_l3::loader {

Settings fingerprint(const Catalogue &catalogue, bool formats, bool sizes) {
  Checksum name, label, format, size;
  const Entries &entries = catalogue.entries;
  const auto columns = static_cast<size_t>(catalogue.label_columns);
  for (size_t i = 0; i < entries.size(); i++) {
    const std::string called = name_of(catalogue.archives, entries.file(i, 0));
    name.add(called.c_str(), called.size() + 1);  // the zero parts it from the next
    const int number = entries.label(i);
    if (columns == 0) {
      label.add(&number, sizeof number);
    } else {  // the numbers themselves: their rows are others where some of the samples are left out
      const auto numbers = catalogue.label_values.values().subspan(static_cast<size_t>(number) * columns, columns);
      label.add(numbers.data(), numbers.size_bytes());
    }
    if (formats) {
      const FileFormat known = entries.format(i);
      format.add(&known, sizeof known);
    }
    if (sizes) {
      const uint64_t bytes = entries.memory(i);
      size.add(&bytes, sizeof bytes);
    }
  }
  Settings settings{{kFiles, std::to_string(entries.size())}, {"names", name.text()}, {"labels", label.text()}};
  if (formats) settings.push_back({"formats", format.text()});
  if (sizes) settings.push_back({"sizes", size.text()});
  return settings;
}

}  // namespace dali_l3::loader
