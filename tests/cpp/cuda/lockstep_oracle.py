"""The kernels of a GPU, in lock step on the CPU, against the numpy oracle.

    python lockstep_oracle.py LOCKSTEP_DECODE

Golden and broken files, images of odd sizes in every profile, regions of them, and files that are mangled behind
correct checksums: kernels and oracle must refuse a file with one status, or decode it to the same pixels.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[2]
sys.path.insert(0, str(TESTS / "python" / "support"))

from oracle import decoder, writer  # noqa: E402

Region = tuple[int, int, int, int]  # x, y, width, height
WHOLE = (0, 0, 0, 0)
RANDOM_FILES = 150
MANGLED_FILES = 360


class Lockstep:
    """The program that decodes in lock step."""

    def __init__(self, program: str, folder: Path) -> None:
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._file, self._target = folder / "file", folder / "target"

    def decode(self, data: bytes, region: Region) -> bytes | str:
        """Returns the pixels, or the status for which the file is refused."""
        self._file.write_bytes(data)
        print(self._file, self._target, *region, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer, "the program died"
        return self._target.read_bytes() if answer == "decoded" else answer

    def close(self) -> None:
        self._process.stdin.close()
        assert self._process.wait() == 0


def expected(data: bytes) -> np.ndarray | str:
    try:
        return decoder.decode(data, verify=True)
    except decoder.OracleError as error:
        return error.status


def random_image(rng: np.random.Generator) -> np.ndarray:
    """A smooth image, noise or labels, of up to nine tiles; most are small, since the oracle is slow."""
    height, width = rng.integers(1, 150 if rng.random() < 0.2 else 70, size=2)
    shape = (height, width, *([()] + [(channels,) for channels in range(1, 5)])[rng.integers(5)])
    dtype = (np.uint8, np.uint16)[rng.integers(2)]
    top = np.iinfo(dtype).max
    kind = rng.integers(3)
    if kind == 0:
        return rng.integers(top, size=shape, dtype=dtype, endpoint=True)
    if kind == 1:
        values = np.indices(shape).sum(axis=0) * rng.integers(9) + rng.integers(8, size=shape)
        return (values % (top + 1)).astype(dtype)
    cells = rng.integers(top, size=(height // 9 + 1, width // 9 + 1, *shape[2:]), endpoint=True).astype(dtype)
    return cells.repeat(9, axis=0).repeat(9, axis=1)[:height, :width]


def random_region(rng: np.random.Generator, shape: tuple[int, ...]) -> Region:
    top, left = (int(rng.integers(size)) for size in shape[:2])
    height, width = (int(rng.integers(1, size - begin + 1)) for size, begin in zip(shape, (top, left), strict=False))
    return left, top, width, height


def mangle(file: writer.L3File, rng: np.random.Generator) -> None:
    """Changes bytes of a tile, half of the time near its beginning, where the heads are."""
    tile = int(rng.integers(len(file.tiles)))
    coded = bytearray(file.tiles[tile])
    end = min(len(coded), 24) if rng.random() < 0.5 else len(coded)
    for _ in range(rng.integers(1, 4)):
        coded[rng.integers(end)] = rng.integers(256)
    file.tiles[tile] = bytes(coded)


def cases(rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    for path in sorted(TESTS.glob("data/*/*.l3")):
        yield f"{path.parent.name} files", path.read_bytes()
    for _ in range(RANDOM_FILES):
        yield "random files", writer.random_file(random_image(rng), rng).to_bytes()
    for _ in range(MANGLED_FILES):
        file = writer.random_file(random_image(rng), rng)
        mangle(file, rng)
        yield "mangled files", file.to_bytes()


def check(lockstep: Lockstep, rng: np.random.Generator) -> Counter:
    """Returns how many files of each group were decoded, and how many refused."""
    counts: Counter = Counter()
    for number, (group, data) in enumerate(cases(rng)):
        verdict = expected(data)
        what = f"{group}, file {number}"
        if isinstance(verdict, str):
            assert lockstep.decode(data, WHOLE) == verdict, what
        else:
            assert lockstep.decode(data, WHOLE) == verdict.tobytes(), what
            left, top, width, height = region = random_region(rng, verdict.shape)
            part = verdict[top : top + height, left : left + width]
            assert lockstep.decode(data, region) == part.tobytes(), f"{what}, region {region}"
        counts[group, "refused" if isinstance(verdict, str) else "decoded"] += 1
    return counts


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lockstep = Lockstep(sys.argv[1], Path(folder))
        counts = check(lockstep, np.random.default_rng(1))
        lockstep.close()
    for (group, verdict), count in sorted(counts.items()):
        print(f"{group}: {count} {verdict}")
    assert counts["golden files", "refused"] == counts["random files", "refused"] == 0
    assert min(counts["golden files", "decoded"], counts["broken files", "refused"]) >= 50
    assert min(counts["mangled files", verdict] for verdict in ("decoded", "refused")) >= 100


if __name__ == "__main__":
    main()
