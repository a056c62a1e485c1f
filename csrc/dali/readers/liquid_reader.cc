// readers.liquid: a reader whose batches all cost the disk the same.

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "loader/input/arena.h"
#include "loader/plans/format_groups.h"
#include "loader/plans/liquid_plan.h"
#include "loader/plans/minio_plan.h"
#include "loader/plans/mix_plan.h"
#include "reader.h"

namespace dali_l3 {
namespace {

// Bytes of memory that an entry takes up when it is held.
uint64_t MemoryOf(const loader::Entry &entry) {
  uint64_t bytes = loader::extents(entry.file.size);
  for (const loader::File &companion : entry.companions) bytes += loader::extents(companion.size);
  return bytes;
}

class LiquidReader : public Reader {
 public:
  explicit LiquidReader(const dali::OpSpec &spec)
      : Reader(spec),
        policy_(spec.GetArgument<std::string>("policy")),
        cache_size_(spec.GetArgument<int64_t>("cache_size")) {
    if (policy_ != "liquid" && policy_ != "minio" && policy_ != "none")
      throw std::invalid_argument("policy is \"" + policy_ + R"(", but must be "liquid", "minio" or "none")");
    const auto order = spec.GetArgument<std::string>("read_order");
    if (order != "random" && order != "sequential")
      throw std::invalid_argument("read_order is \"" + order + R"(", but must be "random" or "sequential")");
    sequential_ = order == "sequential";
    if (cache_size_ < 0)
      throw std::invalid_argument("cache_size is " + std::to_string(cache_size_) + " bytes, but must not be negative");
    if (!spec.GetArgument<bool>("random_shuffle"))
      throw std::invalid_argument("readers.liquid always shuffles: without random_shuffle use readers.multi_format");
    if (sequential_ && policy_ != "liquid")
      throw std::invalid_argument("read_order=\"sequential\" needs policy=\"liquid\"");
    if (spec.ArgumentDefined("initial_fill"))
      DALI_WARN("readers.liquid shuffles the whole shard: initial_fill has no effect.");
    if (spec.ArgumentDefined("shuffle_after_epoch_seed"))
      DALI_WARN("readers.liquid shuffles by seed: shuffle_after_epoch_seed has no effect.");
    if (spec.GetArgument<int>("num_shards") > 1 && !spec.GetArgument<bool>("stick_to_shard"))
      DALI_WARN("readers.liquid keeps its shard in all epochs, as with stick_to_shard=True.");
    Init();
  }

 protected:
  loader::CatalogueOptions MakeCatalogueOptions() const override {
    loader::CatalogueOptions options = Reader::MakeCatalogueOptions();
    options.sniff = options.sizes = true;
    return options;
  }

  loader::EngineOptions MakeEngineOptions() const override {
    loader::EngineOptions options = Reader::MakeEngineOptions();
    options.reading.cache_bytes = policy_ == "none" ? 0 : cache_size_;
    return options;
  }

  loader::ShardOptions MakeShardOptions() const override {
    loader::ShardOptions options = Reader::MakeShardOptions();
    options.stick_to_shard = true;
    return options;
  }

  std::unique_ptr<loader::EpochPlan> MakePlan(const loader::Catalogue &catalogue, int64_t seed) const override {
    const loader::ShardOptions shards = MakeShardOptions();
    auto groups = loader::format_groups(FormatsOf(catalogue), shards, true);
    std::vector<uint64_t> bytes;
    bytes.reserve(catalogue.entries.size());
    for (const loader::Entry &entry : catalogue.entries) bytes.push_back(MemoryOf(entry));
    const auto cache_bytes = static_cast<uint64_t>(cache_size_);

    if (policy_ == "none") return std::make_unique<loader::MixPlan>(shards, std::move(groups), true, seed);
    if (policy_ == "minio")
      return std::make_unique<loader::MinioPlan>(shards, std::move(groups), bytes, cache_bytes, seed);
    loader::LiquidPlanOptions options;
    options.shards = shards;
    options.cache_bytes = cache_bytes;
    options.seed = seed;
    options.sequential = sequential_;
    return std::make_unique<loader::LiquidPlan>(options, std::move(groups), bytes);
  }

 private:
  const std::string policy_;
  const int64_t cache_size_;  // bytes
  bool sequential_ = false;
};

}  // namespace
}  // namespace dali_l3

// DALI's macros paste the schema's name into identifiers and expect to be used inside its namespace.
namespace dali {

DALI_REGISTER_OPERATOR(readers__Liquid, dali_l3::LiquidReader, CPU);

DALI_SCHEMA(readers__Liquid)
    .DocStr(R"code(Reads files and their labels so that every batch takes the same part from memory and from disk.

After Liquid (Baek et al., APSys 2023). The reader holds part of the shard in memory of its own, of `cache_size` bytes, and reads the rest
past the page cache. Each epoch delivers every sample once, in an order drawn anew. Of the samples of a batch, a constant part, the hit
ratio, stays in memory for the next epoch, chosen at random; the others are evicted. Every batch holds the formats in the proportions that
they have in the shard, all at the same hit ratio, the largest that fits. The first epoch comes from disk, without waiting for the memory
to fill.

It takes the arguments of ``readers.multi_format``, except that it always shuffles the whole shard for every epoch, and keeps its shard.

The outputs are the image files, the files of the `companions`, if any, and the labels. They are handed to the pipeline without being
copied; the memory of what the pipeline holds, and of what is read ahead, comes on top of `cache_size`.)code")
    .NumInput(0)
    .NumOutput(2)
    .AdditionalOutputsFn(dali_l3::CompanionOutputs)
    .AddOptionalArg("cache_size", R"code(Bytes of memory for what is kept from epoch to epoch.)code", int64_t{0})
    .AddOptionalArg("policy", R"code(What is kept:

* ``"liquid"``: a part of every batch, for the next epoch.
* ``"minio"``: a fixed random part of the shard, for good, as MinIO does in CoorDL (Mohan et al., VLDB 2021); how much of a batch it makes
  up varies.
* ``"none"``: nothing.)code",
                    "liquid")
    .AddOptionalArg(
        "read_order",
        R"code(Order of reading from disk: ``"random"``, or ``"sequential"`` for disks on which seeking is slow,
at the price of a worse shuffle.)code",
        "random")
    .AddOptionalArg("random_shuffle",
                    R"code(Always True; see ``readers.multi_format`` for a reader that does not shuffle.)code", true)
    .AddOptionalArg("use_o_direct",
                    R"code(Whether files are read past the page cache, where the file system allows it.)code", true)
    .AddParent("dali_l3__ReaderBase");

}  // namespace dali
