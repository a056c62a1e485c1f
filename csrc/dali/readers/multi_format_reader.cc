// readers.multi_format: fn.readers.file for datasets of several formats.

#include <stdexcept>
#include <utility>

#include "loader/plans/file_plan.h"
#include "loader/plans/format_groups.h"
#include "loader/plans/mix_plan.h"
#include "reader.h"

namespace dali_l3 {
namespace {

class MultiFormatReader : public Reader {
 public:
  explicit MultiFormatReader(const dali::OpSpec &spec)
      : Reader(spec),
        random_shuffle_(spec.GetArgument<bool>("random_shuffle")),
        shuffle_after_epoch_(spec.GetArgument<bool>("shuffle_after_epoch")) {
    if (std::string mix; spec.TryGetArgument(mix, "mix")) {
      if (mix != "dataset") throw std::invalid_argument("mix is \"" + mix + "\", but must be \"dataset\" or None");
      mixes_ = true;
    }
    if (mixes_ && spec.ArgumentDefined("initial_fill"))
      DALI_WARN("mix=\"dataset\" shuffles the whole shard: initial_fill has no effect.");
    if (spec.ArgumentDefined("shuffle_after_epoch_seed") && (mixes_ || !shuffle_after_epoch_))
      DALI_WARN(
          "shuffle_after_epoch_seed has no effect without shuffle_after_epoch, nor with mix=\"dataset\", which "
          "shuffles by seed.");
    Init();
  }

 protected:
  loader::CatalogueOptions MakeCatalogueOptions() const override {
    loader::CatalogueOptions options = Reader::MakeCatalogueOptions();
    options.sniff |= mixes_;
    return options;
  }

  loader::ShardOptions MakeShardOptions() const override {
    loader::ShardOptions options = Reader::MakeShardOptions();
    options.stick_to_shard |= mixes_ || shuffle_after_epoch_;
    return options;
  }

  std::unique_ptr<loader::EpochPlan> MakePlan(const loader::Catalogue &catalogue, int64_t seed) const override {
    if (mixes_) {
      const loader::ShardOptions shards = MakeShardOptions();
      const bool shuffled = random_shuffle_ || shuffle_after_epoch_;
      auto groups = loader::format_groups(FormatsOf(catalogue), shards, shuffled);
      return std::make_unique<loader::MixPlan>(shards, std::move(groups), shuffled, seed);
    }
    loader::FilePlanOptions options;
    options.shards = Reader::MakeShardOptions();
    options.random_shuffle = random_shuffle_;
    options.initial_fill = spec_.GetArgument<int>("initial_fill");
    options.seed = seed;
    options.shuffle_after_epoch = shuffle_after_epoch_;
    spec_.TryGetArgument(options.shuffle_after_epoch_seed, "shuffle_after_epoch_seed");
    options.checkpointing = checkpointing_;
    return std::make_unique<loader::FilePlan>(options, static_cast<int64_t>(catalogue.entries.size()));
  }

 private:
  const bool random_shuffle_;
  const bool shuffle_after_epoch_;
  bool mixes_ = false;
};

}  // namespace
}  // namespace dali_l3

// DALI's macros paste the schema's name into identifiers and expect to be used inside its namespace.
namespace dali {

DALI_REGISTER_OPERATOR(readers__MultiFormat, dali_l3::MultiFormatReader, CPU);

DALI_SCHEMA(readers__MultiFormat)
    .DocStr(
        R"code(Reads files and their labels, like ``readers.file``, from a dataset whose images come in several formats.

It takes the arguments of ``readers.file`` and, unless `mix` is given, delivers the same samples in the same order. Files are handed to the
pipeline without being copied.

The outputs are the image files, the files of the `companions`, if any, and the labels.)code")
    .NumInput(0)
    .NumOutput(2)
    .AdditionalOutputsFn(dali_l3::CompanionOutputs)
    .AddOptionalArg<std::string>(
        "mix", R"code(``"dataset"``: every batch holds the formats in the proportions that they have in the shard.

The number of files of each format in a batch is the floor or the ceiling of its share, and all formats end the epoch together. Formats,
which are told by signature, not by name, are divided among the shards one by one, and a reader keeps its shard. With `random_shuffle` or
`shuffle_after_epoch` the whole shard is shuffled anew for every epoch, by `seed`; `initial_fill` has no effect.)code",
        nullptr)
    .AddOptionalArg("use_o_direct",
                    R"code(Whether files are read past the page cache, where the file system allows it.)code", false)
    .AddParent("dali_l3__ReaderBase");

}  // namespace dali
