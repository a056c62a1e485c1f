#include "bucket_objects.h"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dali/operators/reader/loader/discover_files.h"
#include "dali/util/file.h"
#include "loader/input/uri.h"

namespace dali_l3 {
namespace {

// Of a range that S3 is asked for to learn from the answer what is wrong. Its client puts the service's words where the
// bytes would go, and loses them if there is too little room; and asked for a size, the service says nothing.
constexpr size_t kRoomForWords = 4096;

// With a size, no request is sent: not before the first read.
std::unique_ptr<dali::FileStream> Open(const std::string &uri, size_t size) {
  return dali::FileStream::Open(uri, {false, false, false}, size);
}

size_t ReadRange(const std::string &uri, uint64_t offset, std::span<uint8_t> bytes) {
  const auto stream = Open(uri, offset + bytes.size());
  stream->SeekRead(static_cast<ptrdiff_t>(offset), SEEK_SET);
  return stream->Read(bytes.data(), bytes.size());
}

// Throws what S3 says of a range; returns if it delivers it.
void AskWhy(const std::string &uri, uint64_t offset) {
  if (loader::scheme_of(uri) != "s3") return;
  std::vector<uint8_t> room(kRoomForWords);
  ReadRange(uri, offset, room);
}

// All of a bucket, which DALI asks S3 for by a prefix that nothing has.
bool IsTopOfS3(const std::string &folder) {
  constexpr size_t kBucket = std::string_view("s3://").size();
  return folder.starts_with("s3://") && folder.find_first_not_of('/', folder.find('/', kBucket)) == std::string::npos;
}

// Why this DALI cannot read a kind of URI; empty if it can.
std::string RefusalOf(const std::string &scheme) {
  try {
    Open(scheme + "://bucket/object", 1);  // one that knows no buckets looks for a file of this name
    return "";
  } catch (const std::exception &error) {
    return "this version of DALI cannot read " + scheme + ":// (" + error.what() + ")";
  }
}

class DaliObjects final : public loader::ObjectStore {
 public:
  std::string refusal(const std::string &uri) override {
    if (const std::string_view refusal = loader::refusal_of(uri); !refusal.empty()) return std::string(refusal);
    if (loader::scheme_of(uri) == "s3") {
      static const std::string s3 = RefusalOf("s3");
      return s3;
    }
    static const std::string gs = RefusalOf("gs");
    return gs;
  }

  uint64_t size(const std::string &uri) override {
    try {
      return dali::FileStream::Open(uri)->Size();
    } catch (const std::exception &) {
      AskWhy(uri, 0);
      throw;
    }
  }

  size_t read(const std::string &uri, uint64_t offset, std::span<uint8_t> bytes) override {
    try {
      return ReadRange(uri, offset, bytes);
    } catch (const std::exception &) {
      if (bytes.size() < kRoomForWords) AskWhy(uri, offset);
      throw;
    }
  }

  std::vector<loader::StoredObject> list(const std::string &folder) override {
    dali::FileDiscoveryOptions options;
    options.label_from_subdir = false;
    std::vector<loader::StoredObject> objects;
    if (IsTopOfS3(folder)) return objects;
    for (dali::FileLabelEntry &entry : dali::discover_files(folder, options))
      objects.push_back({std::move(entry.filename), entry.size.value_or(0)});
    return objects;
  }
};

}  // namespace

std::shared_ptr<loader::ObjectStore> BucketObjects() { return std::make_shared<DaliObjects>(); }

}  // namespace dali_l3
