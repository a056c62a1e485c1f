#include "input/storage.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iomanip>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "input/failures.h"
#include "input/file_reading.h"
#include "input/uri.h"

namespace dali_l3::loader {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// No request asks for more, so that one that is cut off costs no more.
constexpr size_t kPiece = size_t{32} << 20;

// What is asked for at once where bytes are read here and there: at first, and, if more are wanted, at most. At a
// hundred megabytes a second, the latter takes less than it takes many a service to answer at all.
constexpr size_t kFirstWindow = 4096, kMaxWindow = size_t{1} << 20;

// How soon a pause ends when the requests are cancelled.
constexpr milliseconds kNap{50};

// So that threads that failed together do not come back together.
milliseconds shortened_by_chance(milliseconds length) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return milliseconds(std::uniform_int_distribution<int64_t>(length.count() / 2, length.count())(generator));
}

Failure kind_of(const std::exception &error, const std::string &words) {
  const auto *const told = dynamic_cast<const ObjectError *>(&error);
  return told ? told->failure : kind_of_failure(words);
}

// On one line.
std::string words_of(const std::exception &error) {
  std::string words = error.what();
  std::ranges::replace(words, '\n', ' ');
  return words;
}

std::string seconds_since(Clock::time_point start) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << std::chrono::duration<double>(Clock::now() - start).count() << " s";
  return text.str();
}

[[noreturn]] void fail_for_good(const std::string &uri, Failure failure, const std::string &words) {
  const auto refusal = [&] { return "may not be read with these credentials, or with none (" + words + ")"; };
  switch (failure) {
    case Failure::missing: fail_file(uri, "there is no such object (" + words + ")", ENOENT);
    case Failure::forbidden: fail_file(uri, refusal(), EACCES);
    case Failure::locked_out: throw StorageError(uri, refusal(), EACCES);
    default: fail_file(uri, "cannot be read (" + words + ")", EIO);
  }
}

// An object, read in windows that grow for as long as more is wanted.
class ObjectFile final : public RandomAccessFile {
 public:
  ObjectFile(const Storage &storage, std::string uri, uint64_t size)
      : storage_(storage), uri_(std::move(uri)), size_(size > 0 ? size : storage.size(uri_)) {}

  uint64_t size() const override {
    if (size_ == 0) fail_file(uri_, "is empty");
    return size_;
  }

  bool read(uint64_t offset, size_t size, uint8_t *data) override {
    return offset <= size_ && size <= size_ - offset && storage_.read(uri_, offset, {data, size}) == size;
  }

  size_t read_at(uint64_t offset, std::span<uint8_t> bytes) const override {
    const std::lock_guard lock(mutex_);
    size_t done = 0;
    while (done < bytes.size() && offset + done < size_) {
      const uint64_t at = offset + done;
      if (at < window_at_ || at >= window_at_ + window_.size()) {
        fetch(at, bytes.size() - done);
        if (window_.empty()) break;
      }
      const auto from = std::span(window_).subspan(at - window_at_);
      const size_t count = std::min(from.size(), bytes.size() - done);
      std::memcpy(bytes.data() + done, from.data(), count);
      done += count;
    }
    return done;
  }

 private:
  void fetch(uint64_t at, size_t wanted) const {
    const uint64_t length = std::min<uint64_t>(std::max(wanted, next_window_), size_ - at);
    window_.resize(length);
    window_.resize(storage_.read(uri_, at, window_));
    window_at_ = at;
    next_window_ = std::min(2 * next_window_, kMaxWindow);
  }

  const Storage &storage_;
  const std::string uri_;
  const uint64_t size_;
  mutable std::mutex mutex_;  // guards all that follows
  mutable std::vector<uint8_t> window_;
  mutable uint64_t window_at_ = 0;
  mutable size_t next_window_ = kFirstWindow;
};

}  // namespace

Storage::Storage(std::shared_ptr<ObjectStore> objects, const std::atomic<bool> *interrupted, const RetryPolicy &policy)
    : objects_(std::move(objects)), interrupted_(interrupted), policy_(policy) {}

const std::shared_ptr<Storage> &Storage::local() {
  static const auto storage = std::make_shared<Storage>();
  return storage;
}

void Storage::require_readable(const std::string &path) const {
  if (!is_uri(path)) return;
  const std::string refusal =
      objects_ ? objects_->refusal(path) : "only paths of files in local or mounted file systems can be read here";
  if (!refusal.empty()) throw std::runtime_error(path + " is a URI: " + refusal);
}

// Calls `operation` until it goes well or there is no use in trying again.
template <typename Operation>
auto Storage::request(const std::string &uri, Operation operation) const {
  require_readable(uri);
  const auto start = Clock::now();
  milliseconds next_pause = policy_.first_pause;
  for (int tries = 1;; tries++) {
    end_if_cancelled(uri);
    requests_++;
    if (tries > 1) retries_++;
    try {
      return operation();
    } catch (const std::exception &error) {
      const std::string words = words_of(error);
      if (const Failure failure = kind_of(error, words); failure != Failure::passing)
        fail_for_good(uri, failure, words);
      if (tries >= policy_.tries || Clock::now() - start + next_pause > policy_.patience)
        throw StorageError(uri,
                           "could not be read, with " + std::to_string(tries) + (tries == 1 ? " try" : " tries") +
                               " in " + seconds_since(start) +
                               ". Is the service within reach, the endpoint right, and are there credentials? (" +
                               words + ")",
                           EIO);
    }
    pause(uri, shortened_by_chance(next_pause));
    next_pause = std::min(2 * next_pause, policy_.longest_pause);
  }
}

bool Storage::is_missing(const std::string &uri) const {
  try {
    size(uri);
    return false;
  } catch (const FileError &error) {
    if (error.number == ENOENT) return true;
    throw;
  }
}

std::unique_ptr<RandomAccessFile> Storage::open(const std::string &path, uint64_t size) const {
  if (is_uri(path)) return std::make_unique<ObjectFile>(*this, path, size);
  return std::make_unique<OpenFile>(path);
}

std::string Storage::read_text(const std::string &path) const {
  const auto file = open(path);
  check_size(path, file->size());
  std::string text(file->size(), '\0');
  text.resize(file->read_at(0, {reinterpret_cast<uint8_t *>(text.data()), text.size()}));
  return text;
}

uint64_t Storage::size(const std::string &uri) const {
  return request(uri, [&] { return objects_->size(uri); });
}

size_t Storage::read(const std::string &uri, uint64_t offset, std::span<uint8_t> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const std::span<uint8_t> piece = bytes.subspan(done, std::min(kPiece, bytes.size() - done));
    const size_t count = request(uri, [&] {
      bytes_ += static_cast<int64_t>(piece.size());
      return objects_->read(uri, offset + done, piece);
    });
    bytes_ -= static_cast<int64_t>(piece.size() - count);
    done += count;
    if (count < piece.size()) break;
  }
  return done;
}

std::vector<StoredObject> Storage::list(const std::string &folder) const {
  return request(folder, [&] { return objects_->list(folder); });
}

StorageCounts Storage::counts() const { return {requests_, retries_, bytes_}; }

void Storage::end_if_cancelled(const std::string &uri) const {
  if (cancelled_ || (interrupted_ && *interrupted_)) throw StorageError(uri, "its reading was interrupted", EINTR);
}

void Storage::pause(const std::string &uri, milliseconds length) const {
  for (const auto end = Clock::now() + length; Clock::now() < end;) {
    end_if_cancelled(uri);
    std::this_thread::sleep_for(std::min<Clock::duration>(kNap, end - Clock::now()));
  }
}

}  // namespace dali_l3::loader
