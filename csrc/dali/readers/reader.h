// What the operators readers.multi_format and readers.liquid share: an adapter between DALI's batches and the reading
// engine.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dali/pipeline/operator/operator.h"
#include "loader/arguments/sampling.h"
#include "loader/checkpoint.h"
#include "loader/engine.h"
#include "loader/input/storage.h"
#include "loader/resumption.h"
#include "reader_arguments.h"

namespace dali_l3 {

// An operator without inputs that outputs the files of the engine's batches, without copying them: the image, its
// companions, the label.
//
// The engine reads ahead by itself, so that DALI's class for readers, with a thread of its own, is not needed.
class Reader : public dali::Operator<dali::CPUBackend> {
 public:
  // Lists the dataset, unless lazy_init leaves that to the first use.
  Reader(const dali::OpSpec &spec, loader::Sampling sampling);

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

 private:
  loader::ReadingArguments ReadArguments() const;
  loader::CatalogueOptions ListingOptions() const;
  loader::Engine &engine() const;
  std::unique_ptr<loader::Engine> MakeEngine() const;
  int64_t Seed() const;  // of the argument
  // What the next batch follows from, except the number of batches since.
  loader::Checkpoint &Origin() const;

  const loader::Sampling sampling_;
  const ReaderOutputs outputs_;
  const loader::OnMismatch on_mismatch_;
  mutable std::optional<loader::Checkpoint> origin_;  // empty until a checkpoint is saved or restored
  mutable std::mutex engine_mutex_;                   // guards its creation
  mutable std::shared_ptr<loader::Storage> storage_;  // of the engine
  mutable bool in_buckets_ = false;                   // the first sample is
  mutable std::unique_ptr<loader::Engine> engine_;    // null until the dataset has been listed
};

}  // namespace dali_l3
