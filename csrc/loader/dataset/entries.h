// The samples of a catalogue, in columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dataset/columns.h"
#include "dataset/entry.h"

namespace dali_l3::loader {

/** Columns of somebody else: those of a catalogue's file, in which nothing need be right. */
struct EntryColumns {
  struct Component {
    Strings names;
    std::span<const uint32_t> places;  ///< see Entries::place()
    std::span<const uint64_t> sizes;
    std::span<const uint32_t> blocks;  ///< where members begin, in units of kTarBlock; may be missing
  };

  std::string source;                      ///< the path of the file, for messages
  std::shared_ptr<const void> mapping;     ///< what keeps the columns
  size_t rows = 0;                         ///< of every column that is not missing
  std::vector<Component> components = {};  ///< the image and its companions
  Strings folders = {};
  uint32_t archives = 0;
  std::span<const int> labels = {};  ///< missing: the label of an entry is its number
  std::span<const uint8_t> formats = {};
};

/**
 * A list of entries that takes little memory: beside its name a file takes 12 bytes, 20 with its size, and in an
 * archive 24; a sample 4 more with its label, and 1 with its format. Folders are stored once. An entry that is asked
 * for is put together from this.
 *
 * All entries have as many companions. Columns may be those of a catalogue's file, of which processes share the memory;
 * such entries are constant, but some may be chosen.
 */
class Entries {
 public:
  class Iterator {
   public:
    using difference_type = ptrdiff_t;
    using value_type = Entry;

    Iterator() = default;
    Iterator(const Entries &entries, size_t i) : entries_(&entries), i_(i) {}

    Entry operator*() const { return (*entries_)[i_]; }
    Iterator &operator++() {
      i_++;
      return *this;
    }
    Iterator operator++(int) { return {*entries_, i_++}; }
    bool operator==(const Iterator &) const = default;

   private:
    const Entries *entries_ = nullptr;
    size_t i_ = 0;
  };

  Entries() = default;
  explicit Entries(EntryColumns mapped);

  size_t size() const { return chosen_ ? chosen_->size() : rows_; }
  bool empty() const { return size() == 0; }

  /** @throws std::runtime_error, as all that follow, if a catalogue's file is damaged there: it names that */
  Entry operator[](size_t i) const;
  Entry front() const { return (*this)[0]; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  /** @name Parts of an entry @{ */
  int label(size_t i) const;
  float weight(size_t i) const { return weights_[row(i)]; }
  FileFormat format(size_t i) const;
  File file(size_t i, size_t component) const;  ///< component 0: the image, 1 …: its companions
  uint64_t image_size(size_t i) const { return components_[0].sizes[row(i)]; }  ///< bytes; 0 if nobody asked
  /** Bytes of memory that an entry's files take up, if their sizes are known. */
  uint64_t memory(size_t i) const;
  /** @} */
  size_t companions() const { return components_.size() - 1; }

  void push_back(const Entry &entry);
  /** A file of which no more is known: `folder` is empty or ends with a slash. */
  void push_back(std::string_view folder, std::string_view name, int label);
  /** Adds a companion to the first entry that has not `companion` of them yet, numbered from 1. */
  void push_companion(size_t companion, const File &file);

  void set_label(size_t i, int label) { labels_.set(row(i), label); }
  void set_weight(size_t i, float weight) { weights_.set(row(i), weight); }
  /** Takes over format and sizes of an entry: by threads, of different entries, after prepare(). */
  void set_looked_at(size_t i, const Entry &entry);
  void prepare();
  /** Gives a file another path, relative to the root. */
  void set_path(size_t i, size_t component, const std::string &path);

  /** Leaves the entries that are chosen. */
  void keep(const std::vector<bool> &chosen);
  /** The same entries without those that were left out. */
  Entries compact() const;
  /** Gives back memory that only growing needs. */
  void shrink();

  /** @name Bytes of memory: all, but for what is mapped; and of these those of names @{ */
  size_t held_bytes() const;
  size_t name_bytes() const;
  /** @} */

  /** The columns as they are stored, all of them. Entries must be compact() and outlive this. */
  EntryColumns stored();

  /** A place is a folder's number; or, with this bit, an archive's. */
  static constexpr uint32_t kInArchive = uint32_t{1} << 31;

 private:
  // With this bit a place is a number in folders_, where the whole path stands in the place of a folder.
  static constexpr uint32_t kWholePath = uint32_t{1} << 30;

  struct FileColumns {
    Strings names;
    Column<uint32_t> places;
    Column<uint64_t> sizes;
    Column<uint32_t> blocks;
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  size_t row(size_t i) const { return chosen_ ? (*chosen_)[i] : i; }
  void push_file(FileColumns &columns, const File &file);
  uint32_t folder_number(std::string_view folder);
  [[noreturn]] void fail_damaged(const std::string &problem) const;

  size_t rows_ = 0;
  std::vector<FileColumns> components_ = std::vector<FileColumns>(1);
  Column<int> labels_;
  Column<float> weights_{1};
  Column<uint8_t> formats_;
  bool numbered_ = false;  // the label of an entry is the number of its row
  Strings folders_;
  std::optional<std::vector<uint32_t>> chosen_;  // rows; all if there is none

  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> folder_numbers_;  // empty after shrink()
  std::string source_;                   // the catalogue's file, for messages
  uint32_t archives_ = 0;                // in that file
  std::shared_ptr<const void> mapping_;  // keeps it
};

}  // namespace dali_l3::loader
