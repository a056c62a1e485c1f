// The reading engine: what it delivers from real files, what it holds in memory, and what it does about bad files.
#include "engine.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

#include "image_files.h"
#include "l3_files.h"
#include "listed_memory.h"
#include "plans/format_groups.h"
#include "plans/liquid_plan.h"
#include "plans/mix_plan.h"
#include "plans/weighted_plan.h"
#include "tar_files.h"
#include "temporary_folder.h"
#include "testing.h"

using namespace dali_l3::loader;
using namespace image_files;
using testing::error_of;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kSize = 5000;  // bytes of a file: two pages
constexpr uint64_t kMemory = 2 * kPage;

// A dataset of PNG and BMP files with a content of their own, entry i with the label i.
class Dataset {
 public:
  explicit Dataset(int size, bool sizes_are_known = true) {
    catalogue_.root = folder_.path();
    for (int i = 0; i < size; i++) {
      const bool png = i % 3 != 0;
      Entry entry;
      entry.file = {std::to_string(i) + (png ? ".png" : ".bmp"), sizes_are_known ? kSize : 0};
      entry.label = i;
      entry.format = png ? FileFormat::png : FileFormat::bmp;
      catalogue_.entries.push_back(entry);
      write(i, content(i));
    }
  }

  // Of these formats and contents.
  explicit Dataset(const std::vector<std::pair<FileFormat, std::string>> &files) {
    catalogue_.root = folder_.path();
    for (size_t i = 0; i < files.size(); i++) {
      const auto &[format, bytes] = files[i];
      Entry entry;
      entry.file = {std::to_string(i), bytes.size()};
      entry.label = static_cast<int>(i);
      entry.format = format;
      catalogue_.entries.push_back(entry);
      write(static_cast<int>(i), bytes);
    }
  }

  const Catalogue &catalogue() const { return catalogue_; }
  std::string path(int i) const { return catalogue_.root + "/" + catalogue_.entries[i].file.path; }
  void write(int i, const std::string &bytes) const { std::ofstream(path(i), std::ios::binary) << bytes; }

  static std::string content(int i) {
    if (i % 3 != 0) return png(chunk("IDAT", std::string(kSize - png(chunk("IDAT", "")).size(), static_cast<char>(i))));
    std::string bytes = bmp(40, 5, 3, 24);
    bytes.resize(kSize, static_cast<char>(i));
    return bytes;
  }

 private:
  TemporaryFolder folder_;
  Catalogue catalogue_;
};

// An engine with Liquid's plan, and the warnings it gave.
struct Reading {
  Reading(const Dataset &dataset, int batch_size, uint64_t cache_samples, EngineOptions options = {}) {
    options.reading.cache_bytes = cache_samples * kMemory;
    auto first_order = order(dataset, batch_size, cache_samples, 5);
    engine = std::make_unique<Engine>(dataset.catalogue(), std::move(first_order), options,
                                      [this](const std::string &warning) {
                                        std::lock_guard lock(mutex);
                                        warnings.push_back(warning);
                                      });
  }

  static std::unique_ptr<SampleOrder> order(const Dataset &dataset, int batch_size, uint64_t cache_samples,
                                            uint64_t seed) {
    const ShardOptions shards{.stick_to_shard = true, .batch_size = batch_size};
    std::vector<FileFormat> formats;
    for (const Entry &entry : dataset.catalogue().entries) formats.push_back(entry.format);
    const std::vector<uint64_t> bytes(formats.size(), kMemory);
    const LiquidPlanOptions liquid{.shards = shards, .cache_bytes = cache_samples * kMemory, .seed = seed};
    auto plan = std::make_unique<LiquidPlan>(liquid, format_groups(formats, shards, true), listed_memory(bytes));
    return std::make_unique<SampleOrder>(shards, formats.size(), std::move(plan));
  }

  std::vector<int> labels(int batches) {
    std::vector<int> labels;
    for (int i = 0; i < batches; i++)
      for (const auto &sample : engine->next_batch()) labels.push_back(sample.label);
    return labels;
  }

  std::mutex mutex;
  std::vector<std::string> warnings;
  std::unique_ptr<Engine> engine;
};

std::string bytes_of(const Engine::Delivered &sample) {
  const std::span<const uint8_t> bytes = sample.files->image.bytes();
  return {bytes.begin(), bytes.end()};
}

TEST(delivers_every_file_once_an_epoch) {
  const Dataset dataset(30);
  for (const ReadMode mode : {ReadMode::buffered, ReadMode::direct}) {
    Reading reading(dataset, 5, 10, {.reading = {.mode = mode}});
    for (int epoch = 0; epoch < 3; epoch++) {
      std::set<int> seen;
      for (int i = 0; i < 6; i++)
        for (const auto &sample : reading.engine->next_batch()) {
          CHECK(bytes_of(sample) == Dataset::content(sample.label));
          CHECK_EQUAL(sample.name, dataset.catalogue().entries[sample.label].file.path);
          seen.insert(sample.label);
        }
      CHECK_EQUAL(seen.size(), size_t{30});
    }
  }
}

TEST(what_is_kept_needs_no_file_any_more) {
  const Dataset dataset(30);
  Reading reading(dataset, 5, 30);
  reading.labels(6);
  for (int i = 0; i < 30; i++) fs::remove(dataset.path(i));
  std::vector<int> labels = reading.labels(6);
  std::sort(labels.begin(), labels.end());
  for (int i = 0; i < 30; i++) CHECK_EQUAL(labels[i], i);
  const Statistics statistics = reading.engine->statistics();
  CHECK_EQUAL(statistics.epochs[1].files_read, 0);
  CHECK_EQUAL(statistics.epochs[1].bytes_read, 0);
}

TEST(the_statistics_are_those_of_what_was_delivered) {
  const Dataset dataset(30);
  Reading reading(dataset, 5, 10);
  reading.labels(18);
  const Statistics statistics = reading.engine->statistics();
  CHECK_EQUAL(statistics.epochs.size(), size_t{3});
  CHECK_EQUAL(statistics.batches.size(), size_t{18});
  int64_t held = 0;
  for (size_t e = 0; e < 3; e++) {
    const BatchPart &epoch = statistics.epochs[e];
    const FormatCounts &png = epoch.formats[size_t(FileFormat::png)], &bmp = epoch.formats[size_t(FileFormat::bmp)];
    CHECK_EQUAL(epoch.samples, 30);
    CHECK_EQUAL(png.hits + png.misses, 20);
    CHECK_EQUAL(bmp.hits + bmp.misses, 10);
    CHECK_EQUAL(epoch.files_read, png.misses + bmp.misses);
    CHECK_EQUAL(epoch.bytes_read, epoch.files_read * int64_t(kSize));
    CHECK_EQUAL(png.hits + bmp.hits, held);
    CHECK_EQUAL(epoch.current_bytes, 0);
    held = epoch.next_bytes / int64_t(kSize);
    CHECK(held > 0 && held <= 10);
  }
}

TEST(samples_that_come_often_are_read_once_if_they_are_held) {
  const Dataset dataset(12);
  // Twelve draws an epoch of the first two samples, eight of the others; the first four are held.
  WeightedSamples samples{.formats = std::vector<FileFormat>(12, FileFormat::unknown),
                          .cell_of = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                          .cells = {{0, 12}, {0, 8}}};
  const ShardOptions shards{.batch_size = 5};
  const WeightedPlanOptions options{
      .shards = shards, .epoch_size = 20, .cache_bytes = 4 * kMemory, .constant_hits = true};
  auto plan = std::make_unique<WeightedPlan>(options, WeightedDraws(samples, shards, 20),
                                             listed_memory(std::vector<uint64_t>(12, kMemory)));
  Engine engine(dataset.catalogue(), std::make_unique<SampleOrder>(shards, 20, std::move(plan)),
                {.reading = {.cache_bytes = 4 * kMemory}}, [](const std::string &) {});
  std::map<int, int> draws;
  for (int i = 0; i < 20; i++)
    for (const auto &sample : engine.next_batch()) {
      CHECK(bytes_of(sample) == Dataset::content(sample.label));
      draws[sample.label]++;
    }
  CHECK_EQUAL(draws[0] + draws[1], 60);

  const Statistics statistics = engine.statistics();
  CHECK(std::abs(statistics.hit_ratio - (12 + 2 * 0.8) / 20) < 1e-12);
  CHECK_EQUAL(statistics.epochs.size(), size_t{5});
  int64_t hits = 0, read = 0;
  for (const BatchPart &epoch : statistics.epochs) {
    for (const FormatCounts &counts : epoch.formats) hits += counts.hits;
    read += epoch.files_read;
    CHECK(epoch.current_bytes >= 0 && epoch.next_bytes >= 0);
    CHECK(epoch.current_bytes + epoch.next_bytes <= 4 * int64_t(kSize));
  }
  CHECK_EQUAL(hits + read, 100);
  CHECK(hits >= 60 + 2 * 4 - 4 - 2);  // each of the four is read once; the other two come about four times in 5 epochs
  const BatchPart &last = statistics.epochs.back();
  CHECK_EQUAL(last.current_bytes + last.next_bytes, 4 * int64_t(kSize));
  CHECK_EQUAL(statistics.cache_bytes_peak, int64_t(4 * kMemory));
}

TEST(the_statistics_forget_what_is_long_past) {
  const Dataset dataset(1);
  Reading reading(dataset, 1, 1);
  reading.labels(5000);  // as many epochs
  const Statistics statistics = reading.engine->statistics();
  CHECK_EQUAL(statistics.epochs.size(), Statistics::kRemembered);
  CHECK_EQUAL(statistics.epochs.back().epoch, 4999);
  CHECK_EQUAL(statistics.batches.size(), Statistics::kRemembered);
  CHECK_EQUAL(statistics.batches.back().batch, 4999);
}

TEST(seeking_gives_the_same_batches) {
  const Dataset dataset(23);
  Reading straight(dataset, 5, 7);
  const std::vector<int> labels = straight.labels(20);
  for (const int batch : {0, 3, 4, 11, 19}) {
    Reading resumed(dataset, 5, 7);
    resumed.labels(2);
    resumed.engine->seek(batch);
    CHECK_EQUAL(resumed.engine->position(), batch);
    CHECK(resumed.labels(20 - batch) == std::vector<int>(labels.begin() + 5 * batch, labels.end()));
    CHECK_EQUAL(resumed.engine->position(), 20);
  }
}

TEST(another_order_takes_the_place_of_the_first) {
  const Dataset dataset(23);
  Reading reading(dataset, 5, 7), other(dataset, 5, 7);
  const std::vector<int> first = reading.labels(8);
  other.labels(3);
  other.engine->set_order(Reading::order(dataset, 5, 7, 6));
  CHECK_EQUAL(other.engine->position(), 0);
  CHECK(other.labels(8) != first);
  other.engine->set_order(Reading::order(dataset, 5, 7, 5));
  CHECK(other.labels(8) == first);
  CHECK_EQUAL(other.engine->statistics().hit_ratio, reading.engine->statistics().hit_ratio);
  other.engine->set_order(Reading::order(dataset, 5, 23, 5));
  CHECK_EQUAL(other.engine->statistics().hit_ratio, 1.0);
  CHECK_EQUAL(other.engine->statistics().cache_bytes_planned, int64_t(23 * kMemory));
}

TEST(another_order_may_begin_with_any_batch_but_not_with_one_that_cannot_be) {
  const Dataset dataset(23);
  Reading straight(dataset, 5, 7), other(dataset, 5, 7);
  const std::vector<int> labels = straight.labels(20);
  other.engine->set_order(Reading::order(dataset, 5, 7, 6));
  other.engine->set_order(Reading::order(dataset, 5, 7, 5), 11);
  CHECK_EQUAL(other.engine->position(), 11);
  CHECK(other.labels(4) == std::vector<int>(labels.begin() + 55, labels.begin() + 75));
  CHECK_EQUAL(testing::error_of([&] { other.engine->set_order(Reading::order(dataset, 5, 7, 6), INT64_MAX); }),
              "There is no batch 9223372036854775807: a reader delivers up to 2^36 samples and 2^24 epochs");
  CHECK_EQUAL(other.engine->position(), 15);
  CHECK(other.labels(5) == std::vector<int>(labels.begin() + 75, labels.end()));
}

TEST(memory_is_bounded_while_the_consumer_holds_batches) {
  const Dataset dataset(60);
  Reading reading(dataset, 5, 20, {.batches_ahead = 2});
  std::deque<Engine::Batch> in_use;
  for (int i = 0; i < 60; i++) {
    in_use.push_back(reading.engine->next_batch());
    if (in_use.size() > 3) in_use.pop_front();
    const Statistics statistics = reading.engine->statistics();
    CHECK(statistics.cache_bytes_used <= int64_t(20 * kMemory));
    // Three batches in use and two read ahead hold at most what they deliver, in other memory or in the place of what
    // is kept.
    CHECK(statistics.other_bytes_used <= int64_t(6 * 5 * kMemory));
  }
}

TEST(a_bad_file_is_named) {
  const Dataset dataset(12);
  fs::remove(dataset.path(7));
  Reading reading(dataset, 4, 0);
  CHECK(error_of([&] { reading.labels(3); }).find(dataset.path(7)) != std::string::npos);
}

TEST(an_error_is_repeated_and_skips_nothing) {
  const Dataset dataset(12);
  fs::remove(dataset.path(7));
  Reading reading(dataset, 3, 12);
  std::string first;
  int64_t position = -1;
  for (int i = 0; i < 8; i++) {
    try {
      reading.engine->next_batch();
    } catch (const std::runtime_error &error) {
      if (first.empty()) {
        first = error.what();
        position = reading.engine->position();
      }
      CHECK_EQUAL(std::string(error.what()), first);
    }
  }
  CHECK(first.find(dataset.path(7)) == 0);
  CHECK_EQUAL(reading.engine->position(), position);
  CHECK(position < 4);
}

TEST(skip_puts_a_sample_of_the_format_in_the_place_of_a_bad_one) {
  const Dataset dataset(12);
  fs::remove(dataset.path(7));
  dataset.write(8, "");                   // empty
  dataset.write(9, Dataset::content(1));  // no BMP any more
  Reading reading(dataset, 4, 6, {.on_error = OnError::skip});
  for (int epoch = 0; epoch < 2; epoch++) {
    std::map<int, int> times;
    for (const int label : reading.labels(3)) times[label]++;
    CHECK_EQUAL(times.size(), size_t{9});
    CHECK_EQUAL(times[0] + times[3] + times[6], 4);  // the BMP files that are left, one of them twice, for 9
  }
  const Statistics statistics = reading.engine->statistics();
  CHECK_EQUAL(statistics.epochs[0].bad_samples, 3);
  CHECK_EQUAL(statistics.epochs[0].samples, 12);
  CHECK_EQUAL(statistics.epochs[0].files_read, 12);
  CHECK_EQUAL(statistics.epochs[0].bytes_read, int64_t(12 * kSize));
  CHECK(reading.warnings[0].find(dataset.catalogue().root) == 0);
}

TEST(skip_puts_an_l3_file_of_any_profile_in_the_place_of_one_but_no_other_file) {
  const std::string png_file = png(chunk("IDAT", "1"));
  const Dataset dataset({{FileFormat::l3_raw, l3_image_file(L3_PROFILE_RAW)},
                         {FileFormat::png, png_file},
                         {FileFormat::png, png_file},
                         {FileFormat::l3, l3_image_file()}});
  dataset.write(0, "");
  Reading reading(dataset, 4, 0, {.on_error = OnError::skip});
  std::map<int, int> times;
  for (const int label : reading.labels(1)) times[label]++;
  CHECK(times == (std::map<int, int>{{1, 1}, {2, 1}, {3, 2}}));
}

TEST(many_bad_neighbours_are_replaced_by_many) {
  const Dataset dataset(600);
  for (int i = 100; i < 500; i++) fs::remove(dataset.path(i));  // 266 PNG files and 134 BMP files
  Reading reading(dataset, 100, 0, {.on_error = OnError::skip});
  std::map<int, int> times;
  for (const int label : reading.labels(6)) times[label]++;
  CHECK_EQUAL(times.size(), size_t{200});
  // 200 good files stand for 600: evenly, each would three times.
  for (const auto &[label, count] : times) CHECK(count <= 8);
}

TEST(substitute_keeps_the_label) {
  const Dataset dataset(12);
  fs::remove(dataset.path(7));
  TemporaryFolder folder;
  const std::string substitute = folder.path() + "/gray.png";
  std::ofstream(substitute) << "\x89PNG\r\n\x1a\ngray";
  Reading reading(dataset, 12, 0, {.on_error = OnError::substitute, .substitute = substitute});
  int substituted = 0;
  for (const auto &sample : reading.engine->next_batch()) {
    if (sample.name != substitute) continue;
    CHECK_EQUAL(sample.label, 7);
    CHECK(bytes_of(sample) == "\x89PNG\r\n\x1a\ngray");
    substituted++;
  }
  CHECK_EQUAL(substituted, 1);
  CHECK_EQUAL(reading.engine->statistics().epochs[0].files_read, 11);
}

// Where sizes are not known, that is as soon as files have turned out to be small.
TEST(files_that_one_thread_reads_in_one_go_are_bad_each_on_its_own) {
  for (const bool sizes_are_known : {true, false}) {
    const Dataset dataset(12, sizes_are_known);
    TemporaryFolder folder;
    const std::string substitute = folder.path() + "/gray.png";
    std::ofstream(substitute, std::ios::binary) << "\x89PNG\r\n\x1a\ngray";
    Reading reading(dataset, 12, 0,
                    {.read_threads = 1, .batches_ahead = 0, .on_error = OnError::substitute, .substitute = substitute});
    for (int epoch = 0; epoch < 20; epoch++) reading.labels(1);
    for (const int bad : {4, 7}) fs::remove(dataset.path(bad));
    std::set<int> seen;
    for (const auto &sample : reading.engine->next_batch()) {
      const bool is_bad = sample.label == 4 || sample.label == 7;
      CHECK_EQUAL(sample.name == substitute, is_bad);
      if (!is_bad) CHECK(bytes_of(sample) == Dataset::content(sample.label));
      seen.insert(sample.label);
    }
    CHECK_EQUAL(seen.size(), size_t{12});
  }
}

// An archive of small images, with companions between them now and then, and what a reader of images alone has of it.
class Shard {
 public:
  explicit Shard(int size, const std::function<std::string(int)> &content = Shard::content) {
    catalogue_.root = folder_.path();
    catalogue_.archives = {"shard.tar"};
    std::string bytes;
    for (int i = 0; i < size; i++) {
      const std::string image = content(i);
      Entry entry;
      entry.file = {std::to_string(i) + ".png", image.size(), bytes.size() + tar_files::kBlock, 0};
      entry.label = i;
      entry.format = FileFormat::png;
      catalogue_.entries.push_back(entry);
      bytes += tar_files::member(entry.file.path, image);
      if (i % 5 == 0) bytes += tar_files::member(std::to_string(i) + ".txt", std::string(i % 10 == 0 ? 9000 : 10, 'x'));
    }
    write(bytes + tar_files::end());
  }

  const Catalogue &catalogue() const { return catalogue_; }
  Catalogue &catalogue() { return catalogue_; }
  std::string path() const { return catalogue_.root + "/shard.tar"; }
  void write(const std::string &bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
  void overwrite(int i, const std::string &bytes) const {
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(catalogue_.entries[i].file.offset));
    file << bytes;
  }

  static std::string content(int i) {
    return png(chunk("IDAT", std::string(100 + 577 * i % 3000, static_cast<char>(i))));
  }

  std::unique_ptr<Engine> engine(int batch_size, bool shuffled, const EngineOptions &options = {}) const {
    const ShardOptions shards{.stick_to_shard = true, .batch_size = batch_size};
    const std::vector<FileFormat> formats(catalogue_.entries.size(), FileFormat::png);
    auto plan = std::make_unique<MixPlan>(shards, format_groups(formats, shards, true), shuffled, 3);
    return std::make_unique<Engine>(catalogue_, std::make_unique<SampleOrder>(shards, formats.size(), std::move(plan)),
                                    options, [](const std::string &) {});
  }

 private:
  TemporaryFolder folder_;
  Catalogue catalogue_;
};

// Whether the images of a batch lie one right behind the other.
bool is_whole(const Engine::Batch &batch) {
  for (size_t i = 1; i < batch.size(); i++) {
    const auto before = batch[i - 1].files->image.bytes();
    if (before.data() + before.size() != batch[i].files->image.bytes().data()) return false;
  }
  return true;
}

TEST(small_images_of_archives_lie_one_behind_the_other) {
  const Shard shard(60);
  for (const bool shuffled : {false, true}) {
    for (const ReadMode mode : {ReadMode::buffered, ReadMode::direct}) {
      const auto engine = shard.engine(20, shuffled, {.reading = {.mode = mode}});
      std::set<int> seen;
      for (int i = 0; i < 3; i++) {
        const Engine::Batch batch = engine->next_batch();
        for (const auto &sample : batch) {
          CHECK(bytes_of(sample) == Shard::content(sample.label));
          CHECK_EQUAL(sample.name, "shard.tar:" + std::to_string(sample.label) + ".png");
          seen.insert(sample.label);
        }
        CHECK_EQUAL(is_whole(batch), mode == ReadMode::buffered);
      }
      CHECK_EQUAL(seen.size(), size_t{60});
    }
  }
}

// Else one of them, held by somebody, would keep the memory of all.
TEST(large_images_of_archives_have_memory_of_their_own) {
  constexpr size_t kSmall = size_t{64} << 10;
  const size_t around = png(chunk("IDAT", "")).size();
  for (const bool large : {false, true}) {
    const Shard shard(20, [&](int i) {
      const size_t size = kSmall + (i % 2 ? 1000 : -1000) + (large && i == 0 ? 1 : 0);
      return png(chunk("IDAT", std::string(size - around, 'x')));
    });
    CHECK_EQUAL(is_whole(shard.engine(20, false)->next_batch()), !large);
  }
}

// And what is kept, memory of the cache.
TEST(small_images_of_archives_that_liquid_keeps_are_in_the_cache) {
  const Shard shard(40);
  const ShardOptions shards{.stick_to_shard = true, .batch_size = 10};
  const std::vector<FileFormat> formats(40, FileFormat::png);
  const BytesOf memory = [&](uint32_t entry) { return shard.catalogue().entries.memory(entry); };
  const LiquidPlanOptions liquid{.shards = shards, .cache_bytes = 20 * kPage, .seed = 3};
  auto plan = std::make_unique<LiquidPlan>(liquid, format_groups(formats, shards, true), memory);
  Engine engine(shard.catalogue(), std::make_unique<SampleOrder>(shards, formats.size(), std::move(plan)),
                {.reading = {.cache_bytes = liquid.cache_bytes}, .batches_ahead = 0}, [](const std::string &) {});
  for (int i = 0; i < 4; i++)
    for (const auto &sample : engine.next_batch()) CHECK(bytes_of(sample) == Shard::content(sample.label));
  CHECK(engine.statistics().cache_bytes_used > 10 * static_cast<int64_t>(kPage));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take address space of their own
// As much as this process has, and a little more.
class AddressSpaceLimit {
 public:
  AddressSpaceLimit() {
    getrlimit(RLIMIT_AS, &before_);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit{pages * kPage + (rlim_t{64} << 20), before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit &) = delete;
  AddressSpaceLimit &operator=(const AddressSpaceLimit &) = delete;

 private:
  rlimit before_;
};

TEST(memory_that_the_system_refuses_is_an_error_every_time) {
  const Shard shard(40);
  const auto engine = shard.engine(20, false);
  const AddressSpaceLimit limit;
  for (int i = 0; i < 5; i++) CHECK(error_of([&] { engine->next_batch(); }).starts_with("Cannot reserve "));
}
#endif

// What is read in one go is told apart all the same.
TEST(small_images_of_archives_are_bad_each_on_its_own) {
  const Shard shard(40);
  shard.overwrite(7, "GIF89a");
  const auto engine = shard.engine(20, false);
  const std::string error = error_of([&] { engine->next_batch(); });
  CHECK_EQUAL(error, shard.path() + ": 7.png is no longer a PNG file");
  const auto skipping = shard.engine(20, false, {.on_error = OnError::skip});
  const Engine::Batch batch = skipping->next_batch();
  for (int i = 0; i < 20; i++) CHECK_EQUAL(batch[i].label == i, i != 7);
  for (const auto &sample : batch) CHECK(bytes_of(sample) == Shard::content(sample.label));
}

TEST(a_size_that_no_file_can_have_makes_one_sample_bad) {
  Shard shard(40);
  Entry entry = shard.catalogue().entries[7];
  entry.file.size = kMaxFileSize + 1;
  shard.catalogue().entries.set_looked_at(7, entry);
  const auto strict = shard.engine(20, false);
  for (int i = 0; i < 2; i++)  // the second time, too: what has been scheduled is whole
    CHECK_EQUAL(error_of([&] { strict->next_batch(); }),
                shard.path() + ": 7.png: has 4294967297 bytes, more than the 4294967296 allowed");
  const auto skipping = shard.engine(20, false, {.on_error = OnError::skip});
  const Engine::Batch batch = skipping->next_batch();
  CHECK_EQUAL(batch.size(), size_t{20});
  for (int i = 0; i < 20; i++) CHECK_EQUAL(batch[i].label == i, i != 7);
}

TEST(an_archive_that_has_been_cut_off_is_named_for_the_images_that_are_gone) {
  const Shard shard(40);
  fs::resize_file(shard.path(), shard.catalogue().entries[10].file.offset + 50);
  const auto engine = shard.engine(20, false, {.on_error = OnError::skip});
  const Engine::Batch batch = engine->next_batch();
  for (int i = 0; i < 20; i++) CHECK_EQUAL(batch[i].label == i, i < 10);
  const auto strict = shard.engine(20, false);
  CHECK_EQUAL(error_of([&] { strict->next_batch(); }),
              shard.path() + ": 10.png: lies beyond the end of the archive, which is no longer what its index says");
}

TEST(an_archive_with_another_size_than_that_of_the_catalogue_is_named) {
  Shard shard(40);
  shard.catalogue().file = "train.l3cat";
  shard.catalogue().archive_sizes = {fs::file_size(shard.path()) + 1};
  const auto engine = shard.engine(20, false);
  CHECK(error_of([&] { engine->next_batch(); }).starts_with(shard.path() + ": 0.png: has "));
}

TEST(a_substitute_that_is_no_image_is_refused_at_once) {
  const Dataset dataset(3);
  dataset.write(1, "not an image");
  for (const std::string &substitute : {dataset.path(0) + ".missing", dataset.path(1)}) {
    const EngineOptions options{.on_error = OnError::substitute, .substitute = substitute};
    CHECK(error_of([&] { Reading(dataset, 3, 0, options); }).find(substitute) == 0);
  }
}

// ---- Checks ---------------------------------------------------------------------------------------------------------

// Damages a byte among the pixels, which no decoder's header check would find.
void damage(const Dataset &dataset, int i) {
  std::string bytes = Dataset::content(i);
  bytes[kSize / 2] ^= 1;
  dataset.write(i, bytes);
}

const SampleReaderOptions kChecksContent = {.check = Check::content};

TEST(damage_within_a_file_is_found_by_the_check_of_the_content_alone) {
  const Dataset dataset(12);
  damage(dataset, 7);
  for (const Check check : {Check::none, Check::headers}) {
    Reading reading(dataset, 12, 0, {.reading = {.check = check}});
    CHECK_EQUAL(reading.labels(2).size(), size_t{24});
  }
  Reading reading(dataset, 12, 0, {.reading = kChecksContent});
  CHECK_EQUAL(error_of([&] { reading.labels(1); }),
              dataset.path(7) + ": the checksum of the PNG chunk IDAT at byte 33 does not match");
}

TEST(skip_replaces_damaged_files_by_undamaged_ones) {
  const Dataset dataset(12);
  for (const int i : {1, 2, 4, 5}) damage(dataset, i);  // half of the PNG files
  Reading reading(dataset, 4, 12, {.reading = kChecksContent, .on_error = OnError::skip});
  for (int epoch = 0; epoch < 3; epoch++) {
    std::map<int, int> times;
    for (int i = 0; i < 3; i++)
      for (const auto &sample : reading.engine->next_batch()) {
        CHECK(bytes_of(sample) == Dataset::content(sample.label));
        times[sample.label]++;
      }
    CHECK_EQUAL(times[7] + times[8] + times[10] + times[11], 8);
    CHECK_EQUAL(times[0] + times[3] + times[6] + times[9], 4);
  }
  const Statistics statistics = reading.engine->statistics();
  CHECK_EQUAL(statistics.epochs[0].bad_samples, 4);
  CHECK_EQUAL(statistics.epochs[1].bad_samples, 0);  // what took their places is in memory
  CHECK_EQUAL(reading.warnings.size(), size_t{4});
  for (const std::string &warning : reading.warnings) CHECK(warning.find(" does not match. ") != std::string::npos);
}

TEST(substitute_replaces_damaged_files) {
  const Dataset dataset(12);
  damage(dataset, 7);
  TemporaryFolder folder;
  const std::string substitute = folder.path() + "/gray.png";
  std::ofstream(substitute) << Dataset::content(1);
  const EngineOptions options{.reading = kChecksContent, .on_error = OnError::substitute, .substitute = substitute};
  Reading reading(dataset, 12, 0, options);
  const auto batch = reading.engine->next_batch();
  const auto is_substitute = [&](const auto &sample) { return sample.name == substitute && sample.label == 7; };
  CHECK_EQUAL(std::count_if(batch.begin(), batch.end(), is_substitute), 1);

  std::string damaged = Dataset::content(1);
  damaged[100] ^= 1;
  std::ofstream(substitute) << damaged;
  CHECK(error_of([&] { Reading(dataset, 12, 0, options); }).find(substitute + ": the checksum") == 0);
}

TEST(what_is_in_memory_is_not_looked_at_again) {
  const Dataset dataset(12);
  Reading reading(dataset, 12, 12, {.reading = kChecksContent});
  reading.labels(1);
  for (int i = 0; i < 12; i++) damage(dataset, i);
  for (const auto &sample : reading.engine->next_batch()) CHECK(bytes_of(sample) == Dataset::content(sample.label));
}

TEST(companions_that_are_images_are_checked_too) {
  TemporaryFolder folder;
  Catalogue catalogue;
  catalogue.root = folder.path();
  Entry entry;
  entry.file.path = "image.png";
  entry.format = FileFormat::png;
  for (const char *companion : {"mask.png", "text"}) entry.companions.emplace_back().path = companion;
  const auto write = [&](const std::string &name, const std::string &bytes) {
    std::ofstream(folder.path() + "/" + name, std::ios::binary) << bytes;
  };
  const auto problem = [&](Check check) {
    SampleReader reader({.check = check}, [](const std::string &) {});
    return error_of([&] { reader.read(catalogue, entry, false); });
  };
  write("image.png", Dataset::content(1));
  write("mask.png", Dataset::content(2));
  write("text", "BMX bikes");
  CHECK_EQUAL(problem(Check::content), "");
  std::string damaged = Dataset::content(2);
  damaged.back() ^= 1;
  write("mask.png", damaged);
  CHECK_EQUAL(problem(Check::headers), "");
  CHECK(problem(Check::content).find(folder.path() + "/mask.png: the checksum of the PNG chunk IEND") == 0);
  write("mask.png", Dataset::content(2).substr(0, 20));
  CHECK_EQUAL(problem(Check::none), "");
  CHECK_EQUAL(problem(Check::headers), folder.path() + "/mask.png: the file ends within the PNG header");
}

TEST(pointers_of_git_lfs_are_never_delivered) {
  const Dataset dataset(3);
  for (int i = 0; i < 3; i++)
    dataset.write(i, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  const Catalogue &catalogue = dataset.catalogue();
  for (const bool formats_are_known : {true, false}) {
    Entry entry = catalogue.entries[1];
    if (!formats_are_known) entry.format = FileFormat::unknown;
    SampleReader reader({}, [](const std::string &) {});
    const std::string message = error_of([&] { reader.read(catalogue, entry, false); });
    CHECK_EQUAL(message, dataset.path(1) + " is a Git LFS pointer, not an image: run 'git lfs pull'");
  }
}

TEST(a_file_of_another_format_is_named) {
  const Dataset dataset(3);
  dataset.write(1, Dataset::content(0));
  SampleReader reader({}, [](const std::string &) {});
  const std::string message =
      error_of([&] { reader.read(dataset.catalogue(), dataset.catalogue().entries[1], false); });
  CHECK_EQUAL(message, dataset.path(1) + " is no longer a PNG file");
}

TEST(gives_up_when_nothing_can_be_read) {
  const std::pair<int, std::string> datasets[] = {
      {1, ". There is no other sample of its format to take its place"},
      {5, ". The 1 other sample of its format that was tried in its place is bad too"},  // of BMP
      {9, ". The 2 other samples of its format that were tried in its place are bad too"}};
  for (const auto &[size, problem] : datasets) {
    const testing::Context context("%d files", size);
    const Dataset dataset(size);
    for (int i = 0; i < size; i += 3) fs::remove(dataset.path(i));  // all BMP files
    Reading reading(dataset, size, 0, {.on_error = OnError::skip});
    CHECK(error_of([&] { reading.labels(1); }).find(": No such file or directory" + problem) != std::string::npos);
  }
}

TEST(can_be_destroyed_at_any_time) {
  const Dataset dataset(40);
  Engine::Batch survivor;
  for (int batches = 0; batches < 10; batches++) {
    Reading reading(dataset, 4, 12, {.read_threads = 4, .batches_ahead = 5});
    for (int i = 0; i < batches; i++) survivor = reading.engine->next_batch();
  }
  for (const auto &sample : survivor) CHECK(bytes_of(sample) == Dataset::content(sample.label));
}

}  // namespace
