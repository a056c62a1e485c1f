// Looks at the files of a dataset.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dataset/catalogue.h"
#include "input/open_files.h"

namespace dali_l3::loader {

/** What to do where companion `c` does not exist: see CatalogueOptions::missing_companions. */
const std::string &if_missing(const CatalogueOptions &options, size_t c);

/** Throws std::runtime_error if what takes the place of missing companions is missing. */
void check_replacements(const CatalogueOptions &options, const std::string &root);

/** Finds out sizes, formats and labels of a catalogue's entries, as far as the options ask for them, and what is wrong
 * with their files, all by many threads. Its functions throw std::runtime_error when the options cancel them. */
class Inspection {
 public:
  /** @param label_files where the labels of the entries are, if they are in archives: the label of an entry is a place
   * in it. The other two must outlive this object. */
  Inspection(const CatalogueOptions &options, Catalogue &catalogue, std::vector<File> label_files);

  /** Gives each entry its label. What is wrong with labels, look_at_all() says. */
  void read_labels();

  /** What is wrong with entries, by their numbers. Reads labels, unless that has been done. */
  std::map<size_t, std::string> look_at_all();

 private:
  // Of an image: its name, which may repeat, and its offset, which hard links have in common.
  using Place = std::pair<std::string, uint64_t>;

  void for_each_entry(const std::function<void(size_t entry)> &look);
  int read_label(const Entry &entry);
  Place place_of(const Entry &entry) const;
  std::string look_at(Entry &entry);
  std::shared_ptr<RandomAccessFile> open_archive(const File &member);
  FileFormat look_at_file(File &file, bool sniffs, bool checks_header);
  void look_at_companion(Entry &entry, size_t c);

  const CatalogueOptions &options_;
  Catalogue &catalogue_;
  std::vector<File> label_files_;  // empty once they have been read
  OpenFiles archives_;
  std::mutex mutex_;
  std::map<Place, std::string> bad_labels_;  // guarded by mutex_ while labels are read
  std::vector<std::pair<size_t, size_t>>
      replaced_;  // companions, by entry; guarded by mutex_ while files are looked at
};

}  // namespace dali_l3::loader
