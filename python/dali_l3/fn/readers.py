"""Readers: `multi_format` and `liquid`."""

from __future__ import annotations

import warnings

from .. import _plugin
from ..memory import available_memory, total_memory
from ..sizes import parse_size


def multi_format(**arguments):
    """Reads files and their labels, like `nvidia.dali.fn.readers.file`, from a dataset of several image formats.

    Takes the arguments of `fn.readers.file` and, without `mix`, delivers the same samples in the same order.

    Args:
        mix: ``"dataset"`` for batches that hold the formats, as told by the files' signatures, in the proportions that
            they have in the shard: the floor or the ceiling of each one's share, all ending the epoch together. None
            (default) for the order of `fn.readers.file`.
        companions: Path templates of files that belong to each image, such as ``"../masks/{dir}/{stem}.png"``, relative
            to `file_root`, with the fields dir, stem, name and relpath. Each stands for one more output. Fields may be
            edited as in a shell: ``"../gtFine/{dir}/{stem%_leftImg8bit}_gtFine_labelIds.png"`` for Cityscapes.
        missing_companions: What to do about images whose companion does not exist, once for all or for each of them:
            ``"error"`` (default): the sample is bad; ``"empty"``: its output has no bytes; a path, relative to
            `file_root`: that file takes its place.
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
        **arguments: Those of `fn.readers.file`.

    Returns:
        list[DataNode]: The image files, the companions' files, each a one-dimensional tensor of uint8, and the labels,
        int32 of shape (1,).

    Raises:
        RuntimeError: When the pipeline is built or runs, with the file's name and what is wrong with it.
        ValueError: When the pipeline is built with arguments that make no sense.
    """
    _plugin.load()
    from nvidia.dali import fn

    return fn.readers.multi_format(**arguments)


def liquid(*, cache_size: int | str = 0, **arguments):
    """Reads files and their labels so that every batch takes the same part from memory and from disk.

    After Liquid (Baek et al., "Liquid: Mix-and-Match Multiple Image Formats to Balance DNN Training Pipeline", APSys
    2023), section 4.2. Always shuffles the whole shard for every epoch, and keeps its shard.

    Args:
        cache_size: Memory for what is kept from epoch to epoch: bytes, or a string such as ``"60GiB"``, or a part of
            the memory that this process may use, such as ``"50%"`` (limits of containers count). What the pipeline
            holds and what is read ahead comes on top. (`nvidia.dali.fn.readers.liquid` takes bytes only.)
        policy: ``"liquid"``: a part of every batch is kept for the next epoch. ``"minio"``: a fixed random part of the
            shard is kept for good. ``"none"``: nothing is kept.
        read_order: ``"random"`` or, for disks on which seeking is slow, ``"sequential"``.
        **arguments: Those of `multi_format`, except `mix`, which is implied.

    Returns:
        list[DataNode]: As `multi_format`.

    Raises:
        ValueError, TypeError: When `cache_size` is no size.

    Warns:
        UserWarning: `cache_size` is more than the memory that is available.
        RuntimeError, ValueError: As `multi_format`.
    """
    _plugin.load()
    from nvidia.dali import fn

    size = parse_size(cache_size, total_memory)
    available = available_memory()
    if size > available:
        warnings.warn(
            f"cache_size is {size / 1e9:.1f} GB, but {available / 1e9:.1f} GB of memory are available now: "
            "the process may be killed when the cache fills",
            stacklevel=2,
        )
    return fn.readers.liquid(cache_size=size, **arguments)
