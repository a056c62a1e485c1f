from collections.abc import Sequence
from typing import Literal, overload

from nvidia.dali.data_node import DataNode
from nvidia.dali.types import DALIDataType, DALIImageType

@overload
def l3(
    data: DataNode,
    anchor: DataNode | Sequence[float] = ...,
    shape_input: DataNode | Sequence[float] = ...,
    /,
    *,
    device: Literal["cpu", "mixed"] = ...,
    output_type: DALIImageType = ...,
    dtype: DALIDataType = ...,
    verify: bool = ...,
    on_error: Literal["raise"] = ...,
    crop: DataNode | Sequence[float] | float = ...,
    crop_h: DataNode | float = ...,
    crop_w: DataNode | float = ...,
    crop_pos_x: DataNode | float = ...,
    crop_pos_y: DataNode | float = ...,
    rounding: Literal["round", "truncate"] = ...,
    start: DataNode | Sequence[int] | int = ...,
    rel_start: DataNode | Sequence[float] | float = ...,
    end: DataNode | Sequence[int] | int = ...,
    rel_end: DataNode | Sequence[float] | float = ...,
    shape: DataNode | Sequence[int] | int = ...,
    rel_shape: DataNode | Sequence[float] | float = ...,
    axes: DataNode | Sequence[int] | int = ...,
    axis_names: str = ...,
    normalized_anchor: bool = ...,
    normalized_shape: bool = ...,
    bytes_per_sample_hint: int | Sequence[int] = ...,
    preserve: bool = ...,
    name: str = ...,
) -> DataNode:
    """Decodes L3 images, like `nvidia.dali.fn.decoders.image` in *HWC* layout."""

@overload
def l3(
    data: DataNode,
    anchor: DataNode | Sequence[float] = ...,
    shape_input: DataNode | Sequence[float] = ...,
    /,
    *,
    device: Literal["cpu", "mixed"] = ...,
    output_type: DALIImageType = ...,
    dtype: DALIDataType = ...,
    verify: bool = ...,
    on_error: Literal["zeros"],
    crop: DataNode | Sequence[float] | float = ...,
    crop_h: DataNode | float = ...,
    crop_w: DataNode | float = ...,
    crop_pos_x: DataNode | float = ...,
    crop_pos_y: DataNode | float = ...,
    rounding: Literal["round", "truncate"] = ...,
    start: DataNode | Sequence[int] | int = ...,
    rel_start: DataNode | Sequence[float] | float = ...,
    end: DataNode | Sequence[int] | int = ...,
    rel_end: DataNode | Sequence[float] | float = ...,
    shape: DataNode | Sequence[int] | int = ...,
    rel_shape: DataNode | Sequence[float] | float = ...,
    axes: DataNode | Sequence[int] | int = ...,
    axis_names: str = ...,
    normalized_anchor: bool = ...,
    normalized_shape: bool = ...,
    bytes_per_sample_hint: int | Sequence[int] = ...,
    preserve: bool = ...,
    name: str = ...,
) -> list[DataNode]:
    """The same with zeros in the place of images that cannot be decoded, and which samples are valid."""
