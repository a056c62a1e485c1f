"""The order in which the decoder hands out images, by what nvImageCodec itself says about files."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import dali_l3
from dali_l3.profiling.decoding_order import turn_of

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)


def pillow(name, **options):
    buffer = io.BytesIO()
    Image.fromarray(PIXELS).save(buffer, name, **options)
    return buffer.getvalue()


FILES = {
    "png": pillow("PNG"),
    "bmp": pillow("BMP"),
    "webp": pillow("WEBP"),
    "tiff": pillow("TIFF"),
    "jpeg": pillow("JPEG", subsampling="4:2:0"),
    "l3": dali_l3.encode(PIXELS),
}
SCORES = ("CSS_444", "CSS_422", "CSS_420", "CSS_440", "CSS_411", "CSS_410", "CSS_GRAY", "CSS_410V")  # the first first


def test_formats_have_their_turn_as_nvimagecodec_sorts_them(tmp_path, plugin):
    nvimgcodec = pytest.importorskip("nvidia.nvimgcodec")
    places, turns = {}, {}
    for name, data in FILES.items():
        path = tmp_path / f"image.{name}"
        path.write_bytes(data)
        found = nvimgcodec.CodeStream(data).chroma_subsampling
        places[name] = SCORES.index(found.name) if found.name in SCORES else len(SCORES)
        turns[name] = turn_of([str(path)])
    for first in FILES:
        for second in FILES:
            assert (places[first] < places[second]) == (turns[first] < turns[second]), (first, second)
    assert places["jpeg"] < places["l3"]


def test_the_turn_of_several_files_is_that_of_most(tmp_path):
    paths = []
    for number, name in enumerate(("jpeg", "l3", "jpeg")):
        path = tmp_path / str(number)
        path.write_bytes(FILES[name])
        paths.append(str(path))
    assert turn_of(paths) == turn_of(paths[:1]) != turn_of(paths[1:2])
