"""L3 for Pillow: ``Image.open("image.l3")`` and ``image.save("image.l3")``.

Pillow finds its formats among its own modules only, so a program has to import dali_l3, which imports this module along
with ``PIL.Image``; the order does not matter.

Images of 8 bits have the modes L, LA, RGB and RGBA, gray ones of 16 bits I;16. Pillow has no mode for 16-bit colours:
such files are refused, and `dali_l3.imread` reads them. ICC profile, EXIF data and XMP are found in ``info`` as with
PNG; ``save`` takes ``profile``, ``effort``, ``metadata`` and ``checksums`` as `dali_l3.encode` does, and
``icc_profile``, ``exif`` and ``xmp`` as for PNG.
"""

from __future__ import annotations

from typing import IO, Any

from PIL import Image, ImageFile, UnidentifiedImageError

from .codec import ImageInfo, decode, encode, peek, read_metadata
from .errors import L3Error

FORMAT = "L3"
_SIGNATURES = (b"\x89L3I\r\n\x1a\n", b"LLL.")  # the second is the published prototype's
_HEADER = 48  # bytes
_EXIF_PREFIX = b"Exif\0\0"  # which Pillow puts before the TIFF structure and L3 does not
_METADATA = {"icc": "icc_profile", "exif": "exif", "xmp": "xmp"}
_MODES = {(1, 8): "L", (2, 8): "LA", (3, 8): "RGB", (4, 8): "RGBA", (1, 16): "I;16"}


class L3ImageFile(ImageFile.ImageFile):
    """An L3 file, whose pixels are decoded when they are needed."""

    format = FORMAT
    format_description = "L3 lossless image"

    def _open(self) -> None:
        assert self.fp is not None
        try:
            info = peek(self.fp.read(_HEADER))
            if info.metadata_size:
                self.fp.seek(0)
                self.info = _info(read_metadata(self.fp.read()))
        except L3Error as error:
            raise UnidentifiedImageError(f"{_name(self)}: {error}") from error
        self._size = info.width, info.height
        self._mode = _mode(info, _name(self))
        tile = ("l3", (0, 0, *self._size), 0, (_name(self),))
        self.tile = [tile]  # type: ignore[list-item]  # Pillow 10 has no _Tile

    def verify(self) -> None:
        """Checks the whole file by decoding it. Raises OSError."""
        assert self.fp is not None
        self.fp.seek(0)
        _decode(self.fp, _name(self), verify=True)
        super().verify()


class L3Decoder(ImageFile.PyDecoder):
    """Decodes the pixels of an `L3ImageFile`, whose name is its argument."""

    _pulls_fd = True

    def decode(self, buffer: object) -> tuple[int, int]:
        assert self.fd is not None
        self.set_as_raw(_decode(self.fd, *self.args).data)
        return -1, 0


def _decode(file: IO[bytes], name: str, verify: bool | None = None) -> Any:
    try:
        return decode(file.read(), verify=verify)
    except L3Error as error:
        raise OSError(f"{name}: {error}") from error


def _name(image: ImageFile.ImageFile) -> str:
    return str(image.filename or "image")


def _mode(info: ImageInfo, name: str) -> str:
    bits = 8 * info.dtype.itemsize
    mode = _MODES.get((info.channels, bits))
    if mode is None:
        raise OSError(f"{name}: Pillow has no mode for {info.channels} channels of {bits} bits: use dali_l3.imread")
    return mode


def _info(metadata: dict[str, bytes]) -> dict[str | tuple[int, int], Any]:
    info: dict[str | tuple[int, int], Any] = {name: metadata[key] for key, name in _METADATA.items() if key in metadata}
    if "exif" in info:
        info["exif"] = _EXIF_PREFIX + info["exif"]
    return info


def _save(image: Image.Image, file: IO[bytes], filename: str | bytes) -> None:
    options = image.encoderinfo
    metadata = dict(options.get("metadata") or {})
    for key, name in _METADATA.items():
        value = options.get(name, image.info.get(name) if key == "icc" else None)
        if value is not None and key not in metadata:
            metadata[key] = value.tobytes() if isinstance(value, Image.Exif) else value
    if "exif" in metadata:
        metadata["exif"] = bytes(metadata["exif"]).removeprefix(_EXIF_PREFIX)
    arguments = {name: options[name] for name in ("profile", "effort", "checksums") if name in options}
    try:
        data = encode(image, metadata=metadata, **arguments)
    except TypeError as error:
        raise OSError(f"cannot write this image as L3: {error}") from error
    file.write(data)


def _accept(prefix: bytes) -> bool:
    return prefix.startswith(_SIGNATURES)


Image.register_open(FORMAT, L3ImageFile, _accept)
Image.register_decoder("l3", L3Decoder)
Image.register_save(FORMAT, _save)
Image.register_extension(FORMAT, ".l3")
Image.register_mime(FORMAT, "image/x-l3")
