"""Decoders: `l3`."""

from .. import _plugin


def l3(*inputs, **arguments):
    """Decodes L3 images, like `nvidia.dali.fn.decoders.image` in *HWC* layout.

    A region of interest may be given as to `fn.decoders.image_crop` (``crop``, or ``crop_h`` and ``crop_w``; with
    ``crop_pos_x``, ``crop_pos_y`` and ``rounding``) or as to `fn.decoders.image_slice` (``start`` or ``rel_start`` with
    ``end``, ``rel_end``, ``shape`` or ``rel_shape``; or the inputs `anchor` and `shape`, with ``normalized_anchor`` and
    ``normalized_shape``; for the axes that ``axes`` or ``axis_names`` names). It must lie inside the image. Only the
    tiles that it touches are decoded.

    Args:
        *inputs: The encoded files, one-dimensional tensors of uint8; then optionally `anchor` and `shape`.
        output_type: `DALIImageType` of the output; RGB by default. ANY_DATA keeps the channels of the file.
        dtype: `DALIDataType` of the output; UINT8 by default. 16-bit samples are scaled as DALI does; UINT16 keeps
            them.
        verify: Whether to check the checksums of the tiles that are decoded, where a file has them; True by default,
            for all profiles.
        device: "cpu" or "mixed". The files are in host memory in either case; with "mixed" they are decoded on the GPU.
        **arguments: Those of the region, and those that all operators take (``name``, ``preserve``, …).

    Returns:
        DataNode: The images, (height, width, channels), in device memory with "mixed".

    Raises:
        RuntimeError: When the pipeline runs, with the file's name and what is wrong with it.
    """
    _plugin.load()
    from nvidia.dali import fn

    return fn.decoders.l3(*inputs, **arguments)
