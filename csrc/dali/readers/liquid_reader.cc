// readers.liquid: a reader whose batches all cost the disk the same.

#include <string>

#include "loader/arguments/sampling.h"
#include "loader/arguments/size.h"
#include "reader.h"

namespace dali_l3 {
namespace {

loader::LiquidArguments LiquidSettings(const dali::OpSpec &spec) {
  loader::LiquidArguments arguments;
  arguments.shards = ShardArguments(spec);
  arguments.weighting = WeightingArguments(spec);
  arguments.policy = spec.GetArgument<std::string>("policy");
  arguments.read_order = spec.GetArgument<std::string>("read_order");
  arguments.cache_size = loader::parse_size("cache_size", spec.GetArgument<std::string>("cache_size"));
  arguments.random_shuffle = spec.GetArgument<bool>("random_shuffle");
  arguments.has_initial_fill = spec.ArgumentDefined("initial_fill");
  arguments.has_shuffle_after_epoch_seed = spec.ArgumentDefined("shuffle_after_epoch_seed");
  return arguments;
}

class LiquidReader : public Reader {
 public:
  explicit LiquidReader(const dali::OpSpec &spec) : Reader(spec, loader::liquid_sampling(LiquidSettings(spec))) {}
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
they have in the shard, all at the same hit ratio, about the largest that fits. The first epoch comes from disk, without waiting for the
memory to fill.

It takes the arguments of ``readers.multi_format``, except that it always shuffles the whole shard for every epoch, and keeps its shard.

The outputs are the image files, the files of the `companions`, if any, and the labels; with `paths` the components of `ext` and, with
`label_ext`, the labels. They are handed to the pipeline without being
copied; the memory of what the pipeline holds, and of what is read ahead, comes on top of `cache_size`.)code")
    .NumInput(0)
    .OutputFn(dali_l3::Outputs)
    .AddOptionalArg("cache_size",
                    R"code(Memory for what is kept from epoch to epoch: a number of bytes, or a string such as
``"60GiB"``.)code",
                    "0")
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
