// Files that stay open for as long as they are read often.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "input/open_file.h"

namespace dali_l3::loader {

/** Opens files and keeps those open that were used last. Threads may share it. */
class OpenFiles {
 public:
  /** So many files at most are kept open by default: a part of what the system lets this process open. */
  static size_t default_limit();

  /** `direct`: past the page cache, as OpenFile. */
  explicit OpenFiles(bool direct, size_t limit = default_limit());

  /** The file at a path, which stays open for as long as anybody uses it. Throws FileError. */
  std::shared_ptr<OpenFile> open(const std::string &path);

 private:
  using ByUse = std::list<std::pair<std::string, std::shared_ptr<OpenFile>>>;  // the one used last comes first

  const bool direct_;
  const size_t limit_;
  std::mutex mutex_;  // guards all that follows
  ByUse by_use_;
  std::unordered_map<std::string_view, ByUse::iterator> by_path_;  // of the strings in by_use_
};

}  // namespace dali_l3::loader
