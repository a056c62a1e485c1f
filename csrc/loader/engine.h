// The reading engine: delivers batches of files, in the order of a plan, from memory or from disk.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "dataset/catalogue.h"
#include "input/read_pool.h"
#include "input/sample_reader.h"
#include "plans/sample_order.h"
#include "statistics.h"

namespace dali_l3::loader {

struct EngineOptions {
  SampleReaderOptions reading = {};
  int read_threads = 8;   // at least 1
  int batches_ahead = 2;  // whose files are being read while one is delivered; at least 0
  OnError on_error = OnError::raise;
  std::string substitute = {};  // with OnError::substitute: the file that takes the place of bad ones
};

/** Delivers the batches of a SampleOrder.
 *
 * Files that the plan keeps for the next epoch stay in memory until their turn comes again. One thread calls
 * next_batch(), seek() and set_order(); statistics() may be called from any.
 */
class Engine {
 public:
  /** A sample. */
  struct Delivered {
    std::shared_ptr<const Sample> files;  ///< to be held for as long as anybody uses them, also after the engine
    std::string name;                     ///< of the image; see name_of()
    int label;
    /** Of each companion; that of the image where it has none. */
    std::vector<std::string> companion_names = {};
  };
  using Batch = std::vector<Delivered>;

  /** `warn` is called, from any thread, with a line for the user. Throws when the substitute is bad or no image. */
  Engine(Catalogue catalogue, std::unique_ptr<SampleOrder> order, const EngineOptions &options,
         std::function<void(const std::string &)> warn);
  /** Ends what buckets are asked for, of the options' storage, which is of no use afterwards. */
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /** The next batch, when its files are in memory.
   *
   * @throws std::runtime_error, unless bad files are replaced: what is wrong with a file, with its name; so does every
   * later call. Whatever else it throws, such as std::bad_alloc, a later call begins the batch anew
   */
  Batch next_batch();

  /** Number of the batch that next_batch() delivers next, from 0: with the order, all that a checkpoint needs. */
  int64_t position() const { return position_; }

  /** Makes `batch` the next. What the plan expects in memory is read again when its turn comes. */
  void seek(int64_t batch);

  /** Delivers the batches of another order from now on, beginning with `batch`. Changes nothing if that throws, as
   * seek() does. */
  void set_order(std::unique_ptr<SampleOrder> order, int64_t batch = 0);

  const Catalogue &catalogue() const { return catalogue_; }

  Statistics statistics() const;

 private:
  // An entry that is in memory, or on its way there. There is one for each file that is held: mind its size.
  struct Load {
    Sample sample;
    std::unique_ptr<const Delivered> replacement;  // null if the sample is good
    uint32_t entry;
    uint32_t finished : 1 = 0;  // has been read and counted, or replaced
    uint32_t kept_in : 31 = 0;  // epoch, but for its high bits, of the batch delivered last that keeps it
  };
  // Loads are told apart by their entries.
  struct ByEntry {
    using is_transparent = void;
    static uint32_t entry(uint32_t entry) { return entry; }
    static uint32_t entry(const std::shared_ptr<Load> &load) { return load->entry; }
    size_t operator()(const auto &load) const noexcept { return entry(load); }
    bool operator()(const auto &a, const auto &b) const noexcept { return entry(a) == entry(b); }
  };
  // Some loads of a batch that one thread reads, one after the other: small ones, for each of which it would take
  // longer to wake a thread than to read them.
  struct Reading {
    std::vector<std::shared_ptr<Load>> loads;
    std::vector<bool> kept;                    // of each, whether the plan keeps it
    std::vector<uint32_t> entries;             // of each of them, if they are read as a run …
    std::vector<Block> images;                 // … and memory for its image
    std::vector<std::exception_ptr> problems;  // of each; null if there is none
    int64_t bytes = 0;
    std::latch done{1};
  };
  // A place in a batch.
  struct Place {
    std::shared_ptr<Load> load;
    PlannedSample plan;
    bool in_memory;                         // when it was scheduled
    std::shared_ptr<Reading> reading = {};  // of the first place with this load
    size_t number = 0;                      // of its load in that
  };

  void start_at(int64_t batch);
  void warn_of_unused_cache() const;
  void schedule_batch();
  std::vector<Block> memory_for_runs();
  Place schedule(const PlannedSample &planned, Block image);
  void add_to_reading(Place &place, Block image);
  int64_t expected_bytes(uint32_t entry) const noexcept;
  void start_reading();
  void finish(const Place &place, BatchPart &part);
  Delivered deliver(const std::shared_ptr<Load> &load) const;
  Delivered named(std::shared_ptr<const Sample> sample, size_t entry) const;
  Delivered replacement(uint32_t bad, const std::string &problem, BatchPart &part);
  Delivered next_good_sample(uint32_t bad, const std::string &problem, BatchPart &part);
  void count_reading(const Sample &sample, BatchPart &part);
  void count(const Batch &batch, std::span<BatchPart> parts);
  void count(const Place &place, int64_t bytes, BatchPart &part);

  const Catalogue catalogue_;
  std::unique_ptr<SampleOrder> order_;
  const EngineOptions options_;
  const std::function<void(const std::string &)> warn_;
  SampleReader reader_;
  const bool reads_runs_;
  std::shared_ptr<const Sample> substitute_;

  int64_t position_ = 0;
  bool is_torn_ = false;  // an exception has left what follows half made
  std::deque<std::vector<Place>> scheduled_;
  std::shared_ptr<Load> last_scheduled_;                              // what padding repeats
  std::unordered_set<std::shared_ptr<Load>, ByEntry, ByEntry> held_;  // what the plan keeps in memory
  std::shared_ptr<Reading> reading_;  // not started yet; null outside of schedule_batch()
  size_t loads_at_once_ = 1;          // of a reading, at most
  int64_t usual_bytes_;               // of a sample, as read lately
  std::vector<PlannedSample> plan_;   // of one batch; a member, so that its memory is not allocated anew

  // As of the batch delivered last.
  int64_t epoch_ = 0;
  int64_t current_bytes_ = 0, next_bytes_ = 0;

  mutable std::mutex mutex_;
  Statistics statistics_;  // guarded by mutex_

  ReadPool pool_;  // last: its threads use all of the above
};

}  // namespace dali_l3::loader
