"""Readers: `multi_format` and `liquid`."""

from __future__ import annotations

import warnings

from .. import _plugin
from ..memory import available_memory, total_memory
from ..sizes import parse_size


def multi_format(**arguments):
    """Reads files and their labels, like `nvidia.dali.fn.readers.file`, from a dataset of several image formats.

    Takes the arguments of `fn.readers.file`. Without `mix`, it delivers the same samples in the same order.

    Args:
        mix: ``"dataset"`` for batches that hold the formats in the proportions of the shard: the floor or the ceiling
            of the share of each, so that all formats end the epoch together. The signatures of the files decide their
            format. None (default) for the order of `fn.readers.file`.
        companions: Path templates of files that belong to each image, such as ``"../masks/{dir}/{stem}.png"``, relative
            to `file_root`, with the fields dir, stem, name and relpath. Each adds one output. Fields can be edited as
            in a shell: ``"../gtFine/{dir}/{stem%_leftImg8bit}_gtFine_labelIds.png"`` for Cityscapes.
        missing_companions: What to do about images whose companion does not exist, once for all or for each of them:
            ``"error"`` (default): the sample is bad; ``"empty"``: its output has no bytes; a path, relative to
            `file_root`: that file takes its place.
        on_error: What to do about files that are missing, empty, unreadable, of no known image format or found damaged
            by `check`: ``"raise"``, ``"skip"`` (a good sample of the same format replaces them) or ``"substitute"``
            (the file `substitute` replaces them, with the label of the bad file).
        substitute: Path of a file, for ``on_error="substitute"``. Cannot be combined with `companions`.
        check: How closely images are checked. ``"none"`` (default). ``"headers"``: files must contain everything that a
            decoder needs before the pixels, and be as long as their header says. ``"content"``: also, each time a file
            is read from disk, checks all checksums of L3 and PNG files, and whether JPEG and TIFF files are cut off.
        strict: Whether likely mistakes that `fn.readers.file` accepts silently (hidden folders, class folders without
            files, dangling links, files listed twice) are errors.
        use_o_direct: Whether to bypass the page cache.
        read_threads: Number of threads that read files.
        **arguments: Arguments of `fn.readers.file`.

    Returns:
        list[DataNode]: The image files, the companions' files, each a one-dimensional tensor of uint8, and the labels,
        int32 of shape (1,).

    Raises:
        RuntimeError: When the pipeline is built or runs. The message names the file and the reason.
        ValueError: When the pipeline is built with wrong arguments.
    """
    _plugin.load()
    from nvidia.dali import fn

    return fn.readers.multi_format(**arguments)


def liquid(*, cache_size: int | str = 0, **arguments):
    """Reads files and their labels, and keeps some in memory, so that every batch reads the same share from disk.

    After Liquid (Baek et al., "Liquid: Mix-and-Match Multiple Image Formats to Balance DNN Training Pipeline", APSys
    2023), section 4.2. It shuffles the whole shard in every epoch, and each reader keeps its shard.

    Args:
        cache_size: Memory for files that are kept from epoch to epoch: bytes, a string such as ``"60GiB"``, or a part
            of the memory that this process may use, such as ``"50%"`` (limits of containers count). The reader needs
            more memory for files that the pipeline holds and that are read ahead. (`nvidia.dali.fn.readers.liquid`
            takes bytes only.)
        policy: ``"liquid"``: keep a part of every batch for the next epoch. ``"minio"``: keep a fixed random part of
            the shard. ``"none"``: keep nothing.
        read_order: ``"random"`` or, for disks on which seeking is slow, ``"sequential"``.
        **arguments: Arguments of `multi_format`, except `mix`, which is implied.

    Returns:
        list[DataNode]: As `multi_format`.

    Raises:
        ValueError, TypeError: When `cache_size` is not a size.

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
