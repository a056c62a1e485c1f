"""Tar archives with samples, written in several ways."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import webdataset

from reading import HEADERS

Members = list[tuple[str, bytes]]  # in the order of the archive


def image(text: str) -> bytes:
    """A file that readers take for a PNG image, with a content of its own."""
    return HEADERS["png"] + text.encode()


def samples(count: int, prefix: str = "") -> Members:
    """Samples of three components."""
    return [
        member
        for i in range(count)
        for member in (
            (f"{prefix}{i:03d}.png", image(f"{prefix}{i}")),
            (f"{prefix}{i:03d}.cls", str(i % 3).encode()),
            (f"{prefix}{i:03d}.seg.png", image(f"mask {prefix}{i}") * (i % 4 + 1)),
        )
    ]


def write_shard(path: Path, members: Members, format: int = tarfile.PAX_FORMAT) -> str:
    """With Python's tarfile."""
    with tarfile.open(path, "w", format=format) as archive:
        for name, content in members:
            information = tarfile.TarInfo(name)
            information.size = len(content)
            archive.addfile(information, io.BytesIO(content))
    return str(path)


def write_shard_with_tar(path: Path, members: Members, format: str) -> str:
    """With the program, of files on disk."""
    folder = path.with_suffix(".files")
    for name, content in members:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    names = [name for name, _ in members]
    subprocess.run(["tar", f"--format={format}", "-C", folder, "-cf", path, "--", *names], check=True)
    return str(path)


def write_shard_with_webdataset(path: Path, members: Members) -> str:
    """With the package of that name."""
    by_key: dict[str, dict[str, bytes]] = {}
    for name, content in members:
        key, _, extension = name.partition(".")
        by_key.setdefault(key, {"__key__": key})[extension] = content
    with webdataset.TarWriter(str(path), encoder=False) as writer:
        for sample in by_key.values():
            writer.write(sample)
    return str(path)


WRITERS = {
    "tarfile ustar": lambda path, members: write_shard(path, members, tarfile.USTAR_FORMAT),
    "tarfile gnu": lambda path, members: write_shard(path, members, tarfile.GNU_FORMAT),
    "tarfile pax": lambda path, members: write_shard(path, members, tarfile.PAX_FORMAT),
    "tar v7": lambda path, members: write_shard_with_tar(path, members, "v7"),
    "tar oldgnu": lambda path, members: write_shard_with_tar(path, members, "oldgnu"),
    "tar gnu": lambda path, members: write_shard_with_tar(path, members, "gnu"),
    "tar ustar": lambda path, members: write_shard_with_tar(path, members, "ustar"),
    "tar posix": lambda path, members: write_shard_with_tar(path, members, "posix"),
    "webdataset": write_shard_with_webdataset,
}
