"""Reads catalogues, written from docs/catalogue.md alone."""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass, field

import numpy as np

FORMATS = ["unknown", "L3", "PNG", "JPEG", "BMP", "TIFF", "WebP", "PNM", "JPEG 2000", "GIF", "L3 raw", "L3 paper"]


@dataclass
class OracleCatalogue:
    root: str
    archives: list[str]
    archive_sizes: list[int]
    labels: object  # a list of numbers, or of lists of numbers, or None
    formats: list[str]
    files: list[list[tuple[str, int, int]]] = field(default_factory=list)  # of each component: name, size, offset


def read_catalogue(path: str) -> OracleCatalogue:
    with open(path, "rb") as file:
        content = file.read()
    magic, version, count, size, samples, files, columns, flags = struct.unpack_from("<8sIIQQIII", content)
    assert (magic, version, size) == (b"\x89L3C\r\n\x1a\n", 1, len(content))
    assert content[44:60] == bytes(16)
    assert struct.unpack_from("<I", content, 60)[0] == zlib.crc32(content[:60] + content[64 : 64 + 32 * count])
    sections = {}
    for number in range(count):
        kind, component, offset, length, checksum, zero = struct.unpack_from("<IIQQII", content, 64 + 32 * number)
        assert (offset % 64, zero) == (0, 0)
        assert (kind, component) not in sections
        sections[kind, component] = content[offset : offset + length]
        assert len(sections[kind, component]) == length
        assert zlib.crc32(sections[kind, component]) == checksum

    def texts(kind: int, component: int = 0) -> list[str]:
        ends = [0, *np.frombuffer(sections.get((kind, component), b""), "<u8").tolist()]
        whole = sections.get((kind + 1, component), b"")
        return [os.fsdecode(whole[begin:end]) for begin, end in zip(ends, ends[1:], strict=False)]

    folders, archives = texts(3), texts(5)
    labels = None
    if columns:
        labels = np.frombuffer(sections[9, 0], "<f4").reshape(samples, columns).tolist()
    elif flags & 1:
        labels = np.frombuffer(sections[8, 0], "<i4").tolist()
    root = os.fsdecode(sections[1, 0])
    catalogue = OracleCatalogue(
        root=root if "://" in root else os.path.normpath(os.path.join(os.path.dirname(path), root)),
        archives=archives,
        archive_sizes=np.frombuffer(sections.get((7, 0), b""), "<u8").tolist(),
        labels=labels,
        formats=[FORMATS[number] for number in sections[10, 0]],
    )
    for component in range(files):
        names = texts(16, component)
        places = np.frombuffer(sections[18, component], "<u4").tolist()
        sizes = np.frombuffer(sections[19, component], "<u8").tolist()
        blocks = np.frombuffer(sections[20, component], "<u4").tolist() if archives else [0] * samples
        assert len(names) == len(places) == len(sizes) == len(blocks) == samples
        catalogue.files.append(
            [
                (f"{archives[place - 2**31]}:{name}" if place >= 2**31 else folders[place] + name, size, 512 * block)
                for name, place, size, block in zip(names, places, sizes, blocks, strict=True)
            ]
        )
    return catalogue
