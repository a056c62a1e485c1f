"""`dali-l3 convert --pages` and `--palette`: what users choose, from run to run."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from PIL import Image

import dali_l3
from bmp_files import bmp
from dali_l3.conversion.converting import convert_image
from dali_l3.images.palettes import has_coloured_palette
from dali_l3.images.stored import ReadOptions
from image_files import noise, png, png_chunk, saved, tiff, tiff_stack


def write(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def decoded(folder):
    return {path.name: dali_l3.decode(path.read_bytes()) for path in sorted(folder.rglob("*.l3"))}


# ---- Pages -----------------------------------------------------------------------------------------------------------


def test_pages_are_refused_or_the_first_is_taken_or_each_becomes_a_file(run, tmp_path):
    source = tmp_path / "src"
    write(source, {"a.tif": tiff_stack(3), "b.tif": tiff_stack(1)})

    code, _, err = run("convert", source, tmp_path / "none", "--workers", 1)
    assert code == 1
    assert f"failed: {source}/a.tif: has 3 pages: use --pages first or --pages split\n" in err
    assert decoded(tmp_path / "none").keys() == {"b.l3"}

    code, _, err = run("convert", source, tmp_path / "first", "--pages", "first", "--workers", 1)
    assert code == 0
    assert "of 3 pages" in err  # the note
    assert f": 1 file\n  {source}/a.tif\n" in err
    assert {name: pixels.max() for name, pixels in decoded(tmp_path / "first").items()} == {"a.l3": 0, "b.l3": 0}

    split = ("convert", source, tmp_path / "split", "--pages", "split", "--workers", 1)
    code, out, err = run(*split, "--dry-run")
    assert code == 0
    assert [line.rpartition("/")[2] for line in out.splitlines()] == ["a-1.l3", "a-2.l3", "a-3.l3", "b.l3"]
    assert not (tmp_path / "split").exists()
    code, out, err = run(*split, "--report", "-")
    assert code == 0
    pages = {os.path.basename(line["target"]): line.get("page") for line in map(json.loads, out.splitlines())}
    assert pages == {"a-1.l3": 1, "a-2.l3": 2, "a-3.l3": 3, "b.l3": None}
    values = {name: pixels.max() for name, pixels in decoded(tmp_path / "split").items()}
    assert values == {"a-1.l3": 0, "a-2.l3": 1, "a-3.l3": 2, "b.l3": 0}

    (tmp_path / "split" / "a-2.l3").unlink()
    assert "1 converted, 3 kept, 0 failed" in run(*split)[2]


def test_a_page_that_fails_is_named(run, tmp_path):
    write(tmp_path / "src", {"a.tif": tiff_stack(2, lost=[1])})
    code, out, err = run(
        "convert", tmp_path / "src", tmp_path / "dst", "--pages", "split", "--report", "-", "--workers", 1
    )
    assert code == 1
    assert f"failed: {tmp_path}/src/a.tif, page 2: damaged TIFF" in err
    assert {line["page"]: line["status"] for line in map(json.loads, out.splitlines())} == {1: "done", 2: "failed"}


def test_pages_of_a_mix_cannot_be_split(run, tmp_path):
    write(tmp_path / "src", {"a.tif": tiff_stack(2)})
    code, _, err = run("convert", tmp_path / "src", tmp_path / "dst", "--pages", "split", "--mix", "bmp:1")
    assert code == 2
    assert "--pages split and --mix cannot be combined: split the files first (convert, then export)" in err
    code, _, err = run(
        "convert", tmp_path / "src", tmp_path / "dst", "--pages", "first", "--mix", "bmp:1", "--workers", 1
    )
    assert code == 0
    assert (tmp_path / "dst" / "a.bmp").exists()


# ---- Palettes --------------------------------------------------------------------------------------------------------

LABELS = np.array([[0, 3, 255], [3, 3, 0]], np.uint8)
COLOURS = noise((256, 3))
GRAYS = np.repeat(noise((256, 1), seed=1), 3, axis=1)
PALETTES = {
    "png": png(LABELS[:, :, None], 8, 3, png_chunk(b"PLTE", COLOURS.tobytes())),
    "bmp": bmp(LABELS, 8, palette=COLOURS),
    "tiff": tiff(LABELS[:, :, None], photometric=3, extra={320: tuple((COLOURS.T.astype(int) * 257).ravel().tolist())}),
}
OTHERS = {
    "rgb.png": png(noise((2, 3, 3)), 8, 2),
    "gray.png": png(noise((2, 3, 1)), 8, 0),
    "rgb.bmp": saved(Image.fromarray(noise((2, 3, 3))), format="BMP"),
    "gray.bmp": bmp(LABELS, 8, palette=GRAYS),
    "gray.tiff": tiff(noise((2, 3, 1))),
    "rgb.ppm": b"P6 1 2 255\n" + bytes(6),
}


def test_palettes_become_colours_or_the_numbers_of_their_entries_also_in_a_run_that_is_continued(run, tmp_path):
    source, target = tmp_path / "src", tmp_path / "dst"
    write(source, {f"palette.{format}": content for format, content in PALETTES.items()} | OTHERS)
    convert = ("convert", source, target, "--keep-suffix", "--workers", 1)
    numbers = dict.fromkeys((f"palette.{format}.l3" for format in PALETTES), LABELS)
    colours = dict.fromkeys(numbers, COLOURS[LABELS])
    count, all_files = len(PALETTES), len(PALETTES) + len(OTHERS)

    def check(expected):
        found = decoded(target)
        for name, pixels in expected.items():
            np.testing.assert_array_equal(found[name], pixels, name)

    assert f"{all_files} converted, 0 failed" in (err := run(*convert)[2])
    assert f"note: palette expanded to RGB; --palette index keeps the numbers: {count} files\n" in err
    check(colours)
    assert f"{all_files} kept, 0 failed" in run(*convert, "--palette", "rgb")[2]
    err = run(*convert, "--palette", "index")[2]
    assert f"{count} converted, {len(OTHERS)} kept, 0 failed" in err
    assert f"note: palette dropped, the numbers of its entries kept: {count} files\n" in err
    check(numbers)
    assert f"{all_files} kept, 0 failed" in run(*convert, "--palette", "index")[2]
    assert f"{count} converted, {len(OTHERS)} kept, 0 failed" in run(*convert)[2]
    check(colours)


def test_a_mix_holds_all_runs_to_one_choice(run, tmp_path):
    write(tmp_path / "src", {"a.png": PALETTES["png"]})
    mix = ("convert", tmp_path / "src", tmp_path / "dst", "--mix", "png:1", "--workers", 1)
    assert run(*mix, "--palette", "index")[0] == 0
    assert json.loads((tmp_path / "dst" / "dali_l3_mix.json").read_text())["palette"] == "index"
    code, _, err = run(*mix)
    assert code == 2
    assert (
        "made with --mix png:1 --seed 0 --palette index; continue with these settings, or choose another folder" in err
    )
    assert "1 kept" in run(*mix, "--palette", "index")[2]


@pytest.mark.parametrize("format", PALETTES)
def test_images_in_memory_may_keep_the_numbers_too(format):
    data = PALETTES[format]
    np.testing.assert_array_equal(dali_l3.decode(convert_image(data)), COLOURS[LABELS])
    numbers = convert_image(data, options=ReadOptions(palette="index"))
    np.testing.assert_array_equal(dali_l3.decode(numbers), LABELS)


def core_bmp():
    """A BMP with the oldest header, whose palette has entries of three bytes."""
    body = b"".join(row.tobytes() + b"\0" for row in LABELS[::-1])
    start = 14 + 12 + 3 * 256
    header = np.array([start + len(body), 0, start, 12], "<u4").tobytes()
    sizes = np.array([3, 2, 1, 8], "<u2").tobytes()
    return b"BM" + header + sizes + COLOURS[:, ::-1].tobytes() + body


def test_which_files_have_a_palette_with_colours(tmp_path):
    files = (
        PALETTES | OTHERS | {"core.bmp": core_bmp(), "cut.bmp": PALETTES["bmp"][:40], "cut.tif": PALETTES["tiff"][:20]}
    )
    write(tmp_path, files)
    found = {name for name in files if has_coloured_palette(str(tmp_path / name))}
    assert found == {*PALETTES, "core.bmp"}
