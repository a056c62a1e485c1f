// Files that appear when they are whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dali_l3::loader {

/** A file beside its target that is removed unless it is renamed. Its functions throw FileError. */
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string &target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  void write(std::span<const uint8_t> bytes);
  /** Puts it in the place of the target, once it is on the disk. */
  void rename_to(const std::string &target);

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace dali_l3::loader
