"""Readers: `multi_format` and `liquid`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import _plugin
from ..image_files import StrPath
from ..memory import available_memory, total_memory
from ..sizes import parse_size
from ._given import given
from ._sampling import Subset, operator_arguments

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from nvidia.dali.data_node import DataNode


def multi_format(
    *,
    mix: Literal["dataset"] | None = None,
    companions: Sequence[str] | str | None = None,
    companion_files: Sequence[str] | Sequence[Sequence[str]] | None = None,
    missing_companions: Sequence[str] | str | None = None,
    on_error: Literal["raise", "skip", "substitute"] | None = None,
    substitute: StrPath | None = None,
    on_mismatch: Literal["raise", "redistribute", "ignore"] | None = None,
    check: Literal["none", "headers", "content"] | None = None,
    equal_sizes: bool | None = None,
    strict: bool | None = None,
    use_o_direct: bool | None = None,
    read_threads: int | None = None,
    file_root: StrPath | None = None,
    file_filters: Sequence[str] | str | None = None,
    dir_filters: Sequence[str] | str | None = None,
    case_sensitive_filter: bool | None = None,
    file_list: StrPath | None = None,
    files: Sequence[StrPath] | StrPath | NDArray[np.str_] | None = None,
    labels: ArrayLike | None = None,
    label_values: ArrayLike | None = None,
    label_columns: int | None = None,
    catalogue: StrPath | None = None,
    paths: Sequence[StrPath] | StrPath | None = None,
    index_paths: Sequence[StrPath] | StrPath | None = None,
    ext: Sequence[str] | str | None = None,
    missing_component_behavior: Literal["empty", "skip", "error"] | None = None,
    case_sensitive_extensions: bool | None = None,
    label_ext: str | None = None,
    label_field: str | None = None,
    subset: Subset | None = None,
    subset_seed: int | None = None,
    weights: ArrayLike | None = None,
    class_proportions: ArrayLike | Literal["balanced"] | None = None,
    epoch_size: int | None = None,
    random_shuffle: bool | None = None,
    initial_fill: int | None = None,
    seed: int | None = None,
    shuffle_after_epoch: bool | None = None,
    shuffle_after_epoch_seed: int | None = None,
    shard_id: int | None = None,
    num_shards: int | None = None,
    stick_to_shard: bool | None = None,
    pad_last_batch: bool | None = None,
    prefetch_queue_depth: int | None = None,
    lazy_init: bool | None = None,
    dont_use_mmap: bool | None = None,
    read_ahead: bool | None = None,
    skip_cached_images: bool | None = None,
    tensor_init_bytes: int | None = None,
    bytes_per_sample_hint: int | Sequence[int] | None = None,
    preserve: bool | None = None,
    device: Literal["cpu"] | None = None,
    name: str | None = None,
) -> list[DataNode]:
    """Reads files and their labels, like `nvidia.dali.fn.readers.file`, from a dataset of several image formats.

    Takes the arguments of `fn.readers.file`. Without `mix`, it delivers the same samples in the same order.

    Args:
        mix: ``"dataset"`` for batches that hold the formats in the proportions of the shard: the floor or the ceiling
            of the share of each, so that all formats end the epoch together. The signatures of the files decide their
            format. None (default) for the order of `fn.readers.file`.
        companions: Path templates of files that belong to each image, such as ``"../masks/{dir}/{stem}.png"``, relative
            to `file_root`, with the fields dir, stem, name and relpath. Each adds one output. Fields can be edited as
            in a shell: ``"../gtFine/{dir}/{stem%_leftImg8bit}_gtFine_labelIds.png"`` for Cityscapes.
        companion_files: Paths of the companions of each of the `files`, in the place of `companions`: a list for each
            file, or all in one list, those of the first file first. An empty path is a companion that is missing.
        missing_companions: What to do about images whose companion does not exist, once for all or for each of them:
            ``"error"`` (default): the sample is bad; ``"empty"``: its output has no bytes; a path, relative to
            `file_root`: that file takes its place.
        on_error: What to do about files that are missing, empty, unreadable, of no known image format or found damaged
            by `check`: ``"raise"``, ``"skip"`` (a good sample of the same format replaces them) or ``"substitute"``
            (the file `substitute` replaces them, with the label of the bad file).
        substitute: Path of a file, for ``on_error="substitute"``. Cannot be combined with `companions`.
        on_mismatch: What to do about a checkpoint made with other files, or with other arguments that the order
            follows from: ``"raise"`` (default); ``"redistribute"``: what shards of another number, batch size, padding
            or `cache_size` have left of the epoch is dealt to the shards that there are now, each sample once; or
            ``"ignore"``: the reader goes on with the batch of that number.
        check: How closely images are checked. ``"none"`` (default). ``"headers"``: files must contain everything that a
            decoder needs before the pixels, and be as long as their header says. ``"content"``: also, each time a file
            is read from disk, checks all checksums of L3 and PNG files, and whether JPEG and TIFF files are cut off.
        equal_sizes: Whether companions must have the height and width of their image, as the headers of L3, PNG, JPEG,
            BMP, TIFF, WebP, PNM and NPY files say, before a rotation by EXIF. A sample where they differ is bad; it is
            found each time that it is read from disk.
        strict: Whether likely mistakes that `fn.readers.file` accepts silently (hidden folders, class folders without
            files, dangling links, files listed twice) are errors.
        use_o_direct: Whether to bypass the page cache. By default False, and True in `liquid`.
        read_threads: Number of threads that read files, 8 by default, at most 1024.
        prefetch_queue_depth: Batches that are read ahead; by default as many as hold 64 images, at least one.
        file_filters: Patterns of the names of files in class folders. The default is that of `fn.readers.file`, and
            ``*.l3``.

        label_columns: How many numbers a label has, to be delivered as float32: those at the end of each line of
            `file_list`, or `label_values`. By default, labels are integers.
        label_values: The labels of the `files` as numbers: of shape (files,), (files, label_columns), or all in one
            list, those of the first file first.

        catalogue: A catalogue, as ``dali-l3 index SOURCE -o train.l3cat`` makes it of a folder, a list or shards, in
            the place of these and of all other arguments that say which samples there are: see docs/catalogue.md. The
            reader is ready at once, and looks at no file before it reads it.
        paths: Tar archives, the shards of webdataset, that hold the samples, in the place of `file_root`: a path, a
            pattern such as ``"train-*.tar"``, a range such as ``"train-{000..015}.tar"``, a text file named ``*.txt``
            that lists these, or a list of such.
        index_paths: The indices of the archives, in the same forms. By default, the file beside each archive, with
            ``.idx`` in the place of ``.tar``; where there is none, it is made, once. See the command ``dali-l3 index``.
        ext: The extensions of the image and of each companion in the archives, such as ``["jpg;png", "seg.png"]``, with
            semicolons between alternatives.
        missing_component_behavior: What to do about samples in the archives that lack a component of `ext`:
            ``"empty"`` (default): the output of a companion has no bytes, and a sample without its image is bad;
            ``"skip"``: the sample is left out, also where it lacks its label; ``"error"``: the sample is bad.
        case_sensitive_extensions: Whether upper and lower case differ in `ext` and `label_ext`. True by default.
        label_ext: The extension of the files in the archives that hold the labels, such as ``"cls"``: an integer, or
            `label_columns` numbers, as text. Without it there is no output for labels.
        label_field: Where the label is if these files are in JSON: a key, or keys with dots between.

        subset: Which samples to read, in the order of the dataset: a list of indices into that order (from 0, without
            bad files left out); a list of paths, relative to `file_root` (of samples in archives: names such as
            ``"train-000.tar:0001.jpg"``), or the path of a text file with one on each line; a part of the dataset, such
            as 0.1; or where that part begins and ends, such as (0.9, 1.0). A part is drawn at random, holds the classes
            in proportion, and has no sample in common with parts that do not overlap it.
        subset_seed: Seed of the draw of parts, 0 by default. It does not depend on `seed`.
        weights: How often each sample is drawn in an epoch, compared with the others: a float32 that is not negative
            for each sample, in the order of the dataset (before a subset is taken and bad files are left out). With the
            share s of the sum of the weights, a sample is drawn s * epoch_size times in each epoch, rounded down or up,
            in turns.
        class_proportions: The proportions of the classes in an epoch, by label, or ``"balanced"`` for equal ones. The
            samples of a class take turns. Cannot be combined with `weights`.
        epoch_size: Samples of an epoch over all shards. By default as many as there are.

    `dali_l3.read_table` makes `files`, labels and `companion_files` of the columns of a CSV or Parquet file.

    The other arguments are those of `fn.readers.file`. Arguments that are None keep their default.

    Returns:
        list[DataNode]: The image files, the companions' files, each a one-dimensional tensor of uint8, and the labels,
        int32 of shape (1,), or float32 of shape (label_columns,). With `paths`, the components of `ext`, and the labels
        if `label_ext` is given; a single output is no list.

    Raises:
        RuntimeError: When the pipeline is built or runs. The message names the file and the reason.
        ValueError: When the pipeline is built with wrong arguments.
        TypeError, OSError: When an argument has another form, or `subset` names a file that cannot be read.
    """
    label_values, companion_files = _flat(label_values), _flat(companion_files)
    _, arguments = given(multi_format, locals())
    arguments = operator_arguments(arguments)
    _plugin.load()
    from nvidia.dali import fn

    return fn.readers.multi_format(**arguments)  # type: ignore[no-any-return]


def liquid(
    *,
    cache_size: int | str = 0,
    policy: Literal["liquid", "minio", "none"] | None = None,
    read_order: Literal["random", "sequential"] | None = None,
    companions: Sequence[str] | str | None = None,
    companion_files: Sequence[str] | Sequence[Sequence[str]] | None = None,
    missing_companions: Sequence[str] | str | None = None,
    on_error: Literal["raise", "skip", "substitute"] | None = None,
    substitute: StrPath | None = None,
    on_mismatch: Literal["raise", "redistribute", "ignore"] | None = None,
    check: Literal["none", "headers", "content"] | None = None,
    equal_sizes: bool | None = None,
    strict: bool | None = None,
    use_o_direct: bool | None = None,
    read_threads: int | None = None,
    file_root: StrPath | None = None,
    file_filters: Sequence[str] | str | None = None,
    dir_filters: Sequence[str] | str | None = None,
    case_sensitive_filter: bool | None = None,
    file_list: StrPath | None = None,
    files: Sequence[StrPath] | StrPath | NDArray[np.str_] | None = None,
    labels: ArrayLike | None = None,
    label_values: ArrayLike | None = None,
    label_columns: int | None = None,
    catalogue: StrPath | None = None,
    paths: Sequence[StrPath] | StrPath | None = None,
    index_paths: Sequence[StrPath] | StrPath | None = None,
    ext: Sequence[str] | str | None = None,
    missing_component_behavior: Literal["empty", "skip", "error"] | None = None,
    case_sensitive_extensions: bool | None = None,
    label_ext: str | None = None,
    label_field: str | None = None,
    subset: Subset | None = None,
    subset_seed: int | None = None,
    weights: ArrayLike | None = None,
    class_proportions: ArrayLike | Literal["balanced"] | None = None,
    epoch_size: int | None = None,
    random_shuffle: Literal[True] | None = None,
    initial_fill: int | None = None,
    seed: int | None = None,
    shuffle_after_epoch: bool | None = None,
    shuffle_after_epoch_seed: int | None = None,
    shard_id: int | None = None,
    num_shards: int | None = None,
    stick_to_shard: bool | None = None,
    pad_last_batch: bool | None = None,
    prefetch_queue_depth: int | None = None,
    lazy_init: bool | None = None,
    dont_use_mmap: bool | None = None,
    read_ahead: bool | None = None,
    skip_cached_images: bool | None = None,
    tensor_init_bytes: int | None = None,
    bytes_per_sample_hint: int | Sequence[int] | None = None,
    preserve: bool | None = None,
    device: Literal["cpu"] | None = None,
    name: str | None = None,
) -> list[DataNode]:
    """Reads files and their labels, and keeps some in memory, so that every batch reads the same share from disk.

    After Liquid (Baek et al., "Liquid: Mix-and-Match Multiple Image Formats to Balance DNN Training Pipeline", APSys
    2023), section 4.2. It shuffles the whole shard in every epoch, and each reader keeps its shard.

    Args:
        cache_size: Memory for files that are kept from epoch to epoch: bytes, a string such as ``"60GiB"``, or a part
            of the memory that this process may use, such as ``"50%"`` (limits of containers count). The reader needs
            more memory for files that the pipeline holds and that are read ahead. (`nvidia.dali.fn.readers.liquid`
            takes no part of the memory.)
        policy: ``"liquid"``: keep a part of every batch for the next epoch. ``"minio"``: keep a fixed random part of
            the shard. ``"none"``: keep nothing.
        read_order: ``"random"`` or, for disks on which seeking is slow, ``"sequential"``.

    The other arguments are those of `multi_format`, except `mix`, which is implied. Arguments that are None keep their
    default.

    Returns:
        list[DataNode]: As `multi_format`.

    Raises:
        ValueError, TypeError: When `cache_size` is not a size.
        RuntimeError, ValueError, TypeError, OSError: As `multi_format`.

    Warns:
        UserWarning: `cache_size` is more than the memory that is available.
    """
    cache_size = parse_size(cache_size, total_memory)
    available = available_memory()
    if cache_size > available:
        warnings.warn(
            f"cache_size is {cache_size / 1e9:.1f} GB, but {available / 1e9:.1f} GB of memory are available now: "
            "the process may be killed when the cache fills",
            stacklevel=2,
        )
    label_values, companion_files = _flat(label_values), _flat(companion_files)
    _, arguments = given(liquid, locals())
    arguments = operator_arguments(arguments)
    _plugin.load()
    from nvidia.dali import fn

    return fn.readers.liquid(**arguments)  # type: ignore[no-any-return]


def _flat(values: Any) -> Any:
    """Nested sequences or an array as one list, as DALI takes it."""
    return None if values is None else np.asarray(values).ravel().tolist()
