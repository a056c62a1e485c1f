#include "engine.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "dataset/counted.h"
#include "input/open_file.h"

namespace dali_l3::loader {
namespace {

// Entries that are tried in place of a bad one before giving up.
constexpr int kMaxTries = 100;

// Files that are read in one go take up less than this: at 1 GB/s, a quarter of a millisecond.
constexpr int64_t kReadingBytes = int64_t{256} << 10;

// In runs images are read that are smaller than this on average: the larger they are, the less that saves, and an image
// that is in use holds the memory of its batch.
constexpr size_t kRunImageBytes = size_t{64} << 10;

// Samples whose average size, about, stands for sizes that nobody has asked for.
constexpr int64_t kRecent = 16;

// A step that, taken again and again modulo `size`, visits every place once, each far from those before: bad files are
// often neighbours.
size_t far_step(size_t size) {
  constexpr double kGoldenRatio = 0.618034;
  size_t step = std::max<size_t>(1, static_cast<size_t>(kGoldenRatio * static_cast<double>(size)));
  while (std::gcd(step, size) != 1) step++;
  return step;
}

// Whether decoders that take one take the other, too.
bool can_replace(FileFormat other, FileFormat bad) { return other == bad || (is_l3(other) && is_l3(bad)); }

}  // namespace

Engine::Engine(Catalogue catalogue, std::unique_ptr<SampleOrder> order, const EngineOptions &options,
               std::function<void(const std::string &)> warn)
    : catalogue_(std::move(catalogue)),
      options_(options),
      warn_(std::move(warn)),
      reader_(options.reading, warn_),
      reads_runs_(reader_.reads_runs(catalogue_)),
      usual_bytes_(kReadingBytes),
      pool_(options.read_threads) {
  held_.max_load_factor(2);  // less memory for each file, at hardly any time
  set_order(std::move(order));
  warn_of_unused_cache();
  if (options.on_error != OnError::substitute) return;
  options.reading.storage->require_readable(options.substitute);
  Entry entry;
  entry.file.path = options.substitute;
  substitute_ = std::make_shared<Sample>(reader_.read({}, entry, false));
  if (sniff(substitute_->image.bytes()) == FileFormat::unknown)
    fail_file(options.substitute, "of no known image format");
}

Engine::~Engine() { options_.reading.storage->cancel(); }

void Engine::set_order(std::unique_ptr<SampleOrder> order, int64_t batch) {
  if (batch != 0) order->seek(batch);
  order_ = std::move(order);
  start_at(batch);
  std::lock_guard lock(mutex_);
  statistics_.hit_ratio = order_->plan().hit_ratio();
  statistics_.cache_bytes_planned = static_cast<int64_t>(order_->plan().peak_bytes());
}

void Engine::warn_of_unused_cache() const {
  const uint64_t limit = options_.reading.cache_bytes, needed = order_->plan().peak_bytes();
  if (limit <= needed || order_->plan().hit_ratio() < 1) return;
  warn_("cache_size is " + std::to_string(limit) + " bytes, but the files of this shard take " +
        std::to_string(needed) + ": the rest is of no use to it");
}

void Engine::seek(int64_t batch) {
  order_->seek(batch);
  start_at(batch);
}

// Forgets all that has been scheduled and held, and begins with a batch.
void Engine::start_at(int64_t batch) {
  scheduled_.clear();
  reading_.reset();
  last_scheduled_.reset();
  held_.clear();
  current_bytes_ = next_bytes_ = 0;
  position_ = batch;
  is_torn_ = false;
  std::lock_guard lock(mutex_);
  statistics_.rest_batches = std::max<int64_t>(0, order_->rest_batches() - batch);
}

Engine::Batch Engine::next_batch() {
  if (is_torn_) seek(position_);
  is_torn_ = true;
  while (int64_t(scheduled_.size()) <= options_.batches_ahead) schedule_batch();
  is_torn_ = false;

  Batch batch;
  std::vector<BatchPart> parts;
  for (const Place &place : scheduled_.front()) {
    if (parts.empty() || parts.back().epoch != place.plan.epoch)
      parts.push_back({.batch = position_, .epoch = place.plan.epoch});
    if (!place.load->finished) finish(place, parts.back());
    batch.push_back(deliver(place.load));
  }

  is_torn_ = true;
  count(batch, parts);
  scheduled_.pop_front();
  position_++;
  is_torn_ = false;
  return batch;
}

void Engine::schedule_batch() {
  order_->next_batch(plan_);
  std::vector<Place> &places = scheduled_.emplace_back();
  places.reserve(plan_.size());
  const size_t ahead = plan_.size() * static_cast<size_t>(options_.batches_ahead + 1);
  loads_at_once_ = std::max<size_t>(1, ahead / (2 * static_cast<size_t>(options_.read_threads)));  // work for all
  std::vector<Block> images = memory_for_runs();
  for (size_t i = 0; i < plan_.size(); i++)
    places.push_back(schedule(plan_[i], images.empty() ? nullptr : std::move(images[i])));
  start_reading();
}

// For every image of the batch, if all are to be read from disk, in runs, and none is kept; else nothing.
std::vector<Block> Engine::memory_for_runs() {
  if (!reads_runs_) return {};
  std::vector<size_t> sizes;
  sizes.reserve(plan_.size());
  size_t room = kRunImageBytes * plan_.size();
  for (const PlannedSample &planned : plan_) {
    const uint64_t size = catalogue_.entries.image_size(planned.entry);
    if (planned.padding || planned.hit || planned.keep || size == 0 || size > room) return {};
    room -= size;
    sizes.push_back(size);
  }
  try {
    return reader_.allocate(sizes);
  } catch (const std::exception &) {
    return {};  // read one by one, they say what is wrong
  }
}

Engine::Place Engine::schedule(const PlannedSample &planned, Block image) {
  Place place{nullptr, planned, false};
  if (planned.padding) {
    place.in_memory = true;
    place.load = last_scheduled_;  // null after seek(), if the sample before this one has not been scheduled
  } else if (planned.hit) {
    if (const auto held = held_.find(planned.entry); held != held_.end()) {
      place.in_memory = true;
      place.load = *held;
      held_.erase(held);
    }
  }
  if (!place.load) add_to_reading(place, std::move(image));
  if (planned.keep) held_.insert(place.load);
  last_scheduled_ = place.load;
  return place;
}

void Engine::add_to_reading(Place &place, Block image) {
  place.load = std::make_shared<Load>();
  place.load->entry = place.plan.entry;
  if (!reading_) reading_ = std::make_shared<Reading>();
  place.reading = reading_;
  place.number = reading_->loads.size();
  reading_->loads.push_back(place.load);
  reading_->kept.push_back(place.plan.keep);
  if (image) {
    reading_->entries.push_back(place.plan.entry);
    reading_->images.push_back(std::move(image));
  }
  reading_->bytes += expected_bytes(place.plan.entry);
  if (reading_->bytes >= kReadingBytes || reading_->loads.size() >= loads_at_once_) start_reading();
}

// Throws nothing: of a file that cannot be read, its reading tells.
int64_t Engine::expected_bytes(uint32_t entry) const noexcept {
  try {
    if (const auto bytes = static_cast<int64_t>(catalogue_.entries.memory(entry)); bytes > 0) return bytes;
  } catch (const std::exception &) {
    // The catalogue is damaged there, and the file bad when it is read.
  }
  return usual_bytes_;
}

void Engine::start_reading() {
  if (!reading_) return;
  reading_->problems.resize(reading_->loads.size());
  const auto read = [this, reading = reading_] {
    try {
      reader_.read_images(catalogue_, reading->entries, reading->images);
    } catch (...) {
      reading->images.clear();  // read one by one, they say what is wrong
    }
    std::exception_ptr outage;  // in which the others need not wait for the same
    for (size_t i = 0; i < reading->loads.size(); i++) {
      Load &load = *reading->loads[i];
      try {
        if (outage) std::rethrow_exception(outage);
        const Entry entry = catalogue_.entries[load.entry];
        const bool is_read = !reading->images.empty() && reading->images[i];
        load.sample = is_read ? reader_.read(catalogue_, entry, reading->kept[i], std::move(reading->images[i]))
                              : reader_.read(catalogue_, entry, reading->kept[i]);
      } catch (const StorageError &) {
        reading->problems[i] = outage = std::current_exception();
      } catch (...) {
        reading->problems[i] = std::current_exception();
      }
    }
    reading->done.count_down();
  };
  pool_.submit(read);
  reading_.reset();
}

// Waits for a sample, and puts another in its place, for as long as it is held, if it cannot be read.
void Engine::finish(const Place &place, BatchPart &part) {
  Load &load = *place.load;
  const auto start = std::chrono::steady_clock::now();
  Reading &reading = *place.reading;
  reading.done.wait();
  const std::chrono::duration<double> wait = std::chrono::steady_clock::now() - start;
  part.wait_seconds += wait.count();
  try {
    if (reading.problems[place.number]) std::rethrow_exception(reading.problems[place.number]);
    count_reading(load.sample, part);
  } catch (const StorageError &) {
    throw;  // not the file's fault: those that would take its place are no better off
  } catch (const std::exception &error) {
    if (options_.on_error == OnError::raise) throw;
    load.replacement = std::make_unique<Delivered>(replacement(load.entry, error.what(), part));
  }
  load.finished = 1;
}

Engine::Delivered Engine::deliver(const std::shared_ptr<Load> &load) const {
  if (load->replacement) return *load->replacement;
  return named({load, &load->sample}, load->entry);
}

Engine::Delivered Engine::named(std::shared_ptr<const Sample> sample, size_t entry) const {
  const Entries &entries = catalogue_.entries;
  Delivered delivered{std::move(sample), name_of(catalogue_.archives, entries.file(entry, 0)), entries.label(entry)};
  delivered.companion_names.reserve(entries.companions());
  for (size_t c = 1; c <= entries.companions(); c++) {
    const File companion = entries.file(entry, c);
    delivered.companion_names.push_back(companion.path.empty() ? delivered.name
                                                               : name_of(catalogue_.archives, companion));
  }
  return delivered;
}

Engine::Delivered Engine::replacement(uint32_t bad, const std::string &problem, BatchPart &part) {
  part.bad_samples++;
  const Delivered good = substitute_ ? Delivered{substitute_, options_.substitute, catalogue_.entries.label(bad)}
                                     : next_good_sample(bad, problem, part);
  warn_(problem + ". " + full_path(catalogue_.root, good.name) + " takes its place");
  return good;
}

// An entry that can replace it and is good, the same one every time.
Engine::Delivered Engine::next_good_sample(uint32_t bad, const std::string &problem, BatchPart &part) {
  const Entries &entries = catalogue_.entries;
  const size_t step = far_step(entries.size());
  int tries = 0;
  for (size_t i = 1; i < entries.size() && tries < kMaxTries; i++) {
    const size_t other = (bad + i * step) % entries.size();
    if (!can_replace(entries.format(other), entries.format(bad))) continue;
    tries++;
    try {
      auto sample = std::make_shared<Sample>(reader_.read(catalogue_, entries[other], false));
      count_reading(*sample, part);
      return named(std::move(sample), other);
    } catch (const StorageError &) {
      throw;
    } catch (const std::exception &) {
      // Its own turn will report it.
    }
  }
  if (tries == 0) throw std::runtime_error(problem + ". There is no other sample of its format to take its place");
  throw std::runtime_error(problem + ". The " + counted(tries, "other sample") + " of its format that " +
                           (tries == 1 ? "was tried in its place is" : "were tried in its place are") + " bad too");
}

// Adds what the disk delivered for a sample.
void Engine::count_reading(const Sample &sample, BatchPart &part) {
  part.files_read += sample.file_count();
  part.bytes_read += sample.bytes();
  usual_bytes_ += (sample.bytes() - usual_bytes_) / kRecent;
}

// Adds the batch that is first in line, of which there are these parts.
void Engine::count(const Batch &batch, std::span<BatchPart> parts) {
  auto part = parts.begin();
  for (size_t i = 0; i < batch.size(); i++) {
    const Place &place = scheduled_.front()[i];
    if (part->epoch != place.plan.epoch) ++part;
    if (!place.plan.padding) count(place, batch[i].files->bytes(), *part);
  }
  std::lock_guard lock(mutex_);
  for (const BatchPart &counted : parts) statistics_.add(counted);
}

void Engine::count(const Place &place, int64_t bytes, BatchPart &part) {
  if (place.plan.epoch != epoch_) {
    current_bytes_ += next_bytes_;  // what has not come in this epoch stays
    next_bytes_ = 0;
    epoch_ = place.plan.epoch;
  }
  const uint32_t epoch = uint32_t(epoch_) & 0x7FFFFFFF;
  if (place.in_memory) (place.load->kept_in == epoch ? next_bytes_ : current_bytes_) -= bytes;
  if (place.plan.keep) {
    next_bytes_ += bytes;
    place.load->kept_in = epoch;
  }

  FormatCounts &format = part.formats[size_t(catalogue_.entries.format(place.load->entry))];
  (place.in_memory ? format.hits : format.misses)++;
  part.samples++;
  part.current_bytes = current_bytes_;
  part.next_bytes = next_bytes_;
}

Statistics Engine::statistics() const {
  std::lock_guard lock(mutex_);
  Statistics statistics = statistics_;
  statistics.cache_bytes_used = int64_t(reader_.cache().used());
  statistics.cache_bytes_peak = int64_t(reader_.cache().peak());
  statistics.other_bytes_used = int64_t(reader_.staging().used());
  statistics.other_bytes_peak = int64_t(reader_.staging().peak());
  statistics.idle_bytes = int64_t(reader_.arena().idle());
  statistics.storage = options_.reading.storage->counts();
  return statistics;
}

}  // namespace dali_l3::loader
