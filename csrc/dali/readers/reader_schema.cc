// The arguments that both readers have beyond those of readers.file.

#include <optional>
#include <string>
#include <vector>

#include "bridges.h"
#include "loader/dataset/catalogue.h"
#include "reader_arguments.h"

namespace dali_l3 {
namespace {

// That of the first companions, or of the labels.
std::optional<dali::DALIDataType> SecondOutputType(const dali::OpSpec &spec) {
  const ReaderOutputs outputs(spec);
  if (outputs.companions > 0) return DALI_UINT8;
  return outputs.label_columns > 0 ? DALI_FLOAT : DALI_INT32;
}

}  // namespace
}  // namespace dali_l3

// DALI's macros paste the schema's name into identifiers and expect to be used inside its namespace.
namespace dali {

DALI_SCHEMA(dali_l3__ReaderOutputs) << dali_l3::OutputDType(1, dali_l3::SecondOutputType);

// Both readers inherit these arguments and the outputs' types, not the outputs' number.
DALI_SCHEMA(dali_l3__ReaderBase)
    .DocStr("Arguments of the readers of dali_l3.")
    .AddParent("dali_l3__ReaderOutputs")
    .AddParent("readers__File")
    .AddOptionalArg("file_filters",
                    R"code(A list of glob strings to filter the files in the class folders of `file_root`.

The default is that of ``readers.file``, and ``*.l3``. Ignored with `file_list` and `files`.)code",
                    dali_l3::loader::kImageFilters)
    .AddOptionalArg<int>("prefetch_queue_depth", R"code(Batches that are being read while one is delivered.

By default as many as hold 64 images, and at least one.)code",
                         nullptr)
    .AddOptionalArg<int64_t>("shuffle_after_epoch_seed",
                             R"code(Seed of the shuffling that `shuffle_after_epoch` does, as an offset to it.)code",
                             nullptr)
    .AddOptionalArg("companions", R"code(Files that belong to each image, such as its mask, as path templates.

Each template stands for one more output, between the image and the label. Paths are relative to `file_root`. ``{dir}`` is the image's
folder, ``{name}`` its name, ``{stem}`` its name without the extension and ``{relpath}`` its path, relative to `file_root`; for instance
``"../masks/{dir}/{stem}.png"``. A field may be edited as in a shell: ``{stem%END}`` removes END at its end, ``{stem#START}`` START at its
start, ``{stem/OLD/NEW}`` replaces the first OLD by NEW and ``{stem//OLD/NEW}`` every OLD. A companion is read, shuffled and held in memory
together with its image.)code",
                    std::vector<std::string>{})
    .AddOptionalArg<std::vector<std::string>>(
        "companion_files", R"code(Paths of the companions of each of the `files`, in the place of `companions`.

All companions of the first file, then those of the second, and so on.)code",
        nullptr)
    .AddOptionalArg<std::vector<std::string>>(
        "paths", R"code(Tar archives ("shards" of webdataset) that hold the samples, in the place of `file_root`.

Each is a path, a pattern such as ``"train-*.tar"``, a range such as ``"train-{000..015}.tar"``, or a text file whose name ends with
``.txt`` that lists these. The outputs are the components of `ext`, in this order, and the labels if `label_ext` is given.)code",
        nullptr)
    .AddOptionalArg<std::string>(
        "catalogue",
        R"code(Path of a catalogue, as ``dali-l3 index -o train.l3cat`` writes it, in the place of `file_root` and of all other
arguments that say which samples there are.

The reader maps it and looks at no file before it reads it. The outputs are those of the arguments that it was made with. A file that is
not as the catalogue says is bad when it is read; see `on_error`.)code",
        nullptr)
    .AddOptionalArg<std::vector<std::string>>(
        "index_paths",
        R"code(The indices of the archives in `paths`, one for each, as ``dali-l3 index`` or DALI's ``wds2idx`` writes them.

By default the file beside each archive, with ``.idx`` in the place of ``.tar``. Where there is none, it is made and kept there or, if that
is not possible, in the user's cache.)code",
        nullptr)
    .AddOptionalArg<std::vector<std::string>>(
        "ext",
        R"code(Extensions of the files of a sample in `paths`: first that of the image, then one for each companion.

The extension of a file is what is behind the first dot of its name; files that have the rest of the name in common make a sample.
Alternatives are separated by semicolons: ``["jpg;png", "seg.png"]``.)code",
        nullptr)
    .AddOptionalArg("missing_component_behavior",
                    R"code(What to do about samples in `paths` that lack a component of `ext`.

* ``"empty"``: the output of a companion has no bytes. A sample without its image is bad; see `on_error`.
* ``"skip"``: the sample is left out, also if it lacks its label.
* ``"error"``: the sample is bad.)code",
                    dali_l3::loader::kMissingIsEmpty)
    .AddOptionalArg("case_sensitive_extensions",
                    R"code(Whether upper and lower case differ in `ext` and `label_ext`.)code", true)
    .AddOptionalArg<std::string>(
        "label_ext",
        R"code(Extension of the file with the label of each sample in `paths`, such as ``"cls"``.

It holds an integer, or `label_columns` numbers, as text, or as JSON with `label_field`. It is read when the pipeline is built.)code",
        nullptr)
    .AddOptionalArg<std::string>("label_field",
                                 R"code(Where the label is in JSON: a key, or keys with dots between.)code", nullptr)
    .AddOptionalArg("label_columns", R"code(How many numbers a label has, to be delivered as float32.

They are in `label_values`, at the end of each line of `file_list`, or in the files of `label_ext`. By default, labels are integers.)code",
                    0)
    .AddOptionalArg<std::vector<float>>(
        "label_values",
        R"code(The numbers of the labels of the `files`: all of the first file, then those of the second, and so on.

Needs `label_columns`.)code",
        nullptr)
    .AddOptionalArg(
        "missing_companions",
        R"code(What to do about images whose companion does not exist; once for all `companions`, or for each.

* ``"error"``: the sample is bad; see `on_error`.
* ``"empty"``: the output of that sample has no bytes.
* a path, relative to `file_root`: that file takes its place.

How many images have none, and which, is reported when the pipeline is built.)code",
        std::vector<std::string>{dali_l3::loader::kMissingIsBad})
    .AddOptionalArg<std::vector<int>>(
        "subset_indices", R"code(Which samples to read, as indices into the order in which the dataset is listed.)code",
        nullptr)
    .AddOptionalArg<std::vector<std::string>>("subset_files",
                                              R"code(Which samples to read, as paths, relative to `file_root`.)code",
                                              nullptr)
    .AddOptionalArg<std::vector<float>>("subset_range",
                                        R"code(Which part of the samples to read: its begin and its end, from 0 to 1.

The part is cut from a random order that depends on `subset_seed` and the labels, not on `seed`, and holds the labels in proportion. Ranges
that do not overlap have no sample in common.)code",
                                        nullptr)
    .AddOptionalArg("subset_seed", R"code(Seed of the order that `subset_range` is cut from.)code", int64_t{0})
    .AddOptionalArg<std::vector<float>>("weights",
                                        R"code(How often each sample is drawn in an epoch, compared with the others.

One number for each sample, in the order in which the dataset is listed, before a subset is taken and bad files are left out. Of a sample
with the share `s` of the sum of weights, every epoch holds the floor or the ceiling of ``s * epoch_size`` draws; what is rounded off takes
turns, so that many epochs together are exact.)code",
                                        nullptr)
    .AddOptionalArg<std::vector<float>>("class_proportions", R"code(The proportion of each class in an epoch, by label.

The counts are exact as with `weights`. The samples of a class take turns.)code",
                                        nullptr)
    .AddOptionalArg("class_balanced", R"code(Whether all classes have equal proportions in an epoch.)code", false)
    .AddOptionalArg<int64_t>("epoch_size",
                             R"code(Samples of an epoch over all shards. By default as many as there are.)code",
                             nullptr)
    .AddOptionalArg(
        "on_error",
        R"code(What to do about files that are missing, empty or unreadable, of no known image format, or found
damaged by `check`.

* ``"raise"``: an error that names the file.
* ``"skip"``: a good sample of the same format, with its own label, takes the place of a bad one.
* ``"substitute"``: the file `substitute`, with the label of the bad one.

With the latter two all files are looked at when the pipeline is built; the bad ones are left out and reported. What goes bad later, or is
only found then, is replaced and reported, and the length of the epoch stays.)code",
        "raise")
    .AddOptionalArg(
        "on_mismatch",
        R"code(What to do about a checkpoint that was made with other files, or with other arguments that the
order follows from.

* ``"raise"``: an error that says what differs.
* ``"redistribute"``: another batch size, `num_shards`, `stick_to_shard`, `pad_last_batch` or `cache_size` is no error. What all shards
  have left of the epoch, having delivered equally many batches, is dealt to the shards that there are now, each sample once. All of them
  go on from the checkpoint of shard 0, with the seed that it was made with. Later epochs are those of the arguments.
* ``"ignore"``: the reader goes on with the batch of that number. Samples may be repeated or left out.)code",
        "raise")
    .AddOptionalArg<std::string>(
        "substitute", R"code(Path of the file that takes the place of bad ones with ``on_error="substitute"``.

It has no companions, so `companions` rule it out.)code",
        nullptr)
    .AddOptionalArg("check",
                    R"code(How closely images, and companions that are images, are looked at. What does not pass is bad.

* ``"none"``: not at all, beyond what other arguments need.
* ``"headers"``: whether L3, PNG, JPEG, BMP, TIFF and WebP files hold what a decoder needs before the pixels, and are as long as that says;
  when the pipeline is built, and each time that a file is read from disk.
* ``"content"``: that, and each time that a file is read from disk all checksums of L3 and PNG files, that a JPEG file has its end, and that
  a TIFF file has all its strips or tiles. An L3 file that passes decodes.)code",
                    "none")
    .AddOptionalArg(
        "equal_sizes",
        R"code(Whether companions must have the height and width of their image. A sample where they differ is bad.

Looks at the headers of L3, PNG, JPEG, BMP, TIFF, WebP, PNM and NPY files each time that a sample is read from disk, and at the size as it
is stored, before a rotation by EXIF. Files of other formats are not compared.)code",
        false)
    .AddOptionalArg(
        "strict",
        R"code(Whether hidden folders, class folders without files, links to nothing or to folders and files listed
twice are errors. By default they are reported, except the last.)code",
        false)
    .AddOptionalArg("read_threads", R"code(Threads that read files, at most 1024.)code", 8);

}  // namespace dali
