// Files wherever they are stored: in file systems and in buckets.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "input/object_store.h"
#include "input/open_file.h"
#include "input/random_access_file.h"

namespace dali_l3::loader {

/** How often requests that fail are sent again. */
struct RetryPolicy {
  int tries = 6;
  /** Before the second try; it doubles with each, up to the longest. What is waited is between half of it and all. */
  std::chrono::milliseconds first_pause{250}, longest_pause{8000};
  std::chrono::milliseconds patience{60'000};  ///< no try begins later than this after the first
};

/** The storage is to blame, for a time, not a file: requests failed until no try was left, the credentials are refused,
 * or Ctrl-C ended them. */
struct StorageError : FileError {
  using FileError::FileError;
};

/** What buckets have been asked for. */
struct StorageCounts {
  int64_t requests = 0;  ///< sent again or not; those that list count once for all of a listing
  int64_t retries = 0;   ///< of these, those that had failed before
  int64_t bytes = 0;     ///< that were asked for, by each of them
};

/**
 * Opens files, by path or URI. Threads may share it.
 *
 * Requests to buckets that fail are sent again, unless there is no use. All errors are FileError, with errno ENOENT
 * where an object is missing, EACCES where it is forbidden and EIO otherwise, or StorageError.
 */
class Storage {
 public:
  /** @param objects if null, URIs are refused
   * @param interrupted if given and set, requests end soon, with a StorageError; it must outlive this object */
  explicit Storage(std::shared_ptr<ObjectStore> objects = nullptr, const std::atomic<bool> *interrupted = nullptr,
                   const RetryPolicy &policy = {});

  /** File systems alone. */
  static const std::shared_ptr<Storage> &local();

  /** @throws std::runtime_error for a URI that cannot be read, whether there is such an object or not */
  void require_readable(const std::string &path) const;

  /** Whether an object is missing for certain. */
  bool is_missing(const std::string &uri) const;

  /** Opens a file to be read here and there. @param size its bytes, if they are known: it is not asked for. */
  std::unique_ptr<RandomAccessFile> open(const std::string &path, uint64_t size = 0) const;

  /** All of a file that is no larger than an image may be. */
  std::string read_text(const std::string &path) const;

  /** @name Of objects, by their URIs @{ */
  uint64_t size(const std::string &uri) const;
  /** Reads a range. Returns how many bytes: fewer only at the object's end. */
  size_t read(const std::string &uri, uint64_t offset, std::span<uint8_t> bytes) const;
  /** See ObjectStore. */
  std::vector<StoredObject> list(const std::string &folder) const;
  /** @} */

  /** Ends requests under way and to come soon, with a StorageError. */
  void cancel() { cancelled_ = true; }

  StorageCounts counts() const;

 private:
  template <typename Operation>
  auto request(const std::string &uri, Operation operation) const;
  void end_if_cancelled(const std::string &uri) const;
  void pause(const std::string &uri, std::chrono::milliseconds length) const;

  const std::shared_ptr<ObjectStore> objects_;
  const std::atomic<bool> *const interrupted_;
  const RetryPolicy policy_;
  std::atomic<bool> cancelled_ = false;
  mutable std::atomic<int64_t> requests_ = 0, retries_ = 0, bytes_ = 0;
};

}  // namespace dali_l3::loader
