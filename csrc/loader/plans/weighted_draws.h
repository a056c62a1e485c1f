// Which samples an epoch draws, and how often, where some are to come more often than others.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/file_format.h"
#include "plans/deal.h"
#include "plans/format_groups.h"
#include "plans/proportional_counts.h"
#include "plans/shards.h"

namespace dali_l3::loader {

/** Samples of one class that are all drawn equally often. */
struct Cell {
  int label = 0;
  double weight = 0;  ///< of all its samples together
};

/** A catalogue's samples with the weights by which they are drawn. */
struct WeightedSamples {
  std::vector<FileFormat> formats;  ///< of every entry
  std::vector<uint32_t> cell_of;    ///< index into the cells
  std::vector<Cell> cells;          ///< none empty, at least one with a positive weight
};

/**
 * The draws of a shard, epoch by epoch: the same for all seeds, so shards never need to know of each other.
 *
 * Over all shards, an epoch of `epoch_size` draws takes from each cell the floor or the ceiling of its share, and from
 * each sample the floor or the ceiling of its own; what is rounded off takes turns. Each shard gets the floor or the
 * ceiling of its share of the epoch's draws of every format, and of every format's draws of every class that has one
 * for each shard. The draws of a sample go to the same shard in every epoch, as far as these numbers allow.
 */
class WeightedDraws {
 public:
  /** @param options suit an epoch of this size, by check_shards() */
  WeightedDraws(const WeightedSamples &samples, const ShardOptions &options, int64_t epoch_size);

  /** The entries that the shard draws in an epoch, one item for each draw, in a fixed order, by format; formats without
   * draws are left out. Cheapest for the epoch after the one asked for last. */
  std::vector<FormatGroup> draw(int64_t epoch);

  /** How often the shard draws each entry in an epoch, on average. */
  std::vector<double> rates() const;

  int64_t catalogue_size() const { return static_cast<int64_t>(catalogue_size_); }

 private:
  // The entries of a cell form a circle. Each epoch goes on where the one before has stopped.
  struct Circle {
    std::vector<uint32_t> entries;
    double rate;  // draws of each entry in an epoch, on average
    size_t next = 0;
  };
  // Entries whose draws are dealt to the shards together.
  struct Stratum {
    FileFormat format;
    std::vector<uint32_t> entries;  // in the order in which shards take them
  };

  void restart();
  std::vector<uint32_t> count(const std::vector<int64_t> &cell_counts);

  const ShardOptions options_;
  const ProportionalCounts first_;
  const Deal deal_;
  const size_t catalogue_size_;
  std::vector<Circle> circles_;  // of each cell
  std::vector<Stratum> strata_;  // by format

  // As of the epoch drawn last.
  ProportionalCounts cell_counts_;
  int64_t next_epoch_ = 0;
};

}  // namespace dali_l3::loader
