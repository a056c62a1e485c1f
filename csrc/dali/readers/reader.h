// What the operators readers.multi_format and readers.liquid share: an adapter between DALI's batches and the reading
// engine.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dali/pipeline/operator/operator.h"
#include "loader/engine.h"
#include "loader/plans/shards.h"

namespace dali_l3 {

// The format of every entry.
std::vector<loader::FileFormat> FormatsOf(const loader::Catalogue &catalogue);

// The outputs that a reader has for companions.
int CompanionOutputs(const dali::OpSpec &spec);

// An operator without inputs that outputs the files of the engine's batches, without copying them: the image, its
// companions, the label.
//
// The engine reads ahead by itself, so that DALI's class for readers, with a thread of its own, is not needed.
class Reader : public dali::Operator<dali::CPUBackend> {
 public:
  explicit Reader(const dali::OpSpec &spec);

  bool HasContiguousOutputs() const override { return false; }
  dali::ReaderMeta GetReaderMeta() const override;

  void SaveState(dali::OpCheckpoint &checkpoint, dali::AccessOrder order) override;
  void RestoreState(const dali::OpCheckpoint &checkpoint) override;
  std::string SerializeCheckpoint(const dali::OpCheckpoint &checkpoint) const override;
  void DeserializeCheckpoint(dali::OpCheckpoint &checkpoint, const std::string &data) const override;

  // As JSON; see loader/statistics.h.
  std::string Statistics() const;

 protected:
  bool SetupImpl(std::vector<dali::OutputDesc> &outputs, const dali::Workspace &ws) override;
  void RunImpl(dali::Workspace &ws) override;

  // To be called at the end of a subclass's constructor: lists the dataset, unless lazy_init leaves that to the first
  // use.
  void Init();

  // The options as the arguments of both operators give them, for subclasses to add to.
  virtual loader::CatalogueOptions MakeCatalogueOptions() const;
  virtual loader::EngineOptions MakeEngineOptions() const;
  virtual loader::ShardOptions MakeShardOptions() const;
  virtual std::unique_ptr<loader::EpochPlan> MakePlan(const loader::Catalogue &catalogue, int64_t seed) const = 0;

  const bool checkpointing_;

 private:
  loader::Engine &engine() const;
  std::unique_ptr<loader::SampleOrder> MakeOrder(const loader::Catalogue &catalogue) const;

  int64_t seed_;                     // of the order: the argument's, or that of the checkpoint that has been restored
  mutable std::mutex engine_mutex_;  // guards its creation
  mutable std::unique_ptr<loader::Engine> engine_;  // null until the dataset has been listed
};

}  // namespace dali_l3
