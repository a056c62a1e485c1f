"""Readers: `multi_format` and `liquid`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from .. import _plugin
from ..sizes import parse_size
from ._given import given

if TYPE_CHECKING:
    from nvidia.dali.data_node import DataNode


def multi_format(
    *,
    mix: Literal["dataset"] | None = None,
    companions: Sequence[str] | str | None = None,
    on_error: Literal["raise", "skip", "substitute"] | None = None,
    substitute: str | None = None,
    check: Literal["none", "headers", "content"] | None = None,
    strict: bool | None = None,
    use_o_direct: bool | None = None,
    read_threads: int | None = None,
    file_root: str | None = None,
    file_filters: Sequence[str] | str | None = None,
    dir_filters: Sequence[str] | str | None = None,
    case_sensitive_filter: bool | None = None,
    file_list: str | None = None,
    files: Sequence[str] | str | None = None,
    labels: Sequence[int] | int | None = None,
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

    Takes the arguments of `fn.readers.file` and, without `mix`, delivers the same samples in the same order.

    Args:
        mix: ``"dataset"`` for batches that hold the formats, as told by the files' signatures, in the proportions that
            they have in the shard: the floor or the ceiling of each one's share, all ending the epoch together. None
            (default) for the order of `fn.readers.file`.
        companions: Path templates of files that belong to each image, such as ``"../masks/{dir}/{stem}.png"``, relative
            to `file_root`, with the fields dir, stem, name and relpath. Each stands for one more output.
        on_error: What to do about files that are missing, empty, unreadable, of no known image format or found damaged
            by `check`: ``"raise"``, ``"skip"`` (a good sample of the same format takes their place) or ``"substitute"``
            (the file `substitute` does, with the label of the bad one).
        substitute: Path of a file, for ``on_error="substitute"``. It has no companions, so `companions` rule it out.
        check: How closely images are looked at: ``"none"`` (default); ``"headers"``: whether files hold what a decoder
            needs before the pixels, and are as long as that says; ``"content"``: also, each time that a file is read
            from disk, all checksums of L3 and PNG files, and whether JPEG and TIFF files are cut off.
        strict: Whether what `fn.readers.file` silently passes over (hidden folders, class folders without files,
            dangling links, files listed twice) is an error.
        use_o_direct: Whether to read past the page cache.
        read_threads: Threads that read files.

    The other arguments are those of `fn.readers.file`. What is None keeps its default.

    Returns:
        list[DataNode]: The image files, the companions' files, each a one-dimensional tensor of uint8, and the labels,
        int32 of shape (1,).

    Raises:
        RuntimeError: When the pipeline is built or runs, with the file's name and what is wrong with it.
        ValueError: When the pipeline is built with arguments that make no sense.
    """
    _, arguments = given(multi_format, locals())
    _plugin.load()
    from nvidia.dali import fn

    return fn.readers.multi_format(**arguments)  # type: ignore[no-any-return]


def liquid(
    *,
    cache_size: int | str = 0,
    policy: Literal["liquid", "minio", "none"] | None = None,
    read_order: Literal["random", "sequential"] | None = None,
    companions: Sequence[str] | str | None = None,
    on_error: Literal["raise", "skip", "substitute"] | None = None,
    substitute: str | None = None,
    check: Literal["none", "headers", "content"] | None = None,
    strict: bool | None = None,
    use_o_direct: bool | None = None,
    read_threads: int | None = None,
    file_root: str | None = None,
    file_filters: Sequence[str] | str | None = None,
    dir_filters: Sequence[str] | str | None = None,
    case_sensitive_filter: bool | None = None,
    file_list: str | None = None,
    files: Sequence[str] | str | None = None,
    labels: Sequence[int] | int | None = None,
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
    """Reads files and their labels so that every batch takes the same part from memory and from disk.

    After Liquid (Baek et al., "Liquid: Mix-and-Match Multiple Image Formats to Balance DNN Training Pipeline", APSys
    2023), section 4.2. Always shuffles the whole shard for every epoch, and keeps its shard.

    Args:
        cache_size: Memory for what is kept from epoch to epoch: bytes, or a string such as ``"60GiB"``. What the
            pipeline holds and what is read ahead comes on top.
        policy: ``"liquid"``: a part of every batch is kept for the next epoch. ``"minio"``: a fixed random part of the
            shard is kept for good. ``"none"``: nothing is kept.
        read_order: ``"random"`` or, for disks on which seeking is slow, ``"sequential"``.

    The other arguments are those of `multi_format`, except `mix`, which is implied. What is None keeps its default.

    Returns:
        list[DataNode]: As `multi_format`.

    Raises:
        ValueError, TypeError: When `cache_size` is no size.
        RuntimeError, ValueError: As `multi_format`.
    """
    cache_size = parse_size(cache_size)
    _, arguments = given(liquid, locals())
    _plugin.load()
    from nvidia.dali import fn

    return fn.readers.liquid(**arguments)  # type: ignore[no-any-return]
