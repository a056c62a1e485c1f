"""Decoders: `l3`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .. import _plugin
from ._given import given

if TYPE_CHECKING:
    import numpy.typing as npt
    from nvidia.dali.data_node import DataNode
    from nvidia.dali.types import DALIDataType, DALIImageType


def _as_int32(windows: npt.ArrayLike) -> npt.NDArray[np.int32]:
    # DALI takes no constants of 64 bits.
    try:
        given = np.asarray(windows)
    except ValueError:  # rows of several lengths
        given = np.array(None)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"`windows` must be rows of four integers, not {windows!r:.200}")
    with np.errstate(invalid="ignore"):
        numbers = given.astype(np.int32)
    if not np.array_equal(given, numbers):
        raise ValueError("`windows` must be whole numbers of pixels, of 32 bits")
    return numbers


@overload
def l3(
    data: DataNode,
    anchor: DataNode | Sequence[float] | None = None,
    shape_input: DataNode | Sequence[float] | None = None,
    /,
    *,
    device: Literal["cpu", "mixed"] | None = None,
    output_type: DALIImageType | None = None,
    dtype: DALIDataType | None = None,
    verify: bool | None = None,
    on_error: Literal["raise"] | None = None,
    crop: DataNode | Sequence[float] | float | None = None,
    crop_h: DataNode | float | None = None,
    crop_w: DataNode | float | None = None,
    crop_pos_x: DataNode | float | None = None,
    crop_pos_y: DataNode | float | None = None,
    rounding: Literal["round", "truncate"] | None = None,
    start: DataNode | Sequence[int] | int | None = None,
    rel_start: DataNode | Sequence[float] | float | None = None,
    end: DataNode | Sequence[int] | int | None = None,
    rel_end: DataNode | Sequence[float] | float | None = None,
    shape: DataNode | Sequence[int] | int | None = None,
    rel_shape: DataNode | Sequence[float] | float | None = None,
    axes: DataNode | Sequence[int] | int | None = None,
    axis_names: str | None = None,
    normalized_anchor: bool | None = None,
    normalized_shape: bool | None = None,
    windows: DataNode | npt.ArrayLike | None = None,
    bytes_per_sample_hint: int | Sequence[int] | None = None,
    preserve: bool | None = None,
    name: str | None = None,
) -> DataNode: ...
@overload
def l3(
    data: DataNode,
    anchor: DataNode | Sequence[float] | None = None,
    shape_input: DataNode | Sequence[float] | None = None,
    /,
    *,
    device: Literal["cpu", "mixed"] | None = None,
    output_type: DALIImageType | None = None,
    dtype: DALIDataType | None = None,
    verify: bool | None = None,
    on_error: Literal["zeros"],
    crop: DataNode | Sequence[float] | float | None = None,
    crop_h: DataNode | float | None = None,
    crop_w: DataNode | float | None = None,
    crop_pos_x: DataNode | float | None = None,
    crop_pos_y: DataNode | float | None = None,
    rounding: Literal["round", "truncate"] | None = None,
    start: DataNode | Sequence[int] | int | None = None,
    rel_start: DataNode | Sequence[float] | float | None = None,
    end: DataNode | Sequence[int] | int | None = None,
    rel_end: DataNode | Sequence[float] | float | None = None,
    shape: DataNode | Sequence[int] | int | None = None,
    rel_shape: DataNode | Sequence[float] | float | None = None,
    axes: DataNode | Sequence[int] | int | None = None,
    axis_names: str | None = None,
    normalized_anchor: bool | None = None,
    normalized_shape: bool | None = None,
    windows: DataNode | npt.ArrayLike | None = None,
    bytes_per_sample_hint: int | Sequence[int] | None = None,
    preserve: bool | None = None,
    name: str | None = None,
) -> list[DataNode]: ...
def l3(
    data: DataNode,
    anchor: DataNode | Sequence[float] | None = None,
    shape_input: DataNode | Sequence[float] | None = None,
    /,
    *,
    device: Literal["cpu", "mixed"] | None = None,
    output_type: DALIImageType | None = None,
    dtype: DALIDataType | None = None,
    verify: bool | None = None,
    on_error: Literal["raise", "zeros"] | None = None,
    crop: DataNode | Sequence[float] | float | None = None,
    crop_h: DataNode | float | None = None,
    crop_w: DataNode | float | None = None,
    crop_pos_x: DataNode | float | None = None,
    crop_pos_y: DataNode | float | None = None,
    rounding: Literal["round", "truncate"] | None = None,
    start: DataNode | Sequence[int] | int | None = None,
    rel_start: DataNode | Sequence[float] | float | None = None,
    end: DataNode | Sequence[int] | int | None = None,
    rel_end: DataNode | Sequence[float] | float | None = None,
    shape: DataNode | Sequence[int] | int | None = None,
    rel_shape: DataNode | Sequence[float] | float | None = None,
    axes: DataNode | Sequence[int] | int | None = None,
    axis_names: str | None = None,
    normalized_anchor: bool | None = None,
    normalized_shape: bool | None = None,
    windows: DataNode | npt.ArrayLike | None = None,
    bytes_per_sample_hint: int | Sequence[int] | None = None,
    preserve: bool | None = None,
    name: str | None = None,
) -> Any:
    """Decodes L3 images, like `nvidia.dali.fn.decoders.image` in *HWC* layout.

    A region of interest can be given as for `fn.decoders.image_crop` (``crop``, or ``crop_h`` and ``crop_w``; with
    ``crop_pos_x``, ``crop_pos_y`` and ``rounding``) or as for `fn.decoders.image_slice` (``start`` or ``rel_start``
    with ``end``, ``rel_end``, ``shape`` or ``rel_shape``; or the inputs `anchor` and `shape_input`, with
    ``normalized_anchor`` and ``normalized_shape``; for the axes in ``axes`` or ``axis_names``). It must be inside the
    image. Only the tiles that it touches are decoded. ``windows`` gives several regions of each image instead.

    Args:
        data: The encoded files, one-dimensional tensors of uint8.
        anchor, shape_input: Start and size of the region, a number for each axis: those of x and y, unless ``axes`` or
            ``axis_names`` name others. Integers are pixels; floats are parts of the image's size, or pixels with
            ``normalized_anchor=False`` and ``normalized_shape=False``.
        windows: Several regions of each image, integers of shape (N, 4): rows of y, x, height and width, pixels. The
            regions of a sample must be of one size; N may differ from sample to sample, and be 0. A tile that several
            regions touch is decoded once; with "mixed" once for each.
        output_type: `DALIImageType` of the output; RGB by default. ANY_DATA keeps the channels of the file.
        dtype: `DALIDataType` of the output; UINT8 by default. 16-bit samples are scaled as DALI does; UINT16 keeps
            them. FLOAT and FLOAT16 are 0 to 1.
        verify: Whether to check the checksums of the tiles that are decoded, if the file has them; True by default,
            for all profiles.
        on_error: What to do about files that cannot be decoded: ``"raise"`` (default), or ``"zeros"``, which puts zeros
            in their place, reports each file once on standard error, and adds an output that says which samples are
            valid. Zeros have the shape that the image would have had. If the file does not tell, they have the shape
            for the first good image of the batch, or else for one pixel.
        device: "cpu" or "mixed". The files are in host memory in either case; with "mixed" they are decoded on the GPU.
        bytes_per_sample_hint, preserve, name: As all operators of DALI.

    Arguments that are None keep DALI's default.

    Returns:
        DataNode: The images, (height, width, channels), in device memory with "mixed"; with ``windows``
        (N, height, width, channels) in layout *FHWC*. With ``on_error="zeros"`` a list of these and of a scalar of type
        bool for each sample, True where it is valid, in the same memory.

    Raises:
        RuntimeError: When the pipeline runs: a file cannot be decoded (unless it becomes zeros), or a region is not
            inside a good image. The message names the file and the reason.
        ValueError: When the arguments are wrong.
    """
    inputs, arguments = given(l3, locals())
    _plugin.load()
    from nvidia.dali import fn
    from nvidia.dali.data_node import DataNode

    if windows is not None and not isinstance(windows, DataNode):
        arguments["windows"] = _as_int32(windows)
    return fn.decoders.l3(*inputs, **arguments)
