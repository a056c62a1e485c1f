// What reads objects in buckets. The engine knows no such thing: an adapter brings it.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "input/failures.h"

namespace dali_l3::loader {

/** An object in a bucket, as a listing tells of it. */
struct StoredObject {
  std::string path;  ///< relative to what was listed
  uint64_t size;
};

/** What fails with it, where a store knows that better than the words tell. */
struct ObjectError : std::runtime_error {
  ObjectError(Failure failure, const std::string &words) : std::runtime_error(words), failure(failure) {}
  Failure failure;
};

/**
 * Objects in buckets, by URIs such as s3://bucket/a/1.png. Threads may share it.
 *
 * Each call tries once. What fails throws ObjectError, or std::exception with the words of the service or its client,
 * which kind_of_failure() understands.
 */
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  /** Why the object of a URI can never be read, such as for its scheme, in words that follow the URI; empty if it may.
   */
  virtual std::string refusal(const std::string &uri) = 0;

  virtual uint64_t size(const std::string &uri) = 0;

  /** Reads a range, of at least one byte. Returns how many bytes: fewer only at the object's end. */
  virtual size_t read(const std::string &uri, uint64_t offset, std::span<uint8_t> bytes) = 0;

  /** The objects in a "folder", and those in the folders in it; deeper ones may be left out. In any order. */
  virtual std::vector<StoredObject> list(const std::string &folder) = 0;
};

}  // namespace dali_l3::loader
