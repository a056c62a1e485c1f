"""A catalogue of broken L3 files, each with the status that every decoder must refuse it with.

Files are built from small images by the writer, checksums recomputed, so that the fault named is the only one in the
file.
`ODD` lists files that look broken but must decode.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from oracle import writer
from oracle.writer import Channel


class Broken(NamedTuple):
    """A file to refuse with `status`, in a message that contains `message` (letter case aside) where it is not None.

    `reader` says who must refuse it: "decode", "verify" (decoding with tile checksums), "metadata" or "open" (all
    three). `unverified` is the status of decoding without tile checksums where that refuses a "verify" file as well.
    """

    name: str
    build: Callable[[], bytes]
    status: str
    message: str | None = None
    reader: str = "decode"
    unverified: str = "ok"

    @property
    def verdicts(self) -> dict[str, str]:
        """What every use of the file must say, as in tests/data/broken.json."""
        refusing = {
            "open": ("decode", "verify", "metadata"),
            "decode": ("decode", "verify"),
            "verify": ("verify",),
            "metadata": ("metadata",),
        }[self.reader]
        return {"decode": self.unverified, "verify": "ok", "metadata": "ok"} | dict.fromkeys(refusing, self.status)


class Odd(NamedTuple):
    """A file that must decode to `image`."""

    name: str
    build: Callable[[], bytes]
    image: np.ndarray


def _image(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    """A smooth image with some noise."""
    values = np.indices(shape).sum(axis=0) * 3 + np.random.default_rng(1).integers(5, size=shape)
    return (values * (1 if dtype == np.uint8 else 200)).astype(dtype)


GRAY = _image(3, 5)
GRAY16 = _image(3, 5, dtype=np.uint16)
RGB = _image(3, 5, 3)
FOUR_TILES = _image(66, 70)
LABELS = np.array([[7, 7, 7, 9, 9], [7, 7, 8, 9, 9], [7, 7, 8, 7, 7]], np.uint8)
CONSTANT = np.full((3, 5), 9, np.uint8)
PROTOTYPE = _image(64, 128, 3)

_ENTRY = writer.metadata_entry(b"icc", b"a colour profile")


def _raw(image: np.ndarray = GRAY, **fields) -> bytes:
    return replace(writer.raw_file(image), **fields).to_bytes()


def _file_of(image: np.ndarray, profile: int, tiles: list[bytes], **fields) -> bytes:
    return writer.file_of_tiles(image, profile, tiles, **fields).to_bytes()


# ----------------------------------------------------------------------------------------------------------- containers


def _truncations() -> Iterator[Broken]:
    whole = writer.raw_file(FOUR_TILES, metadata=_ENTRY, extra_header=bytes(8), minor=1).to_bytes()
    offsets_at, checksums_at, metadata_at = 56, 56 + 20, 56 + 20 + 16
    payload_at = metadata_at + len(_ENTRY)
    lengths = {
        "empty file": 0,
        "ends within the signature": 5,
        "ends after the signature": 8,
        "ends within the fixed header": 47,
        "ends before the extra header": 48,
        "ends within the extra header": 55,
        "ends before the offset table": offsets_at,
        "ends within the offset table": offsets_at + 7,
        "ends before the checksum table": checksums_at,
        "ends within the checksum table": checksums_at + 4,
        "ends within the metadata": metadata_at + 9,
        "ends before the payload": payload_at,
        "ends within the payload": payload_at + 1000,
        "ends before the trailer": len(whole) - 16,
        "ends within the trailer": len(whole) - 1,
    }
    for name, length in lengths.items():
        yield Broken(name, lambda length=length: whole[:length], "truncated", reader="open")
    for name, size in (("payload's last byte", -17), ("trailer", -16), ("trailer's last byte", -1)):
        yield Broken(f"one tile, ends before the {name}", lambda size=size: _raw()[:size], "truncated", reader="open")
    for start in (b"L", b"LLL", b"\x89L3J", b"\x89L3I\r\n\x1a\r"):
        yield Broken(f"file of the bytes {start.hex()}", lambda start=start: start, "signature", reader="open")


def _forged_headers() -> Iterator[Broken]:
    def forged(name: str, status: str, message: str | None, **fields) -> Broken:
        return Broken(name, lambda: _raw(**fields), status, message, "open")

    yield forged("signature of another format", "signature", None, signature=b"\x89PNG\r\n\x1a\n")
    yield forged("signature mangled as text", "signature", None, signature=b"\x89L3I\n\x1a\n\0")
    yield forged("signature with bit 7 lost", "signature", None, signature=b"\x09L3I\r\n\x1a\n")
    yield forged("signature with another last byte", "signature", None, signature=b"\x89L3I\r\n\x1a\r")
    yield forged("major version 0", "unsupported", "version", major=0)
    yield forged("major version 2", "unsupported", "version", major=2)
    yield forged("header size 0", "corrupt", "header", header_size=0)
    yield forged("header size 44", "corrupt", "header", header_size=44)
    yield forged("header size 50", "corrupt", "header", header_size=50, minor=1, extra_header=bytes(2))
    yield forged("header size past the file", "truncated", None, header_size=0xFFFC, minor=1)
    for side in ("width", "height"):
        yield forged(f"{side} 0", "limit", None, **{side: 0})
        yield forged(f"{side} 2^20 + 1", "limit", None, **{side: 2**20 + 1})
        yield forged(f"{side} 2^32 - 1", "limit", None, **{side: 2**32 - 1})
        yield forged(f"{side} 2^20 in a tiny file", "truncated", None, **{side: 2**20})
    yield forged("image of 2^32 bytes", "limit", None, width=2**16, height=2**16)
    yield forged("image of 2^40 bytes", "limit", None, width=2**20, height=2**20)
    large = partial(_raw, _image(3, 5, 4, dtype=np.uint16), width=2**20, height=2**20)
    yield Broken("image of 2^43 bytes", large, "limit", reader="open")
    yield forged("image of 2^31 + 2^15 bytes", "limit", None, width=2**15, height=2**16 + 1)
    yield forged("image of 2^31 + 2 bytes", "limit", None, width=65026, height=33025)
    yield forged("image of 2^31 bytes in a tiny file", "truncated", None, width=2**15, height=2**16)
    rgb = partial(_raw, RGB, width=2**15, height=2**15)
    yield Broken("image of 3 times 2^30 bytes in three channels", rgb, "limit", reader="open")
    deep = partial(_raw, GRAY16, width=2**15)
    yield Broken("image of 2^31 + 2^16 bytes in 16 bits", partial(deep, height=2**15 + 1), "limit", reader="open")
    yield Broken(
        "image of 2^31 bytes in 16 bits in a tiny file", partial(deep, height=2**15), "truncated", reader="open"
    )
    yield forged("0 channels", "limit", "channels", channels=0)
    yield forged("5 channels", "limit", "channels", channels=5, two_dimensional=False)
    yield forged("255 channels", "limit", "channels", channels=255, two_dimensional=False)
    for bits in (0, 1, 7, 12, 24, 255):
        yield forged(f"{bits} bits per sample", "unsupported", "bits", bits=bits)
    for profile in (3, 4, 255):
        yield forged(f"profile {profile}", "unsupported", "profile", profile=profile)
    for channels in (2, 3, 4):
        flagged = partial(_raw, _image(3, 5, channels), two_dimensional=True)
        yield Broken(f"two-dimensional flag with {channels} channels", flagged, "corrupt", reader="open")
    for bit in range(2, 8):
        yield forged(f"flag bit {bit}", "unsupported", "flag", flags=3 | 1 << bit)
    yield forged("higher minor version with an unknown flag", "unsupported", "flag", minor=9, flags=0b111)
    for exponents in ((5, 6), (7, 6), (6, 5), (6, 7), (0, 6), (6, 255)):
        yield forged(f"tile exponents {exponents}", "unsupported", "tile", tile_exponents=exponents)
    yield forged("reserved field 1", "corrupt", "reserved", reserved=1)
    yield forged("reserved field 0x8000", "corrupt", "reserved", reserved=0x8000)
    yield forged("metadata size not a multiple of 4", "corrupt", "metadata", metadata=bytes(6))
    yield forged("metadata size 2^24 + 4", "limit", "metadata", metadata_size=2**24 + 4)
    yield forged("metadata size 2^32 - 4", "limit", "metadata", metadata_size=2**32 - 4)
    yield forged("metadata size 2^24 in a tiny file", "truncated", None, metadata_size=2**24)
    yield forged("payload size 2^32 - 4", "truncated", None, payload_size=2**32 - 4)
    yield forged("payload size not a multiple of 4", "corrupt", "payload", payload_size=18, trailer=bytes(32))
    yield forged(
        "payload size not a multiple of 4 in a file that ends early", "corrupt", "payload", payload_size=18, trailer=b""
    )
    yield forged("payload size 0", "corrupt", "offset", payload_size=0)
    yield forged("payload size 4 more", "corrupt", "offset", payload_size=20, trailer=bytes(20))
    yield forged("header checksum", "checksum", "header", header_crc=0)


def _several_faults() -> Iterator[Broken]:
    """Headers with two faults, the first of which is named first."""

    def forged(name: str, status: str, size: int | None = None, **fields) -> Broken:
        return Broken(name, lambda: _raw(**fields)[:size], status, reader="open")

    yield forged("47 bytes of major version 2", "truncated", 47, major=2)
    yield forged("major version 2, and header size 44", "unsupported", major=2, header_size=44)
    yield forged("major version 2, and a wrong header checksum", "unsupported", major=2, header_crc=1)
    yield forged("header size 44, and a wrong header checksum", "corrupt", header_size=44, header_crc=1)
    yield forged("wrong header checksum, and profile 3", "checksum", header_crc=1, profile=3)
    yield forged("wrong header checksum, and width 0", "checksum", header_crc=1, width=0)
    yield forged("wrong header checksum, and reserved field 1", "checksum", header_crc=1, reserved=1)
    yield forged("profile 3, and header size past the file", "unsupported", profile=3, header_size=0xFFFC)
    yield forged("width 0, and header size past the file", "limit", width=0, header_size=0xFFFC)
    yield forged("reserved field 1, and header size past the file", "corrupt", reserved=1, header_size=0xFFFC)
    yield forged("profile 3, and width 0", "unsupported", profile=3, width=0)
    yield forged("12 bits per sample, and height 0", "unsupported", bits=12, height=0)
    yield forged("flag bit 2, and 5 channels", "unsupported", flags=6, channels=5)
    yield forged("tile width exponent 7, and reserved field 1", "unsupported", tile_exponents=(7, 6), reserved=1)
    yield forged("tile height exponent 7, and metadata size 2^24 + 4", "unsupported", tile_exponents=(6, 7),
                 metadata_size=2**24 + 4)  # fmt: skip
    yield forged("tile width exponent 5, and width 0", "unsupported", tile_exponents=(5, 6), width=0)
    yield forged("5 channels, and two-dimensional flag", "limit", channels=5)
    yield forged("width 0, and reserved field 1", "limit", width=0, reserved=1)
    yield forged("metadata size 2^24 + 4, and payload size 18", "limit", metadata_size=2**24 + 4, payload_size=18)
    yield forged("profile 3, and a file that ends early", "unsupported", 80, profile=3)
    yield forged("height 0, and a file that ends early", "limit", 80, height=0)
    yield forged("reserved field 1, and a file that ends early", "corrupt", 80, reserved=1)
    yield forged("file that ends early, and a wrong tables' checksum", "truncated", -1, table_crc=1)
    yield forged("wrong tables' checksum, and first offset 4", "checksum", table_crc=1, offsets=[4, 16])


def _forged_tables() -> Iterator[Broken]:
    """Tables of a file of four raw tiles: 4096, 384, 128 and 12 bytes."""
    right = [0, 4096, 4480, 4608, 4620]

    def offsets(name: str, *values: int) -> Broken:
        return Broken(name, lambda: _raw(FOUR_TILES, offsets=values), "corrupt", "offset", "open")

    assert [len(coded) for coded in writer.raw_file(FOUR_TILES).tiles] == np.diff(right).tolist()
    yield offsets("first offset 4", 4, *right[1:])
    yield offsets("equal offsets", 0, 4096, 4096, 4608, 4620)
    yield offsets("offsets that descend", 0, 4480, 4096, 4608, 4620)
    yield offsets("offset 0 in the middle", 0, 4096, 0, 4608, 4620)
    yield offsets("offset not a multiple of 4", 0, 4096, 4482, 4608, 4620)
    yield offsets("offset past the payload", 0, 4096, 4480, 4624, 4620)
    yield offsets("offset 2^32 - 4", 0, 4096, 2**32 - 4, 4608, 4620)
    yield offsets("last offset before the payload's end", *right[:4], 4616)
    yield offsets("last offset past the payload's end", *right[:4], 4624)
    # Tiles that would decode if the offsets were not looked at.
    small = writer.paper_file(_image(2, 66), has_checksums=False)
    first, second = small.tiles
    size, end = len(first), len(first) + len(second)

    def small_offsets(name: str, tiles: list[bytes], *values: int) -> Broken:
        file = replace(small, tiles=tiles, offsets=values)
        return Broken(name, file.to_bytes, "corrupt", "offset", "open")

    yield small_offsets("first offset 4, behind 4 bytes", [bytes(4) + first, second], 4, size + 4, end + 4)
    yield small_offsets("last offset before 4 bytes more", [first, second + bytes(4)], 0, size, end)
    yield small_offsets("equal offsets of two tiles", [first, second], 0, end, end)
    yield small_offsets("offset of the second tile past the payload", [first, second], 0, end + 4, end)
    yield small_offsets("last offset past the payload", [first, second], 0, size, end + 4)
    unpadded = [coded[: 2 + int.from_bytes(coded[:2], "little")] for coded in small.tiles]
    payload, odd = writer.padded(b"".join(unpadded)), len(unpadded[0])
    assert odd % 4
    assert len(payload) - odd - len(unpadded[1]) < 4
    yield small_offsets("second offset not a multiple of 4", [payload], 0, odd, len(payload))

    yield Broken("tables' checksum", lambda: _raw(FOUR_TILES, table_crc=1), "checksum", "table", "open")
    for name, table_crc, has_checksums in (
        ("tables' checksum, without tile checksums", 1, False),
        ("tables' checksum of the offsets alone", writer.crc32c(bytes(4) + b"\x10\0\0\0"), True),
    ):
        forged = partial(_raw, table_crc=table_crc, has_checksums=has_checksums)
        yield Broken(name, forged, "checksum", "table", "open")


def _forged_tile_checksums() -> Iterator[Broken]:
    two = writer.fast_file(_image(3, 66))
    right = [writer.crc32c(coded) for coded in two.tiles]
    no_fast_tile = b"\x03" + two.tiles[0][1:]

    def wrong(name: str, *checksums: int) -> Broken:
        build = replace(two, checksums=checksums).to_bytes
        return Broken(name, build, "checksum", "tile", "verify")

    yield wrong("checksum of the first of two tiles", right[0] ^ 1, right[1])
    yield wrong("checksum of the second of two tiles", right[0], right[1] ^ 2**31)
    yield wrong("checksums of two tiles swapped", *reversed(right))
    pixels = GRAY.tobytes()
    assert len(pixels) % 4
    yield Broken(
        "checksum of a tile without its padding",
        lambda: _raw(checksums=[writer.crc32c(pixels)]),
        "checksum",
        "tile",
        "verify",
    )
    yield Broken(
        "wrong checksum of a tile that does not decode",
        lambda: replace(two, tiles=[no_fast_tile, two.tiles[1]], checksums=right).to_bytes(),
        "checksum",
        "tile",
        "verify",
        "corrupt",
    )
    yield Broken(
        "tile that does not decode before one with a wrong checksum",
        lambda: replace(two, tiles=[no_fast_tile, two.tiles[1]], checksums=[writer.crc32c(no_fast_tile), 1]).to_bytes(),
        "corrupt",
        "transform",
    )
    longest = bytes(64 * 64 * 8 + 4096 + 4)
    yield Broken(
        "wrong checksum of a tile longer than any",
        lambda: _file_of(GRAY, writer.FAST, [longest], checksums=[1]),
        "checksum",
        "tile",
        "verify",
        "corrupt",
    )


def _forged_metadata() -> Iterator[Broken]:
    def area(name: str, metadata: bytes, message: str = "metadata") -> Broken:
        return Broken(name, lambda: _raw(metadata=metadata), "corrupt", message, "metadata")

    entry = writer.metadata_entry
    yield area("metadata area of 4 bytes", bytes([3, 0, 0, 0]))
    yield area("metadata entry without a key", entry(b"", b"value"))
    yield area("metadata key of 256 bytes", entry(b"k" * 256, b"value"))
    yield area("metadata key past the area", entry(b"key", b"", key_size=40))
    yield area("metadata key size 2^32 - 1", entry(b"key", b"value", key_size=2**32 - 1))
    yield area("metadata value past the area", entry(b"key", b"value", value_size=9))
    yield area("metadata value size 2^32 - 1", entry(b"key", b"value", value_size=2**32 - 1))
    yield area("metadata sizes whose 32-bit sum wraps to fit", entry(b"key", b"value", value_size=2**32 - 3))
    yield area("metadata sizes whose 32-bit sum ends the area", entry(b"key", b"!", value_size=2**32 - 1))
    yield area("second metadata entry past the area", _ENTRY + entry(b"key", b"value", value_size=64))
    yield area("metadata area that ends in a word", _ENTRY + bytes([1, 0, 0, 0]))
    yield area("metadata area with zeros at its end", _ENTRY + bytes(8))
    yield area("metadata key twice in a row", _ENTRY + _ENTRY)
    yield area("metadata key again", _ENTRY + entry(b"exif", b"1") + entry(b"icc", b"2"))
    yield area("metadata key again, not the first", _ENTRY + entry(b"k", b"1") + entry(b"x", b"") + entry(b"k", b"2"))
    yield area("metadata key again after many", _ENTRY + b"".join(entry(b"%d" % i, b"") for i in range(300)) + _ENTRY)
    yield area("metadata key not UTF-8", entry(b"\xff\xfe", b"value"))
    yield area("metadata key of half a UTF-8 character", entry(b"caf\xc3", b"value"))
    not_utf8 = {
        "a lone continuation": b"\x80",
        "half a character and a letter": b"\xc3(",
        "two thirds of a character and a letter": b"\xe2\x82k",
        "an over-long slash": b"\xc0\xaf",
        "an over-long character of three bytes": b"\xe0\x9f\xbf",
        "an over-long character of four bytes": b"\xf0\x8f\xbf\xbf",
        "half a surrogate pair": b"\xed\xa0\x80",
        "a surrogate pair": b"\xed\xa0\xbd\xed\xb8\x80",
        "a character past U+10FFFF": b"\xf4\x90\x80\x80",
        "a first byte past all": b"\xf5\x80\x80\x80",
    }
    for name, key in not_utf8.items():
        yield area(f"metadata key of {name}", entry(key, b"value"))
        yield area(f"second metadata key of {name}", _ENTRY + entry(b"k" + key, b""))
    yield Broken("metadata checksum", lambda: _raw(metadata=_ENTRY, metadata_crc=0), "checksum", "metadata", "metadata")
    yield Broken(
        "metadata checksum, and a key again",
        lambda: _raw(metadata=_ENTRY + _ENTRY, metadata_crc=1),
        "checksum",
        "metadata",
        "metadata",
    )
    yield Broken("checksum of empty metadata", lambda: _raw(metadata_crc=1), "checksum", "metadata", "metadata")


# -------------------------------------------------------------------------------------------------------- raw and paper


def _raw_tiles() -> Iterator[Broken]:
    for image, name in ((GRAY, "8-bit"), (GRAY16, "16-bit"), (RGB, "RGB")):
        good = writer.raw_tile(image.reshape(3, 5, -1))
        tiles = {"4 bytes too long": good + bytes(4), "4 bytes too short": good[:-4], "of 4 bytes": good[:4]}
        for fault, coded in tiles.items():
            yield Broken(
                f"{name} raw tile {fault}",
                lambda image=image, coded=coded: _file_of(image, writer.RAW, [coded]),
                "corrupt",
                "tile",
            )


def _paper_tiles() -> Iterator[Broken]:
    def paper(name: str, image: np.ndarray, coded: bytes) -> Broken:
        return Broken(name, lambda: _file_of(image, writer.PAPER, [coded]), "corrupt", "tile")

    for image, bits in ((GRAY, 8), (GRAY16, 16)):
        body = writer.paper_body(image, bits)
        for y, n in ((0, bits + 1), (2, bits + 1), (1, 255)):
            headers = bytearray(body)
            headers[y * (1 + bits // 8)] = n
            coded = writer.paper_tile([bytes(headers) + bytes(300)])
            yield paper(f"{bits}-bit paper row {y} of width {n}", image, coded)
        for y in (0, 2):  # with the payload that the width asks for, of one octet a row
            row_size = 1 + bits // 8
            widths = [body[row * row_size] for row in range(3)]
            at = 3 * row_size + sum(widths[:y])
            wide = bytearray(body)
            wide[at : at + widths[y]] = bytes(bits + 1)
            wide[y * row_size] = bits + 1
            name = f"{bits}-bit paper row {y} of width {bits + 1}, all there"
            yield paper(name, image, writer.paper_tile([bytes(wide)]))
        yield paper(f"{bits}-bit paper body too long", image, writer.paper_tile([body + bytes(1)]))
        yield paper(f"{bits}-bit paper body too short", image, writer.paper_tile([body[:-1]]))
        yield paper(f"{bits}-bit paper body of one byte", image, writer.paper_tile([body[:1]]))
        yield paper(f"{bits}-bit paper body empty", image, writer.paper_tile([b""]))
        yield paper(f"{bits}-bit paper body past the tile", image, writer.paper_tile([body], [len(body) + 4]))
        yield paper(f"{bits}-bit paper body of 65535 bytes", image, writer.paper_tile([body], [65535]))
        coded = writer.padded(writer.paper_tile([body]) + bytes(4))
        yield paper(f"{bits}-bit paper tile with too much padding", image, coded)
    bodies = [writer.paper_body(RGB[:, :, channel], 8) for channel in range(3)]
    yield paper("paper tile that ends within the body sizes", RGB, bytes([1, 0, 1, 0]))
    sizes = [len(body) for body in bodies]
    yield paper("paper body of blue past the tile", RGB, writer.paper_tile(bodies, [*sizes[:2], sizes[2] + 4]))
    yield paper(
        "paper bodies with a byte moved between them",
        RGB,
        writer.paper_tile(bodies, [sizes[0] + 1, sizes[1] - 1, sizes[2]]),
    )


# ----------------------------------------------------------------------------------------------------------------- fast


def _fast(
    name: str,
    image: np.ndarray,
    channels: Sequence[Channel],
    message: str = "tile",
    transform: int = 0,
    scale: int = 0,
) -> Broken:
    bits = 8 * image.dtype.itemsize
    coded = writer.fast_tile(channels, bits, transform, scale)
    return Broken(name, lambda: _file_of(image, writer.FAST, [coded]), "corrupt", message)


def _rgb_channels(transform: int = 0) -> list[Channel]:
    return [writer.residual_channel(plane, 8) for plane in writer.coded_planes(RGB, transform)]


def _fast_tiles() -> Iterator[Broken]:
    good = writer.residual_channel(GRAY, 8)
    size = len(good.body)
    for transform in (3, 15):
        yield _fast(f"transform {transform}", RGB, _rgb_channels(), "transform", transform)
    for transform in (1, 2):
        yield _fast(f"transform {transform} of one channel", GRAY, [good], "transform", transform)
        yield _fast(f"transform {transform} of two channels", _image(3, 5, 2), [good, good], "transform", transform)
    good16 = writer.residual_channel(GRAY16, 16)
    yield _fast("transform 3 of a scaled tile", GRAY16, [good16], "transform", 3, scale=4)
    yield _fast("transform 1 of one scaled channel", GRAY16, [good16], "transform", 1, scale=15)
    for scale in (1, 14, 15):
        yield _fast(f"scale {scale} of 8-bit samples", GRAY, [good], "scale", scale=scale)
    yield _fast("body past the tile", GRAY, [replace(good, size=size + 4)])
    yield _fast("body of 65535 bytes", GRAY, [replace(good, size=65535)])
    yield _fast("body shorter than its bytes", GRAY, [replace(good, size=size - 4)])
    yield _fast("body of no bytes", GRAY, [replace(good, size=0)])
    channels = _rgb_channels()
    channels[2] = replace(channels[2], size=len(channels[2].body) + 4)
    yield _fast("last of three bodies past the tile", RGB, channels)
    moved = _rgb_channels()
    moved[0] = replace(moved[0], size=len(moved[0].body) + 1)
    moved[1] = replace(moved[1], size=len(moved[1].body) - 1)
    yield _fast("a byte moved between two bodies", RGB, moved)
    coded = writer.fast_tile([good], 8)

    def with_coded(name: str, image: np.ndarray, coded: bytes) -> Broken:
        return Broken(name, lambda: _file_of(image, writer.FAST, [coded]), "corrupt", "tile")

    yield with_coded("fast tile with 4 bytes more padding", GRAY, coded + bytes(4))
    exact = writer.fast_tile([writer.residual_channel(CONSTANT, 8, index_bits=1)], 8)
    assert exact == b"\0\x08\x09\x03\0" + bytes(3)
    yield with_coded("fast tile of whole words with 4 bytes padding", CONSTANT, exact + bytes(4))
    yield with_coded("fast tile that ends within the heads", GRAY, coded[:4])
    yield with_coded("fast tile that ends within the third head", RGB, writer.fast_tile(_rgb_channels(), 8)[:12])
    second = writer.fast_file(FOUR_TILES)
    broken_tile = b"\x03" + second.tiles[3][1:]
    yield Broken(
        "transform of the last of four tiles",
        lambda: replace(second, tiles=[*second.tiles[:3], broken_tile]).to_bytes(),
        "corrupt",
        "transform",
    )


def _fast_residual_bodies() -> Iterator[Broken]:
    for image, bits in ((GRAY, 8), (GRAY16, 16)):
        most = writer.max_index_bits(bits)
        good = writer.residual_channel(image, bits)
        yield _fast(f"{bits}-bit mode with bit 7", image, [replace(good, mode=good.mode | 0x80)])
        for predictor in (5, 6):
            channel = replace(good, mode=predictor | most << 3)
            yield _fast(f"{bits}-bit predictor {predictor}", image, [channel], "predictor")
        for index_bits in range(most + 1, 8):
            mode = index_bits << 3
            body = good.body + bytes(64)
            yield _fast(f"{bits}-bit mode with {index_bits} index bits", image, [Channel(mode, good.first, body)])
        # Code 0 for every group, in a palette of as many codes as the index bits can name.
        palette, words = bytes(2 ** (most + 1) // (2 if bits == 8 else 1)), bytes(2 * (most + 1))
        channel = Channel((most + 1) << 3, good.first, palette + words)
        yield _fast(f"{bits}-bit body with a palette for {most + 1} index bits", image, [channel])
        for index_bits, bitmap in product(range(most + 1), (False, True)):
            channel = writer.residual_channel(image, bits, index_bits=index_bits, bitmap=bitmap)
            name = f"{bits}-bit body with {index_bits} index bits{' and a bitmap' if bitmap else ''}"
            yield _fast(f"{name}, too long", image, [replace(channel, body=channel.body + bytes(1))])
            yield _fast(f"{name}, too short", image, [replace(channel, body=channel.body[:-1])])
            yield _fast(f"{name}, empty", image, [replace(channel, body=b"")])
        for bit in (2, 7):  # 5 x 3 pixels are two units
            channel = writer.residual_channel(image, bits, bitmap=True)
            body = bytes([channel.body[0] | 1 << bit]) + channel.body[1:]
            yield _fast(f"{bits}-bit unit bitmap with bit {bit}", image, [replace(channel, body=body)], "bitmap")
        widest = bytes([2 * bits - 1])
        yield _fast(
            f"{bits}-bit body without indices that asks for the widest payload", image, [Channel(0, good.first, widest)]
        )
        yield _fast(
            f"{bits}-bit body that ends within the index words",
            image,
            [Channel(most << 3, good.first, bytes(2 * most - 1))],
        )
    for code in (32, 255):
        for at in (0, 3):
            channel = writer.residual_channel(GRAY16, 16, index_bits=2)
            body = bytearray(channel.body)
            body[at] = code
            yield _fast(f"palette code {code} at index {at}", GRAY16, [replace(channel, body=bytes(body))], "palette")
    flat = CONSTANT.astype(np.uint16)
    for code in (32, 255):
        channel = Channel(1 << 3, 9, bytes([0, code]) + bytes(2))
        yield _fast(f"palette code {code} that no group uses", flat, [channel], "palette")
    channel = writer.residual_channel(GRAY, 8, index_bits=0)
    body = bytes([channel.body[0] | 0x10]) + channel.body[1:]
    yield _fast("palette of one code with a high half", GRAY, [replace(channel, body=body)], "palette")
    large = _image(64, 64)
    large_first = int(large[0, 0])
    yield _fast("large tile that asks for the widest payload", large, [Channel(0, large_first, b"\x0f" + bytes(8))])
    yield _fast(
        "large tile whose index words all name the widest code", large, [Channel(4 << 3, large_first, b"\xff" * 256)]
    )


def _label_maps() -> Iterator[Broken]:
    """Faults in the label map of LABELS: values 7 8 9, a bitmap of 2 units, 2 groups in each."""
    good = writer.label_map_channel(LABELS, 8)

    def body(name: str, *parts: bytes, first: int = 7, mode: int = 7, message: str = "tile") -> Broken:
        return _fast(name, LABELS, [Channel(mode, first, b"".join(parts))], message)

    table = b"\x02\x07\x08\x09"
    units, groups, pixels = b"\x03", b"\x03\x03", b"\x48\x01\x08\x01"
    ranks = bytes([0b00101])  # in the order of groups: 9 from 7, 8 from 7, 9 from 7, 7 from 9, 7 from 9
    assert table + units + groups + pixels + ranks == good.body
    for bit in range(3, 8):
        yield body(f"label map with bit {bit} of the mode", good.body, mode=7 | 1 << bit)
    yield body("label map empty", b"")
    yield body("label map too long", good.body, b"\0")
    yield body("label map without ranks", good.body[:-1])
    yield body("label map that ends within the pixel masks", good.body[:9])
    yield body("label map that ends within the group masks", good.body[:6])
    yield body("label map that ends before the unit bitmap", good.body[:4])
    yield body("label map that ends within the values", b"\xff\x07\x08\x09")
    yield body("label values that descend", b"\x02\x07\x09\x08", units, groups, pixels, ranks)
    yield body("label values that repeat", b"\x02\x07\x07\x09", units, groups, pixels, ranks)
    yield body("label map whose first value is not in the table", good.body, first=6)
    yield body("label map whose first value is past the table", good.body, first=10)
    for bit in (2, 7):
        yield body(f"label map with bit {bit} in the unit bitmap", table, bytes([3 | 1 << bit]), groups, pixels, ranks)
    yield body("label map with a group outside", table, units, b"\x07\x03", b"\x48\x01\x00\x08\x01", ranks)
    yield body("label map with the last group outside", table, units, b"\x03\x83", pixels, b"\x00", ranks)
    yield body("label map with a pixel right of the tile", table, units, groups, b"\x48\x03\x08\x01", ranks)
    yield body("label map with a pixel below the tile", table, units, groups, b"\x48\x01\x08\x11", ranks)
    four = b"\x03\x07\x08\x09\x0a"
    yield body("label rank past four values", four, b"\x01\x01\x02\x03")
    yield body("label rank past four values, N's being the last", four, b"\x01\x01\x02\x03", first=10)
    yield body("label map of one value with a change", b"\x00\x07", b"\x01\x01\x02")
    labels16 = writer.label_map_channel(LABELS.astype(np.uint16), 16)
    yield _fast(
        "16-bit label map whose first value differs in its high byte",
        LABELS.astype(np.uint16),
        [replace(labels16, first=0x0107)],
    )
    between = b"\x02\x07\x00\x08\x00\x09\x02" + units + bytes(2)
    yield _fast(
        "16-bit label map whose first value differs in its high byte and is no greater than all",
        LABELS.astype(np.uint16),
        [Channel(7, 0x0107, between)],
    )
    yield _fast(
        "16-bit label values that descend as numbers, not as bytes",
        GRAY16,
        [Channel(7, 0x0100, b"\x01\x00\x01\x01\x00\x00")],
    )


# ------------------------------------------------------------------------------------------------------ prototype files


def _prototype_files() -> Iterator[Broken]:
    flat = writer.PrototypeFile(64, 64, [bytes(128)] * 3)  # rows of width 0

    def forged(name: str, status: str, **fields) -> Broken:
        return Broken(name, replace(flat, **fields).to_bytes, status, reader="open")

    def cut(name: str, length: int) -> Broken:
        return Broken(name, lambda: flat.to_bytes()[:length], "truncated", reader="open")

    def patched(name: str, patch: bytes) -> Broken:
        """A file whose last patch is another."""
        return Broken(name, replace(flat, patches=[*flat.patches[:2], patch]).to_bytes, "corrupt", "patch")

    yield cut("prototype file that ends after the signature", 4)
    yield cut("prototype file that ends within the header", 12)
    yield cut("prototype file that ends before the sizes", 13)
    yield cut("prototype file that ends within the sizes", 18)
    yield cut("prototype file that ends before the patches", 19)
    yield cut("prototype file that ends within the last patch", -1)
    for width in (1, 65, 100, 127):
        yield forged(f"prototype file of width {width}", "unsupported", width=width)
    for height in (63, 96):
        yield forged(f"prototype file of height {height}", "unsupported", height=height)
    for side in ("width", "height"):
        for size in (0, -64, 2**20 + 64, -(2**31)):
            yield forged(f"prototype file of {side} {size}", "limit", **{side: size})
    yield forged("prototype file of width 2^31 - 64", "limit", width=2**31 - 64)
    yield forged("prototype file of 2^20 by 2^20 pixels", "limit", width=2**20, height=2**20)
    yield forged("prototype file of 26816 by 26752 pixels", "limit", width=26816, height=26752)
    yield forged("prototype file of 26752 by 26752 pixels in a tiny file", "truncated", width=26752, height=26752)
    yield forged("prototype file of width 2^20 in a tiny file", "truncated", width=2**20)
    yield forged("prototype file of 2^14 by 2^14 pixels in a tiny file", "truncated", width=2**14, height=2**14)
    for patch_size in (0, 32, 65, 128):
        yield forged(f"prototype file with patches of {patch_size}", "unsupported", patch_size=patch_size)
    yield forged("prototype file with patches of 32, and width 0", "unsupported", patch_size=32, width=0)
    yield forged("prototype file of width 65, and height 0", "unsupported", width=65, height=0)
    yield forged("prototype file of width 65, and no patches", "unsupported", width=65, patches=[])
    yield forged("prototype file of height 0, and no patches", "limit", height=0, patches=[])
    yield patched("prototype patch without its last row", bytes(126))
    yield patched("prototype patch that ends within its last row", bytes(127))
    yield patched("prototype patch whose last row is wider", bytes(126) + b"\x01\0")
    yield patched("prototype patch with a row of width 9, all there", bytes(126) + b"\x09" + bytes(73))
    yield patched("prototype patch with a row of width 15, all there", b"\x0f" + bytes(121 + 126))
    yield patched("prototype patch of a byte too many", bytes(129))
    yield patched("prototype patch of a row too many", bytes(130))
    yield patched("prototype patch of no bytes", b"")


def _catalogue() -> list[Broken]:
    sections = (
        _truncations,
        _forged_headers,
        _several_faults,
        _forged_tables,
        _forged_tile_checksums,
        _forged_metadata,
        _raw_tiles,
        _paper_tiles,
        _fast_tiles,
        _fast_residual_bodies,
        _label_maps,
        _prototype_files,
    )
    return [case for section in sections for case in section()]


BROKEN: list[Broken] = _catalogue()


# -------------------------------------------------------------------------------------------------- odd, but not broken


def _odd_files() -> Iterator[Odd]:
    yield Odd("bytes after the trailer", lambda: _raw() + b"anything", GRAY)
    yield Odd("a trailer of other bytes", lambda: _raw(trailer=b"\xff" * 16), GRAY)
    yield Odd("a higher minor version", lambda: _raw(minor=7), GRAY)
    yield Odd("a longer header", lambda: _raw(minor=1, extra_header=b"\xff" * 20), GRAY)
    yield Odd("unknown metadata", lambda: _raw(metadata=writer.metadata_entry(b"unheard of", b"")), GRAY)
    yield Odd("metadata that is not a sequence of entries", lambda: _raw(metadata=b"\xff" * 12), GRAY)
    yield Odd("wrong tile checksums that nobody asked for", lambda: _raw(checksums=[12345]), GRAY)
    yield Odd(
        "a fast tile whose units are all absent",
        lambda: writer.fast_file(CONSTANT, code_channel=partial(writer.residual_channel, bitmap=True)).to_bytes(),
        CONSTANT,
    )
    # One row of five equal samples: width 1, base 9, and ones as the values of the three pixels beyond the edge.
    row = np.full((1, 5), 9, np.uint8)
    yield Odd(
        "paper values beyond the right edge",
        lambda: _file_of(row, writer.PAPER, [writer.paper_tile([b"\x01\x09\xe0"])]),
        row,
    )
    # Index bits 0, one code of width 1 and minimum 0: group 0 has ones in its lower row, group 1 in all but value 0.
    yield Odd(
        "fast values beyond the edges",
        lambda: _file_of(row, writer.FAST, [writer.fast_tile([Channel(0, 9, b"\x02\xf0\xfe")], 8)]),
        row,
    )
    for scale, factor in ((4, 16), (15, 257)):
        coded = writer.fast_tile([writer.residual_channel(GRAY16, 16)], 16, scale=scale)
        yield Odd(
            f"samples that exceed 16 bits with scale {scale}",
            lambda coded=coded: _file_of(GRAY16, writer.FAST, [coded]),
            GRAY16 * np.uint16(factor),
        )
    unused = writer.label_map_body(LABELS, 8, extra_values=range(256))
    yield Odd(
        "a label map with values that no pixel has",
        lambda: _file_of(LABELS, writer.FAST, [writer.fast_tile([Channel(7, 7, unused)], 8)]),
        LABELS,
    )
    yield Odd(
        "bytes after the last patch of a prototype file",
        lambda: writer.prototype_file(PROTOTYPE).to_bytes() + b"anything",
        PROTOTYPE,
    )


ODD: list[Odd] = list(_odd_files())
