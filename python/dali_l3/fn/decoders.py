"""Decoders: `l3`."""

from .. import _plugin


def l3(*inputs, **arguments):
    """Decodes L3 images, like `nvidia.dali.fn.decoders.image` in *HWC* layout.

    A region of interest can be given as for `fn.decoders.image_crop` (``crop``, or ``crop_h`` and ``crop_w``; with
    ``crop_pos_x``, ``crop_pos_y`` and ``rounding``) or as for `fn.decoders.image_slice` (``start`` or ``rel_start``
    with ``end``, ``rel_end``, ``shape`` or ``rel_shape``; or the inputs `anchor` and `shape`, with
    ``normalized_anchor`` and ``normalized_shape``; for the axes in ``axes`` or ``axis_names``). It must be inside the
    image. Only the tiles that it touches are decoded.

    Args:
        *inputs: The encoded files, one-dimensional tensors of uint8; then optionally `anchor` and `shape`.
        output_type: `DALIImageType` of the output; RGB by default. ANY_DATA keeps the channels of the file.
        dtype: `DALIDataType` of the output; UINT8 by default. 16-bit samples are scaled as DALI does; UINT16 keeps
            them.
        verify: Whether to check the checksums of the tiles that are decoded, if the file has them; True by default,
            for all profiles.
        on_error: What to do about files that cannot be decoded: ``"raise"`` (default), or ``"zeros"``, which puts zeros
            in their place, reports each file once on standard error, and adds an output that says which samples are
            valid. Zeros have the shape that the image would have had. If the file does not tell, they have the shape
            for the first good image of the batch, or else for one pixel.
        device: "cpu" or "mixed". The files are in host memory in either case; with "mixed" they are decoded on the GPU.
        **arguments: Arguments of the region, and those that all operators take (``name``, ``preserve``, …).

    Returns:
        DataNode: The images, (height, width, channels), in device memory with "mixed"; with ``on_error="zeros"`` a list
        of these and of a scalar of type bool for each sample, True where it is valid, in the same memory.

    Raises:
        RuntimeError: When the pipeline runs: a file cannot be decoded (unless it becomes zeros), or a region is not
            inside a good image. The message names the file and the reason.
        ValueError: When the arguments are wrong.
    """
    _plugin.load()
    from nvidia.dali import fn

    return fn.decoders.l3(*inputs, **arguments)
