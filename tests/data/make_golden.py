"""Makes the golden files of this folder: small L3 files and the pixels they hold, broken ones and their status.

    python tests/data/make_golden.py

`golden/` and `golden.json` hold files of the codec's encoder and of the tests' own writer, which makes choices that no
encoder would, among them the catalogue in tests/python/support/sound.py; `broken/` and `broken.json` a part of the
catalogue in tests/python/support/broken.py. docs/format.md says what the JSON files mean. Files that exist are not made
again, even where the encoder or a catalogue changes: they are what later decoders must still read.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python" / "support"))

import broken  # noqa: E402
import dali_l3  # noqa: E402
from oracle import writer  # noqa: E402
from sound import SOUND, Sound  # noqa: E402

MAX_FILE_SIZE = 4096  # bytes
PROFILES = ("raw", "paper", "fast")
DTYPES = (np.uint8, np.uint16)
METADATA = {"icc": b"not really a colour profile", "exif": b"", "größe": bytes(range(5))}

BROKEN_FILES = (
    "empty file",
    "ends within the signature",
    "ends within the fixed header",
    "ends within the extra header",
    "ends within the offset table",
    "ends within the metadata",
    "ends within the payload",
    "signature of another format",
    "signature mangled as text",
    "major version 2",
    "header size 44",
    "header size past the file",
    "width 0",
    "height 2^20 + 1",
    "width 2^20 in a tiny file",
    "image of 2^43 bytes",
    "image of 2^31 bytes in a tiny file",
    "0 channels",
    "5 channels",
    "12 bits per sample",
    "profile 3",
    "profile 255",
    "two-dimensional flag with 3 channels",
    "flag bit 7",
    "tile exponents (5, 6)",
    "reserved field 1",
    "metadata size 2^24 + 4",
    "metadata size 2^24 in a tiny file",
    "payload size 2^32 - 4",
    "payload size 0",
    "header checksum",
    "metadata key of 256 bytes",
    "metadata sizes whose 32-bit sum wraps to fit",
    "metadata key again",
    "metadata key not UTF-8",
    "metadata checksum",
    "8-bit raw tile 4 bytes too long",
    "16-bit raw tile 4 bytes too short",
    "8-bit paper row 1 of width 255",
    "16-bit paper body too short",
    "paper bodies with a byte moved between them",
    "transform 3",
    "transform 1 of two channels",
    "transform 3 of a scaled tile",
    "scale 15 of 8-bit samples",
    "body of 65535 bytes",
    "a byte moved between two bodies",
    "fast tile that ends within the third head",
    "fast tile with 4 bytes more padding",
    "8-bit predictor 5",
    "16-bit mode with 6 index bits",
    "8-bit body with 2 index bits and a bitmap, too long",
    "16-bit body with 3 index bits, too long",
    "16-bit body with 5 index bits, too short",
    "16-bit unit bitmap with bit 2",
    "palette code 32 at index 3",
    "palette of one code with a high half",
    "large tile whose index words all name the widest code",
    "label map too long",
    "label values that repeat",
    "label map whose first value is not in the table",
    "label map with a group outside",
    "label map with a pixel below the tile",
    "label rank past four values",
    "prototype file that ends within the sizes",
    "prototype patch that ends within its last row",
    "prototype patch whose last row is wider",
    "file of the bytes 4c4c4c",
    "file of the bytes 894c334a",
    "file of the bytes 894c33490d0a1a0d",
    "signature with bit 7 lost",
    "signature with another last byte",
    "ends after the signature",
    "ends before the extra header",
    "ends before the offset table",
    "ends before the checksum table",
    "ends before the payload",
    "one tile, ends before the payload's last byte",
    "one tile, ends before the trailer",
    "one tile, ends before the trailer's last byte",
    "major version 0",
    "header size 0",
    "header size 50",
    "higher minor version with an unknown flag",
    "height 0",
    "width 2^20 + 1",
    "height 2^20 in a tiny file",
    "image of 2^31 + 2 bytes",
    "image of 3 times 2^30 bytes in three channels",
    "image of 2^31 + 2^16 bytes in 16 bits",
    "image of 2^31 bytes in 16 bits in a tiny file",
    "24 bits per sample",
    "flag bit 2",
    "flag bit 3",
    "flag bit 4",
    "flag bit 5",
    "flag bit 6",
    "two-dimensional flag with 2 channels",
    "tile exponents (7, 6)",
    "tile exponents (6, 5)",
    "tile exponents (6, 7)",
    "reserved field 0x8000",
    "metadata size not a multiple of 4",
    "payload size not a multiple of 4 in a file that ends early",
    "payload size 4 more",
    "47 bytes of major version 2",
    "major version 2, and header size 44",
    "major version 2, and a wrong header checksum",
    "header size 44, and a wrong header checksum",
    "wrong header checksum, and profile 3",
    "wrong header checksum, and width 0",
    "wrong header checksum, and reserved field 1",
    "profile 3, and header size past the file",
    "width 0, and header size past the file",
    "reserved field 1, and header size past the file",
    "profile 3, and width 0",
    "12 bits per sample, and height 0",
    "flag bit 2, and 5 channels",
    "tile width exponent 7, and reserved field 1",
    "tile height exponent 7, and metadata size 2^24 + 4",
    "tile width exponent 5, and width 0",
    "5 channels, and two-dimensional flag",
    "width 0, and reserved field 1",
    "metadata size 2^24 + 4, and payload size 18",
    "profile 3, and a file that ends early",
    "height 0, and a file that ends early",
    "reserved field 1, and a file that ends early",
    "file that ends early, and a wrong tables' checksum",
    "wrong tables' checksum, and first offset 4",
    "first offset 4, behind 4 bytes",
    "last offset before 4 bytes more",
    "equal offsets of two tiles",
    "offset of the second tile past the payload",
    "last offset past the payload",
    "second offset not a multiple of 4",
    "tables' checksum, without tile checksums",
    "tables' checksum of the offsets alone",
    "checksum of the first of two tiles",
    "checksum of the second of two tiles",
    "checksums of two tiles swapped",
    "checksum of a tile without its padding",
    "wrong checksum of a tile that does not decode",
    "tile that does not decode before one with a wrong checksum",
    "metadata area of 4 bytes",
    "metadata entry without a key",
    "metadata key past the area",
    "metadata key size 2^32 - 1",
    "metadata value past the area",
    "metadata sizes whose 32-bit sum ends the area",
    "second metadata entry past the area",
    "metadata area that ends in a word",
    "metadata area with zeros at its end",
    "metadata key twice in a row",
    "metadata key again, not the first",
    "metadata key of half a UTF-8 character",
    "metadata key of a lone continuation",
    "metadata key of half a character and a letter",
    "metadata key of two thirds of a character and a letter",
    "metadata key of an over-long slash",
    "metadata key of an over-long character of three bytes",
    "metadata key of an over-long character of four bytes",
    "metadata key of half a surrogate pair",
    "metadata key of a surrogate pair",
    "metadata key of a character past U+10FFFF",
    "metadata key of a first byte past all",
    "second metadata key of a lone continuation",
    "metadata checksum, and a key again",
    "checksum of empty metadata",
    "8-bit raw tile 4 bytes too short",
    "8-bit raw tile of 4 bytes",
    "16-bit raw tile 4 bytes too long",
    "8-bit paper row 0 of width 9, all there",
    "8-bit paper row 2 of width 9, all there",
    "16-bit paper row 2 of width 17, all there",
    "8-bit paper body too long",
    "8-bit paper body too short",
    "8-bit paper body of one byte",
    "8-bit paper body past the tile",
    "8-bit paper tile with too much padding",
    "paper tile that ends within the body sizes",
    "transform 1 of one channel",
    "transform 2 of two channels",
    "scale 1 of 8-bit samples",
    "body past the tile",
    "body shorter than its bytes",
    "body of no bytes",
    "fast tile of whole words with 4 bytes padding",
    "fast tile that ends within the heads",
    "8-bit mode with bit 7",
    "16-bit mode with bit 7",
    "8-bit predictor 6",
    "16-bit predictor 5",
    "8-bit mode with 7 index bits",
    "8-bit body with a palette for 5 index bits",
    "16-bit body with a palette for 6 index bits",
    "8-bit body with 0 index bits, too long",
    "8-bit body with 0 index bits, too short",
    "8-bit body with 4 index bits and a bitmap, empty",
    "8-bit unit bitmap with bit 2",
    "8-bit unit bitmap with bit 7",
    "8-bit body that ends within the index words",
    "palette code 32 that no group uses",
    "palette code 255 that no group uses",
    "label map with bit 3 of the mode",
    "label map with bit 4 of the mode",
    "label map with bit 5 of the mode",
    "label map with bit 6 of the mode",
    "label map with bit 7 of the mode",
    "label map empty",
    "label map without ranks",
    "label map that ends within the pixel masks",
    "label map that ends within the group masks",
    "label map that ends before the unit bitmap",
    "label map that ends within the values",
    "label values that descend",
    "label map whose first value is past the table",
    "label map with bit 2 in the unit bitmap",
    "label map with bit 7 in the unit bitmap",
    "label map with the last group outside",
    "label map with a pixel right of the tile",
    "label rank past four values, N's being the last",
    "label map of one value with a change",
    "16-bit label map whose first value differs in its high byte and is no greater than all",
    "16-bit label values that descend as numbers, not as bytes",
    "prototype file that ends after the signature",
    "prototype file that ends within the header",
    "prototype file that ends before the sizes",
    "prototype file that ends before the patches",
    "prototype file that ends within the last patch",
    "prototype file of width 1",
    "prototype file of width 65",
    "prototype file of height 63",
    "prototype file of height 96",
    "prototype file of width 0",
    "prototype file of height 0",
    "prototype file of width -64",
    "prototype file of height -64",
    "prototype file of width 1048640",
    "prototype file of height 1048640",
    "prototype file of 26816 by 26752 pixels",
    "prototype file of 26752 by 26752 pixels in a tiny file",
    "prototype file of width 2^20 in a tiny file",
    "prototype file with patches of 0",
    "prototype file with patches of 65",
    "prototype file with patches of 32, and width 0",
    "prototype file of width 65, and height 0",
    "prototype file of width 65, and no patches",
    "prototype file of height 0, and no patches",
    "prototype patch with a row of width 9, all there",
    "prototype patch with a row of width 15, all there",
    "prototype patch of a byte too many",
    "prototype patch of a row too many",
    "prototype patch of no bytes",
)


def slope(shape: tuple[int, ...], dtype: type, noise: int = 4) -> np.ndarray:
    """A slope that wraps around where it leaves the range, with noise of `noise` values."""
    rng = np.random.default_rng(sum(shape))
    values = np.indices(shape).sum(axis=0) * (3 if dtype == np.uint8 else 700) + rng.integers(noise, size=shape)
    return (values % (np.iinfo(dtype).max + 1)).astype(dtype)


def labels(shape: tuple[int, ...], dtype: type, count: int) -> np.ndarray:
    """Rectangles of `count` values from all over the range."""
    rng = np.random.default_rng(count)
    values = rng.choice(np.iinfo(dtype).max + 1, count, replace=False).astype(dtype)
    image = np.full(shape, values[0])
    for value in values:
        top, left = rng.integers(shape[0]), rng.integers(shape[1])
        image[top : top + 9, left : left + 17] = value
    return image


def of_the_encoder() -> Iterator[Sound]:
    """Files as the codec writes them."""

    def encoded(name: str, image: np.ndarray, **options) -> Sound:
        return Sound(name, dali_l3.encode(image, **options), image, options.get("metadata", {}))

    shapes = {"raw": (3, 67), "paper": (5, 67), "fast": (9, 70)}  # two tiles, the second cut off
    for profile in PROFILES:
        for dtype in DTYPES:
            for channels in range(1, 5):
                image = slope((*shapes[profile], channels), dtype)
                yield encoded(f"{profile}-{image.dtype}-{channels}", image, profile=profile)
    for dtype in DTYPES:
        image = slope((20, 33), dtype)
        yield encoded(f"two-dimensional-{image.dtype}", image)
        yield encoded(f"label-map-{image.dtype}", labels((66, 70), dtype, 9))
        yield encoded(f"noise-{image.dtype}", slope((11, 13, 3), dtype, noise=np.iinfo(dtype).max + 1))
    for channels in (1, 3, 4):
        yield encoded(f"shifted-{channels}", slope((9, 70, channels), np.uint16) >> 4 << 4)
        yield encoded(f"repeated-{channels}", slope((9, 70, channels), np.uint8).astype(np.uint16) * 257)
    yield encoded("binary-mask", labels((70, 66), np.uint8, 2))
    yield encoded("four-tiles", slope((65, 66), np.uint8, noise=2), effort=3)
    yield encoded("one-pixel", np.full((1, 1, 3), (200, 100, 50), np.uint8))
    yield encoded("one-row", slope((1, 200, 3), np.uint8))
    yield encoded("one-column", slope((200, 1, 3), np.uint8))
    yield encoded("constant", np.full((128, 128, 3), (1, 2, 3), np.uint8))
    yield encoded("without-checksums", slope((9, 11, 3), np.uint8), checksums=False)
    yield encoded("metadata", slope((9, 11, 3), np.uint8), metadata=METADATA)


def of_the_writer() -> Iterator[Sound]:
    """Files of random choices, and files that are sound though no encoder of today writes them."""

    def written(name: str, image: np.ndarray, file: writer.L3File | writer.PrototypeFile, after: bytes = b"") -> Sound:
        return Sound(name, file.to_bytes() + after, image)

    for profile, number in (("paper", writer.PAPER), ("fast", writer.FAST)):
        for dtype in DTYPES:
            for channels in range(1, 5):
                rng = np.random.default_rng(10 * number + channels)
                image = slope((7, 37, channels), dtype)
                file = replace(writer.random_file(image, rng, number), metadata=b"")
                yield written(f"random-{profile}-{image.dtype}-{channels}", image, file)
    for dtype in DTYPES:
        for predictor in writer.PREDICTORS:
            image = slope((5, 35, 1), dtype)
            code = partial(writer.residual_channel, predictor=predictor, index_bits=2, bitmap=True)
            yield written(f"predictor-{predictor}-{image.dtype}", image, writer.fast_file(image, code_channel=code))
    image = slope((6, 7, 3), np.uint8)
    for transform in range(3):
        yield written(f"transform-{transform}", image, writer.fast_file(image, transform))
    samples = slope((6, 7, 3), np.uint16)
    channels = [writer.residual_channel(plane, 16) for plane in writer.coded_planes(samples, 2)]
    for scale, factor in ((4, 16), (15, 257)):
        coded = writer.fast_tile(channels, 16, 2, scale)
        scaled = samples * np.uint16(factor)
        yield written(f"scale-{scale}-past-16-bits", scaled, writer.file_of_tiles(scaled, writer.FAST, [coded]))
    yield written("longer-header", image, writer.fast_file(image, minor=1, extra_header=bytes(range(8))))
    yield written("bytes-after-the-trailer", image, writer.fast_file(image), after=b"anything")
    image = labels((33, 37), np.uint16, 200)
    code = partial(writer.label_map_channel, rng=np.random.default_rng(0))
    yield written("label-map-of-many", image, writer.fast_file(image, code_channel=code))
    image = np.repeat(np.arange(0, 192, 3, np.uint8), 64 * 3).reshape(64, 64, 3)  # constant rows take two bytes each
    image[20:22] = slope((2, 64, 3), np.uint8)
    yield written("prototype", image, writer.prototype_file(image))


def write_golden_files() -> None:
    folder = HERE / "golden"
    folder.mkdir(exist_ok=True)
    expectations = {}
    for golden in (*of_the_encoder(), *of_the_writer(), *SOUND):
        name = f"{golden.name}.l3"
        assert len(golden.data) < MAX_FILE_SIZE, f"{name}: {len(golden.data)} bytes"
        add(folder / name, golden.data)
        expectations[name] = {
            "shape": golden.image.shape,
            "dtype": str(golden.image.dtype),
            "sha256": hashlib.sha256(golden.image.tobytes()).hexdigest(),
            "metadata": {key: value.hex() for key, value in golden.metadata.items()},
        }
    write_json(HERE / "golden.json", expectations)


def write_broken_files() -> None:
    folder = HERE / "broken"
    folder.mkdir(exist_ok=True)
    cases = {case.name: case for case in broken.BROKEN}
    expectations = {}
    for title in BROKEN_FILES:
        case, data = cases[title], cases[title].build()
        name = re.sub(r"\W+", "-", title.replace("2^", "2-to-the-")).strip("-").lower() + ".l3"
        assert len(data) < MAX_FILE_SIZE, name
        assert name not in expectations, name
        add(folder / name, data)
        expectations[name] = case.verdicts
    write_json(HERE / "broken.json", expectations)


def add(path: Path, data: bytes) -> None:
    if not path.exists():
        path.write_bytes(data)


def write_json(path: Path, content: dict) -> None:
    lines = (f"  {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in content.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write_golden_files()
    write_broken_files()
