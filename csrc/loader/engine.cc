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

// A step that, taken again and again modulo `size`, visits every place once, each far from those before: bad files are
// often neighbours.
size_t far_step(size_t size) {
  constexpr double kGoldenRatio = 0.618034;
  size_t step = std::max<size_t>(1, static_cast<size_t>(kGoldenRatio * static_cast<double>(size)));
  while (std::gcd(step, size) != 1) step++;
  return step;
}

}  // namespace

Engine::Engine(Catalogue catalogue, std::unique_ptr<SampleOrder> order, const EngineOptions &options,
               std::function<void(const std::string &)> warn)
    : catalogue_(std::move(catalogue)),
      options_(options),
      warn_(std::move(warn)),
      reader_(options.reading, warn_),
      pool_(options.read_threads) {
  set_order(std::move(order));
  warn_of_unused_cache();
  if (options.on_error != OnError::substitute) return;
  require_local(options.substitute);
  Entry entry;
  entry.file.path = options.substitute;
  substitute_ = reader_.read("", entry, false);
  const FileBytes &bytes = substitute_->files.front();
  if (sniff({bytes.data.get(), bytes.size}) == FileFormat::unknown)
    fail_file(options.substitute, "of no known image format");
}

void Engine::set_order(std::unique_ptr<SampleOrder> order) {
  order_ = std::move(order);
  start_at(0);
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

// Forgets all that has been scheduled and held.
void Engine::start_at(int64_t batch) {
  scheduled_.clear();
  last_scheduled_.reset();
  held_.clear();
  current_bytes_ = next_bytes_ = 0;
  position_ = batch;
}

Engine::Batch Engine::next_batch() {
  while (int64_t(scheduled_.size()) <= options_.batches_ahead) schedule_batch();
  Batch batch;
  std::vector<BatchPart> parts;
  for (const Place &place : scheduled_.front()) {
    if (parts.empty() || parts.back().epoch != place.plan.epoch)
      parts.push_back({.batch = position_, .epoch = place.plan.epoch});
    if (!place.load->sample) finish(*place.load, parts.back());
    if (!place.plan.padding) count(place, parts.back());
    batch.push_back(place.load->sample);
  }
  scheduled_.pop_front();
  position_++;

  std::lock_guard lock(mutex_);
  for (const BatchPart &part : parts) statistics_.add(part);
  return batch;
}

void Engine::schedule_batch() {
  order_->next_batch(plan_);
  std::vector<Place> &places = scheduled_.emplace_back();
  places.reserve(plan_.size());
  for (const PlannedSample &planned : plan_) places.push_back(schedule(planned));
}

Engine::Place Engine::schedule(const PlannedSample &planned) {
  if (planned.padding) {
    // After seek() the sample before this one may not have been scheduled.
    if (!last_scheduled_) last_scheduled_ = start_reading(planned.entry, false);
    return {last_scheduled_, planned, true};
  }
  Place place{nullptr, planned, false};
  if (planned.hit) {
    if (auto held = held_.extract(planned.entry)) {
      place.load = std::move(held.mapped());
      place.in_memory = true;
    }
  }
  if (!place.load) place.load = start_reading(planned.entry, planned.keep);
  if (planned.keep) held_[planned.entry] = place.load;
  last_scheduled_ = place.load;
  return place;
}

std::shared_ptr<Engine::Load> Engine::start_reading(uint32_t entry, bool keep) {
  auto load = std::make_shared<Load>();
  load->entry = entry;
  load->reading =
      pool_.submit([this, entry, keep] { return reader_.read(catalogue_.root, catalogue_.entries[entry], keep); })
          .share();
  return load;
}

// Waits for a sample, and puts another in its place, for as long as it is held, if it cannot be read.
void Engine::finish(Load &load, BatchPart &part) {
  const auto start = std::chrono::steady_clock::now();
  load.reading.wait();
  const std::chrono::duration<double> wait = std::chrono::steady_clock::now() - start;
  part.wait_seconds += wait.count();
  try {
    load.sample = load.reading.get();
    load.reading = {};
    count_reading(*load.sample, part);
  } catch (const std::exception &error) {
    if (options_.on_error == OnError::raise) throw;
    load.sample = replacement(load.entry, error.what(), part);
  }
}

std::shared_ptr<const Sample> Engine::replacement(uint32_t bad, const std::string &problem, BatchPart &part) {
  part.bad_samples++;
  std::shared_ptr<const Sample> good;
  if (substitute_) {
    auto copy = std::make_shared<Sample>(*substitute_);
    copy->label = catalogue_.entries[bad].label;
    good = std::move(copy);
  } else {
    good = next_good_sample(bad, problem, part);
  }
  warn_(problem + ". " + full_path(catalogue_.root, good->path) + " takes its place");
  return good;
}

// An entry of the same format that is good, the same one every time.
std::shared_ptr<const Sample> Engine::next_good_sample(uint32_t bad, const std::string &problem, BatchPart &part) {
  const auto &entries = catalogue_.entries;
  const size_t step = far_step(entries.size());
  int tries = 0;
  for (size_t i = 1; i < entries.size() && tries < kMaxTries; i++) {
    const Entry &entry = entries[(bad + i * step) % entries.size()];
    if (entry.format != entries[bad].format) continue;
    tries++;
    try {
      auto sample = reader_.read(catalogue_.root, entry, false);
      count_reading(*sample, part);
      return sample;
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
  part.files_read += int64_t(sample.files.size());
  part.bytes_read += sample.bytes();
}

void Engine::count(const Place &place, BatchPart &part) {
  const int64_t bytes = place.load->sample->bytes();
  if (place.plan.epoch != epoch_) {
    current_bytes_ = next_bytes_;
    next_bytes_ = 0;
    epoch_ = place.plan.epoch;
  }
  if (place.in_memory) current_bytes_ -= bytes;
  if (place.plan.keep) next_bytes_ += bytes;

  FormatCounts &format = part.formats[size_t(catalogue_.entries[place.load->entry].format)];
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
  return statistics;
}

}  // namespace dali_l3::loader
