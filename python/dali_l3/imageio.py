"""L3 for imageio: ``iio.imread("image.l3")`` and ``iio.imwrite("image.l3", array)``.

imageio finds its plugins in tables of its own, so a program has to import dali_l3, which enters this one along with
``imageio.config``; the order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from imageio.core.request import URI_BYTES, InitializationError, Request
from imageio.core.v3_plugin_api import ImageProperties, PluginV3

from .codec import Profile, decode, encode, peek, read_metadata
from .errors import L3Error

if TYPE_CHECKING:
    from types import EllipsisType

    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Buffer

    from ._arguments import Roi

    Index = int | EllipsisType | None


_HEADER = 48  # bytes


class L3Plugin(PluginV3):
    """Reads and writes L3 files, which hold one image each."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        if request.mode.io_mode == "w":
            if request.extension != ".l3":
                raise InitializationError(f"L3 files end in .l3, not in {request.extension}")
            return
        file = request.get_file()
        head: bytes = file.read(_HEADER)
        try:
            self._facts = peek(head)
        except L3Error as error:
            if error.status == "signature":
                raise InitializationError(f"{self._name}: {error}") from error
            raise OSError(f"{self._name}: {error}") from error
        self._data = head + file.read()

    def read(self, *, index: Index = None, roi: Roi | None = None, verify: bool | None = None) -> NDArray[Any]:
        """Decodes the image; with ``index=...`` as a batch of one. `roi` and `verify` are those of `dali_l3.decode`."""
        _check_index(index)
        try:
            image = decode(self._data, None, roi, verify)
        except L3Error as error:
            raise OSError(f"{self._name}: {error}") from error
        return image[None] if index is ... else image

    def iter(self, **arguments: Any) -> Iterator[NDArray[Any]]:
        """Yields the image. Takes the arguments of `read`."""
        yield self.read(**arguments)

    def write(
        self,
        ndimage: ArrayLike | list[ArrayLike],
        *,
        profile: Profile = "fast",
        effort: int = 2,
        metadata: Mapping[str, Buffer] | None = None,
        checksums: bool = True,
    ) -> bytes | None:
        """Encodes one image; the arguments are those of `dali_l3.encode`."""
        if isinstance(ndimage, (list, tuple)):
            raise ValueError(f"an L3 file holds one image, as an array; this is a {type(ndimage).__name__}")
        data = encode(ndimage, profile, effort, metadata, checksums)
        self.request.get_file().write(data)
        return data if self.request._uri_type == URI_BYTES else None

    def properties(self, index: Index = None) -> ImageProperties:
        """Shape and dtype of what `read` returns, from the header."""
        _check_index(index)
        batch = (1,) if index is ... else ()
        return ImageProperties(
            shape=batch + self._facts.shape,
            dtype=self._facts.dtype,
            n_images=1 if batch else None,
            is_batch=bool(batch),
        )

    def metadata(self, index: Index = None, exclude_applied: bool = True) -> dict[str, Any]:
        """The metadata beside the pixels, as bytes by name. None of it is applied to them."""
        _check_index(index)
        try:
            return dict(read_metadata(self._data))
        except L3Error as error:
            raise OSError(f"{self._name}: {error}") from error

    @property
    def _name(self) -> str:
        return "<bytes>" if self.request._uri_type == URI_BYTES else str(self.request.raw_uri)


def _check_index(index: Index) -> None:
    if index not in (0, None, ...):
        raise ValueError(f"an L3 file holds one image, which has index 0, not {index}")
