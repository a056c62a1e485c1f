// Files in buckets: what is asked for, what is asked for again, and what the readers' parts make of it.
#include "input/storage.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "archives/archive_paths.h"
#include "archives/indexing.h"
#include "dataset/catalogue.h"
#include "dataset/catalogue_file.h"
#include "dataset/comparison.h"
#include "dataset/discovery.h"
#include "engine.h"
#include "input/file_reading.h"
#include "input/sample_reader.h"
#include "input/uri.h"
#include "plans/file_plan.h"
#include "tar_files.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;
using namespace std::chrono_literals;
using testing::error_of;

namespace {

const RetryPolicy kQuick{.first_pause = 1ms, .longest_pause = 2ms};

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

struct Range {
  std::string uri;
  uint64_t offset;
  size_t size;
  bool operator==(const Range &) const = default;
};

// A store in memory, which fails as it is told to.
class Store final : public ObjectStore {
 public:
  std::map<std::string, std::string> objects;
  std::deque<std::string> failures;  // of the next requests, one each
  std::string always;                // of all that come after these
  std::optional<Failure> told;       // what failures are said to be
  std::vector<Range> reads;
  int sizes = 0, lists = 0;

  std::string refusal(const std::string &uri) override { return scheme_of(uri) == "s3" ? "" : "not here"; }
  uint64_t size(const std::string &uri) override {
    const std::lock_guard lock(mutex_);
    sizes++;
    fail_as_told();
    return find(uri).size();
  }
  size_t read(const std::string &uri, uint64_t offset, std::span<uint8_t> bytes) override {
    const std::lock_guard lock(mutex_);
    reads.push_back({uri, offset, bytes.size()});
    fail_as_told();
    const std::string &object = find(uri);
    if (offset >= object.size()) throw std::runtime_error("InvalidRange: beyond");
    return object.copy(reinterpret_cast<char *>(bytes.data()), bytes.size(), offset);
  }
  std::vector<StoredObject> list(const std::string &folder) override {
    const std::lock_guard lock(mutex_);
    lists++;
    fail_as_told();
    const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
    std::vector<StoredObject> found;
    for (const auto &[uri, content] : objects)
      if (uri.starts_with(prefix)) found.push_back({uri.substr(prefix.size()), content.size()});
    return found;
  }

 private:
  void fail_as_told() {
    std::string failure = always;
    if (!failures.empty()) {
      failure = failures.front();
      failures.pop_front();
    }
    if (!failure.empty() && told) throw ObjectError(*told, failure);
    if (!failure.empty()) throw std::runtime_error(failure);
  }
  const std::string &find(const std::string &uri) const {
    const auto found = objects.find(uri);
    if (found == objects.end()) throw std::runtime_error("NoSuchKey: none");
    return found->second;
  }

  std::mutex mutex_;
};

std::string numbers(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; i++) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

std::string text_of(const FileBytes &file) { return {file.bytes().begin(), file.bytes().end()}; }

const std::string kUri = "s3://b/x.bin";

struct Buckets {
  std::shared_ptr<Store> store = std::make_shared<Store>();
  std::atomic<bool> interrupted = false;
  std::shared_ptr<Storage> storage = std::make_shared<Storage>(store, &interrupted, kQuick);
  Arena arena{0};

  FileReader reader() {
    return {ReadMode::direct, [](const std::string &) {}, storage};
  }
  FileReader::Allocate allocate = [this](size_t size) { return arena.allocate(size); };
};

}  // namespace

TEST(uris_are_told_from_paths) {
  for (const char *uri : {"s3://bucket/a.png", "gs://b", "file:///a.png", "x+1-2.3://", "S3://"}) CHECK(is_uri(uri));
  for (const char *path : {"", "a.png", "://a", "/s3://a", "a/s3://b", "s3:/a", "s 3://a"}) CHECK(!is_uri(path));
}

TEST(uris_that_cannot_be_read_are_refused) {
  CHECK(has(error_of([] { Storage::local()->require_readable("s3://b/x"); }), "s3://b/x is a URI: only paths"));
  CHECK(has(error_of([] { Storage::local()->open("s3://b/x"); }), "s3://b/x is a URI"));
  Buckets buckets;
  CHECK(has(error_of([&] { buckets.storage->require_readable("gs://b/x"); }), "gs://b/x is a URI: not here"));
  buckets.storage->require_readable("s3://b/x");
  buckets.storage->require_readable("gs/x");
}

TEST(an_object_of_a_known_size_takes_one_request) {
  for (const size_t size : {size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{100'000}}) {
    const testing::Context context("%zu bytes", size);
    Buckets buckets;
    buckets.store->objects[kUri] = numbers(size);
    FileReader reader = buckets.reader();
    CHECK(text_of(reader.read(kUri, buckets.allocate, size)) == numbers(size));
    CHECK_EQUAL(buckets.store->sizes, 0);
    CHECK_EQUAL(buckets.store->reads.size(), 1u);
    CHECK(text_of(reader.read(kUri, buckets.allocate)) == numbers(size));
    CHECK_EQUAL(buckets.store->sizes, 1);
    const StorageCounts counts = buckets.storage->counts();
    CHECK_EQUAL(counts.requests, 3);
    CHECK_EQUAL(counts.retries, 0);
    CHECK_EQUAL(counts.bytes, static_cast<int64_t>(2 * size));
  }
}

TEST(large_objects_come_in_pieces_and_only_what_failed_is_asked_for_again) {
  Buckets buckets;
  const size_t size = (size_t{32} << 20) + 5;
  buckets.store->objects[kUri] = numbers(size);
  buckets.store->failures = {"", "SlowDown: please"};
  FileReader reader = buckets.reader();
  CHECK(text_of(reader.read(kUri, buckets.allocate, size)) == numbers(size));
  const Range first{kUri, 0, size_t{32} << 20}, second{kUri, size_t{32} << 20, 6};
  CHECK((buckets.store->reads == std::vector{first, second, second}));
  CHECK_EQUAL(buckets.storage->counts().retries, 1);
}

TEST(objects_of_another_size_than_listed_are_noticed) {
  for (const size_t now : {size_t{99}, size_t{101}, size_t{0}}) {
    const testing::Context context("%zu bytes", now);
    Buckets buckets;
    buckets.store->objects[kUri] = numbers(now);
    FileReader reader = buckets.reader();
    const std::string error = error_of([&] { reader.read(kUri, buckets.allocate, 100); });
    CHECK(has(error, kUri));
    CHECK(has(error, now == 0 ? "InvalidRange" : "no longer has 100 bytes"));
  }
  Buckets buckets;
  buckets.store->objects[kUri] = "";
  FileReader reader = buckets.reader();
  CHECK_EQUAL(error_of([&] { reader.read(kUri, buckets.allocate); }), kUri + ": is empty");
}

TEST(what_may_pass_is_asked_for_again_and_what_may_not_is_not) {
  const auto requests_with = [](const std::string &failure, int number) {
    Buckets buckets;
    buckets.store->objects[kUri] = "content";
    buckets.store->always = failure;
    FileReader reader = buckets.reader();
    try {
      reader.read(kUri, buckets.allocate, 7);
      testing::fail(__FILE__, __LINE__, "it was read");
    } catch (const FileError &error) {
      CHECK_EQUAL(error.path, kUri);
      CHECK_EQUAL(error.number, number);
      CHECK(has(error.what(), failure));
      CHECK_EQUAL(dynamic_cast<const StorageError *>(&error) != nullptr, buckets.store->reads.size() > 1);
    }
    return buckets.store->reads.size();
  };
  for (const char *failure :
       {"SlowDown: as it says", "InternalError: x", "ServiceUnavailable: x", ": curlCode: 28, Timeout was reached",
        ": curlCode: 7, Could not connect", ": No response body.", "TooManyRequests: Unable to parse ExceptionName",
        "Failed to read GCS object. [UNAVAILABLE] Retry policy exhausted", "[DEADLINE_EXCEEDED]", "never heard of"}) {
    const testing::Context context("%s", failure);
    CHECK_EQUAL(requests_with(failure, EIO), 6u);
  }
  for (const char *failure : {"NoSuchKey: x", "NoSuchBucket: x", "GCS object not found. [NOT_FOUND] Permanent error"})
    CHECK_EQUAL(requests_with(failure, ENOENT), 1u);
  for (const char *failure : {"AccessDenied: x", "SignatureDoesNotMatch: x", "InvalidAccessKeyId: x", "ExpiredToken: x",
                              "[PERMISSION_DENIED] x", "[UNAUTHENTICATED] x"})
    CHECK_EQUAL(requests_with(failure, EACCES), 1u);
  for (const char *failure : {"PermanentRedirect: x", "InvalidRange: x", "InvalidObjectState: in the archive"})
    CHECK_EQUAL(requests_with(failure, EIO), 1u);
}

TEST(what_a_store_knows_of_a_failure_counts_more_than_its_words) {
  for (const auto &[told, words, number, tries] :
       {std::tuple(Failure::missing, "SlowDown", ENOENT, 1u), std::tuple(Failure::forbidden, "SlowDown", EACCES, 1u),
        std::tuple(Failure::locked_out, "SlowDown", EACCES, 1u), std::tuple(Failure::permanent, "SlowDown", EIO, 1u),
        std::tuple(Failure::passing, "NoSuchKey", EIO, 6u)}) {
    Buckets buckets;
    buckets.store->always = words;
    buckets.store->told = told;
    try {
      buckets.storage->read_text(kUri);
      testing::fail(__FILE__, __LINE__, "it was read");
    } catch (const FileError &error) {
      CHECK_EQUAL(error.number, number);
      const bool is_outage = told == Failure::locked_out || told == Failure::passing;
      CHECK_EQUAL(dynamic_cast<const StorageError *>(&error) != nullptr, is_outage);
    }
    CHECK_EQUAL(static_cast<unsigned>(buckets.store->sizes), tries);
  }
}

TEST(failures_that_pass_leave_no_trace_in_what_is_read) {
  Buckets buckets;
  buckets.store->objects[kUri] = numbers(9000);
  buckets.store->failures = {"SlowDown", "SlowDown", "curlCode: 18", "[UNAVAILABLE]", "InternalError"};
  FileReader reader = buckets.reader();
  CHECK(text_of(reader.read(kUri, buckets.allocate, 9000)) == numbers(9000));
  CHECK_EQUAL(buckets.storage->counts().retries, 5);
}

TEST(patience_ends_before_the_tries_do) {
  Buckets buckets;
  buckets.store->always = "SlowDown";
  const RetryPolicy policy{.tries = 1000, .first_pause = 10ms, .longest_pause = 10ms, .patience = 35ms};
  const Storage storage(buckets.store, nullptr, policy);
  CHECK(has(error_of([&] { storage.size(kUri); }), " tries in "));
  CHECK(buckets.store->sizes >= 2 && buckets.store->sizes <= 8);
}

TEST(pauses_end_when_requests_are_cancelled_or_interrupted) {
  for (const bool by_signal : {false, true}) {
    Buckets buckets;
    buckets.store->always = "SlowDown";
    const RetryPolicy policy{.first_pause = 1h, .longest_pause = 1h, .patience = 10h};
    Storage storage(buckets.store, &buckets.interrupted, policy);
    auto asking = std::async(std::launch::async, [&] { return error_of([&] { storage.size(kUri); }); });
    while (storage.counts().requests == 0) std::this_thread::yield();
    if (by_signal)
      buckets.interrupted = true;
    else
      storage.cancel();
    CHECK_EQUAL(asking.get(), kUri + ": its reading was interrupted");
    CHECK_EQUAL(error_of([&] { storage.size(kUri); }), kUri + ": its reading was interrupted");
    CHECK_EQUAL(buckets.store->sizes, 1);
  }
}

TEST(reading_here_and_there_takes_few_requests) {
  Buckets buckets;
  const std::string content = numbers(3'000'000);
  buckets.store->objects[kUri] = content;
  const auto file = buckets.storage->open(kUri);
  CHECK_EQUAL(file->size(), content.size());
  std::string read(content.size(), '\0');
  for (size_t at = 0; at < content.size(); at += 1000)
    CHECK_EQUAL(file->read_at(at, {reinterpret_cast<uint8_t *>(read.data()) + at, 1000}), 1000u);
  CHECK(read == content);
  CHECK(buckets.store->reads.size() <= 12);
  CHECK(buckets.storage->counts().bytes < static_cast<int64_t>(content.size() + content.size() / 100));

  uint8_t bytes[10];
  CHECK_EQUAL(file->read_at(content.size() - 4, bytes), 4u);
  CHECK_EQUAL(file->read_at(content.size(), bytes), 0u);
  CHECK_EQUAL(file->read_at(10 * content.size(), bytes), 0u);
  CHECK(!file->read(content.size() - 4, 5, bytes));
  CHECK(!file->read(UINT64_MAX, 2, bytes));
}

TEST(a_bucket_is_listed_as_a_folder_is) {
  TemporaryFolder folder;
  std::vector<StoredObject> objects;
  // Also: names in whose order '-' comes before '/', upper case, and what belongs to no class.
  for (const char *path : {"b/1.png", "a-b/1.png", "a/2.png", "a/1.png", "a/1.txt", "A/x.PNG", "c.d/1.png", "c/1.png",
                           "c/deeper/1.png", "README.png", "e/none.txt"}) {
    const std::filesystem::path full = folder.path() + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << path;
    objects.push_back({path, 10});
  }
  std::filesystem::create_directories(folder.path() + "/d");
  objects.push_back({"d/", 0});
  for (const bool case_sensitive : {false, true})
    for (const char *folders : {"*", "[ac]*", "none"}) {
      const DiscoveryOptions options{{"*.png"}, {folders}, case_sensitive};
      const Discovery local = discover(folder.path(), options), remote = discover(objects, options);
      CHECK_EQUAL(remote.files.size(), local.files.size());
      for (size_t i = 0; i < local.files.size(); i++) {
        CHECK_EQUAL(remote.files[i].file.path, local.files[i].file.path);
        CHECK_EQUAL(remote.files[i].label, local.files[i].label);
        CHECK_EQUAL(remote.files[i].file.size, 10u);
      }
    }
}

TEST(paths_in_buckets_are_put_together) {
  CHECK_EQUAL(full_path("s3://b/images", "a/1.png"), "s3://b/images/a/1.png");
  CHECK_EQUAL(full_path("s3://b/images/", "../masks/a/1.png"), "s3://b/masks/a/1.png");
  CHECK_EQUAL(full_path("s3://b/images", "a..b/1.png"), "s3://b/images/a..b/1.png");
  CHECK_EQUAL(full_path("s3://b/images", "s3://c/1.png"), "s3://c/1.png");
  CHECK_EQUAL(full_path("s3://b/images", "/local/1.png"), "/local/1.png");
  CHECK_EQUAL(full_path("/local", "s3://c/1.png"), "s3://c/1.png");
}

TEST(paths_of_archives_in_buckets) {
  Buckets buckets;
  for (const char *name : {"t-10.tar", "t-9.tar", "t-9.idx", "deeper/t-1.tar", ".t-0.tar"})
    buckets.store->objects[std::string("s3://b/s/") + name] = "x";
  buckets.store->objects["s3://b/s/list.txt"] = "t-{1..2}.tar\ns3://c/x.tar\n/local.tar\n";
  const auto expand = [&](const std::string &path) {
    std::string joined;
    for (const std::string &found : expand_paths("paths", {path}, *buckets.storage)) joined += found + " ";
    return joined;
  };
  CHECK_EQUAL(expand("s3://b/s/t-*.tar"), "s3://b/s/t-10.tar s3://b/s/t-9.tar ");
  CHECK_EQUAL(expand("s3://b/s/t-{08..10}.tar"), "s3://b/s/t-08.tar s3://b/s/t-09.tar s3://b/s/t-10.tar ");
  CHECK_EQUAL(expand("s3://b/s/list.txt"), "s3://b/s/t-1.tar s3://b/s/t-2.tar s3://c/x.tar /local.tar ");
  CHECK(has(error_of([&] { expand("s3://b/s/x-*.tar"); }), "which nothing in the bucket matches"));
  CHECK(has(error_of([&] { expand("s3://b/*/t.tar"); }), "only what is behind the last slash"));
  CHECK(has(error_of([&] { expand("s3://b/none.txt"); }), "s3://b/none.txt: there is no such object"));
}

TEST(an_outage_is_no_bad_file) {
  Buckets buckets;
  std::vector<std::string> files;
  for (int i = 0; i < 20; i++) {
    files.push_back("s3://b/" + std::to_string(i) + ".png");
    buckets.store->objects[files.back()] = "\x89PNG\r\n\x1a\n" + std::to_string(i);
  }
  CatalogueOptions options;
  options.files = files;
  options.on_error = OnError::skip;
  options.sniff = true;
  options.storage = buckets.storage;
  buckets.store->always = "SlowDown";
  CHECK(has(error_of([&] { list_dataset(options); }), "could not be read, with 6 tries"));

  buckets.store->always = "";
  buckets.store->objects.erase(files[3]);
  Catalogue catalogue = list_dataset(options);
  CHECK_EQUAL(catalogue.entries.size(), 19u);  // that one is bad

  const ShardOptions shards{.batch_size = 4};
  const auto size = static_cast<int64_t>(catalogue.entries.size());
  EngineOptions reading;
  reading.reading.storage = buckets.storage;
  reading.on_error = OnError::skip;
  Engine engine(std::move(catalogue),
                std::make_unique<SampleOrder>(shards, size, std::make_unique<FilePlan>(FilePlanOptions{}, size)),
                reading, [](const std::string &) {});
  buckets.store->always = "SlowDown";
  CHECK(has(error_of([&] {
              for (int batch = 0; batch < 10; batch++) engine.next_batch();
            }),
            "could not be read, with 6 tries"));
}

TEST(indices_of_archives_in_buckets) {
  TemporaryFolder cache;
  setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  Buckets buckets;
  const std::string archive = "s3://b/t.tar";
  buckets.store->objects[archive] =
      tar_files::member("a.png", "one") + tar_files::member("b.png", "two") + tar_files::end();
  const FoundIndex made = find_index(archive, nullptr, *buckets.storage);
  CHECK_EQUAL(made.problem, "");
  CHECK_EQUAL(made.index.samples(), 2u);
  CHECK_EQUAL(std::distance(std::filesystem::directory_iterator(cache.path() + "/dali_l3"), {}), 1);

  // From the cache: its members are looked at, but not all of the archive.
  buckets.store->reads.clear();
  CHECK(find_index(archive, nullptr, *buckets.storage).index == made.index);
  CHECK(buckets.store->reads.size() <= 2);

  // Beside it, which goes first.
  buckets.store->objects["s3://b/t.idx"] = "v1.2 1\npng 512 3 a.png\n";
  CHECK_EQUAL(find_index(archive, nullptr, *buckets.storage).index.samples(), 1u);
  buckets.store->objects["s3://b/t.idx"] = "v1.2 1\npng 1024 3 a.png\n";
  CHECK(has(error_of([&] { find_index(archive, nullptr, *buckets.storage); }), "s3://b/t.idx: does not fit"));
  // Services may forbid a look at what is not there.
  buckets.store->objects.erase("s3://b/t.idx");
  buckets.store->failures = {"", "AccessDenied"};
  CHECK(find_index(archive, nullptr, *buckets.storage).index == made.index);
}

TEST(a_catalogue_of_what_is_in_buckets) {
  TemporaryFolder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const std::string png = "\x89PNG\r\n\x1a\n", path = folder.path() + "/x.l3cat";
  Buckets buckets;
  std::map<std::string, std::string> &objects = buckets.store->objects;
  for (const char *name : {"a/1.png", "a/2.png", "b/3.png"}) {
    objects[std::string("s3://b/images/") + name] = png + name;
    objects[std::string("s3://b/masks/") + name] = png + "mask of " + name;
  }
  for (const char *name : {"x.tar", "y.tar"})
    objects[std::string("s3://b/shards/") + name] = tar_files::member("1.png", png + name) +
                                                    tar_files::member("1.seg.png", png + "mask in " + name) +
                                                    tar_files::end();
  CatalogueOptions files{.file_root = "s3://b/images", .companions = {"../masks/{dir}/{stem}.png"}};
  CatalogueOptions shards{
      .archives = ArchiveOptions{.paths = {"s3://b/shards/x.tar", "s3://b/shards/y.tar"}, .ext = {"png", "seg.png"}}};
  for (CatalogueOptions *options : {&files, &shards}) {
    const testing::Context context("%s", options == &files ? "files" : "shards");
    options->sniff = options->sizes = true;
    options->storage = buckets.storage;
    const Catalogue listed = list_dataset(*options);
    save_catalogue(listed, true, "", path, {}, *buckets.storage);

    const int64_t requests = buckets.storage->counts().requests;
    const Catalogue catalogue = list_dataset({.catalogue = path, .storage = buckets.storage});
    CHECK_EQUAL(buckets.storage->counts().requests, requests);  // nothing is asked for
    CHECK_EQUAL(catalogue.root, listed.root);
    CHECK_EQUAL(catalogue.entries.size(), options == &files ? 3u : 2u);

    SampleReader reader({.storage = buckets.storage}, [](const std::string &) {});
    int64_t reads = 0;
    for (size_t i = 0; i < catalogue.entries.size(); i++) {
      const Entry entry = catalogue.entries[i];
      CHECK_EQUAL(full_name(catalogue, entry.file), full_name(listed, listed.entries.file(i, 0)));
      CHECK_EQUAL(entry.label, listed.entries.label(i));
      const Sample from_catalogue = reader.read(catalogue, entry, false);
      reads += from_catalogue.file_count();
      CHECK(text_of(from_catalogue.image).starts_with(png));
      const Sample from_list = reader.read(listed, listed.entries[i], false);
      CHECK_EQUAL(text_of(from_catalogue.image), text_of(from_list.image));
      CHECK_EQUAL(text_of(from_catalogue.companions.front()), text_of(from_list.companions.front()));
    }
    CHECK_EQUAL(buckets.storage->counts().requests, requests + 2 * reads);  // one for each file
    CHECK(has(error_of([&] { compare_with_files(catalogue, 1, nullptr); }), " is a URI: only paths"));

    const auto differences = [&] { return compare_with_files(catalogue, 3, nullptr, buckets.storage); };
    CHECK(differences().empty());
    const std::map<std::string, std::string> whole = objects;
    const std::string changed = options == &files ? "s3://b/images/a/1.png" : "s3://b/shards/x.tar";
    const std::string companion = options == &files ? "s3://b/masks/a/2.png" : "s3://b/shards/y.tar";
    objects[changed] += "more";
    objects.erase(companion);
    std::string found;
    for (const std::string &line : differences()) found += line + "\n";
    CHECK(has(found, changed + ": has " + std::to_string(objects[changed].size()) + " bytes, and not "));
    CHECK(has(found, companion + ": "));
    objects = whole;
    if (options == &files) {
      objects[changed] = "\xff\xd8\xff" + whole.at(changed).substr(3);  // of the same size
      CHECK_EQUAL(differences().size(), 1u);
      CHECK_EQUAL(differences()[0], changed + ": is of the format JPEG, and not PNG");
    }
    objects = whole;
    buckets.store->always = "SlowDown: later";
    CHECK(has(error_of([&] { differences(); }), "could not be read, with"));  // nothing is said to be missing
    buckets.store->always.clear();
  }

  const Catalogue catalogue = list_dataset({.catalogue = path, .storage = buckets.storage});
  SampleReader reader({.storage = buckets.storage}, [](const std::string &) {});
  objects.erase("s3://b/shards/x.tar");
  CHECK(has(error_of([&] { reader.read(catalogue, catalogue.entries[0], false); }), "unlike in the catalogue " + path));
  CHECK_EQUAL(error_of([] { open_catalogue("s3://b/x.l3cat"); }),
              "s3://b/x.l3cat: is a URI: catalogues are mapped, so copy it to a file system first");
}
