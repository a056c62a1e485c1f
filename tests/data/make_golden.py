"""Makes the golden files of this folder: small L3 files and the pixels they hold, broken ones and their status.

    python tests/data/make_golden.py

`golden/` and `golden.json` hold files of the codec's encoder and of the tests' own writer, which makes choices that no
encoder would; `broken/` and `broken.json` a part of the catalogue in tests/python/broken.py. Files that
exist are not made again, even where the encoder changes: they are what later decoders must still read.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python"))

import broken  # noqa: E402
import dali_l3  # noqa: E402
from oracle import writer  # noqa: E402

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
    "fast stream that ends within the third head",
    "fast stream with 4 bytes more padding",
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
)


class Golden(NamedTuple):
    """A sound file and what it holds."""

    name: str
    data: bytes
    image: np.ndarray
    metadata: dict[str, bytes] = {}


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


def of_the_encoder() -> Iterator[Golden]:
    """Files as the codec writes them."""

    def encoded(name: str, image: np.ndarray, **options) -> Golden:
        return Golden(name, dali_l3.encode(image, **options), image, options.get("metadata", {}))

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


def of_the_writer() -> Iterator[Golden]:
    """Files of random choices, and files that are sound though no encoder of today writes them."""

    def written(name: str, image: np.ndarray, file: writer.L3File | writer.PrototypeFile, after: bytes = b"") -> Golden:
        return Golden(name, file.to_bytes() + after, image)

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
        stream = writer.fast_stream(channels, 16, 2, scale)
        scaled = samples * np.uint16(factor)
        yield written(f"scale-{scale}-past-16-bits", scaled, writer.file_of_streams(scaled, writer.FAST, [stream]))
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
    for golden in (*of_the_encoder(), *of_the_writer()):
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
        expectations[name] = {"status": case.status, "reader": case.reader}
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
