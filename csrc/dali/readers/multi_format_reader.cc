// readers.multi_format: fn.readers.file for datasets of several formats.

#include <string>
#include <utility>

#include "bridges.h"
#include "integer_arguments.h"
#include "loader/arguments/sampling.h"
#include "reader.h"

namespace dali_l3 {
namespace {

loader::MultiFormatArguments MultiFormatSettings(const dali::OpSpec &spec) {
  loader::MultiFormatArguments arguments;
  arguments.shards = ShardArguments(spec);
  arguments.weighting = WeightingArguments(spec);
  if (std::string mix; spec.TryGetArgument(mix, "mix")) arguments.mix = std::move(mix);
  arguments.random_shuffle = spec.GetArgument<bool>("random_shuffle");
  arguments.shuffle_after_epoch = spec.GetArgument<bool>("shuffle_after_epoch");
  if (spec.ArgumentDefined("initial_fill")) arguments.initial_fill = IntArgument(spec, "initial_fill");
  if (spec.ArgumentDefined("shuffle_after_epoch_seed"))
    arguments.shuffle_after_epoch_seed = spec.GetArgument<int64_t>("shuffle_after_epoch_seed");
  arguments.epoch_seed_has_32_bits = kEpochSeedHas32Bits;
  arguments.checkpointing = spec.GetArgument<bool>("checkpointing");
  return arguments;
}

class MultiFormatReader : public Reader {
 public:
  explicit MultiFormatReader(const dali::OpSpec &spec)
      : Reader(spec, loader::multi_format_sampling(MultiFormatSettings(spec))) {}
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

The outputs are the image files, the files of the `companions`, if any, and the labels; with `paths` the components of `ext` and, with
`label_ext`, the labels.)code")
    .NumInput(0)
    .OutputFn(dali_l3::Outputs)
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
