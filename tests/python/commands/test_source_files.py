"""Files that stay as they are: `dali-l3 convert --mix source:…`."""

from __future__ import annotations

import itertools
import json
import os
import struct

import imagecodecs
import numpy as np
import pytest
from conftest import smooth_image
from PIL import Image

import tiff_files
from dali_l3 import files
from dali_l3.conversion.converting import convert_image
from image_files import exif, noise, png, png_chunk, saved, tiff
from jpeg_files import adobe, colour_jpeg, pixels_of, segment

pytestmark = pytest.mark.usefixtures("one_process")

APP1 = 0xE1
PHOTO = Image.fromarray(smooth_image((45, 70, 3), np.uint8))


def jpeg(number=0, **options):
    return saved(Image.fromarray(smooth_image((45, 70, 3), np.uint8, seed=number)), format="JPEG", **options)


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    return path


@pytest.fixture
def tree(tmp_path):
    """Ten JPEG files, the names of which end in all ways."""
    for number, suffix in enumerate([".jpg", ".jpeg", ".JPG", ".JPEG", ".jpg", ".jpg", ".jpg", ".jpe", ".jfif", ""]):
        write(tmp_path / "src" / "cats" / f"{number}{suffix}", jpeg(number))
    return tmp_path / "src"


def record_of(folder):
    return json.loads((folder / "dali_l3_mix.json").read_text())


def files_below(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def images_below(folder):
    return {name: path for name, path in files_below(folder).items() if not name.endswith(".json")}


def states(folder):
    return {name: (path.stat().st_ino, path.stat().st_mtime_ns) for name, path in images_below(folder).items()}


# ---- Runs ------------------------------------------------------------------------------------------------------------


def test_those_files_stay_byte_for_byte_and_both_are_counted(run, tree, tmp_path):
    target = tmp_path / "dst"
    code, _, err = run("convert", tree, target, "--mix", "source:7,l3-fast:3", "--report", tmp_path / "report")
    assert code == 0, err
    assert "10 converted, 0 failed" in err
    images = record_of(target)["images"]
    stayed = [name for name, image in images.items() if image["format"] == "source"]
    size = sum((tree / name).stat().st_size for name in stayed)
    assert f"source: 7 drawn, 7 files, {size / 1e6:.2f} MB\nl3-fast: 3 drawn, 3 files, " in err
    report = {line["source"]: line for line in map(json.loads, (tmp_path / "report").read_text().splitlines())}
    for name in images:
        line = report[str(tree / name)]
        source, written = (tree / name), target / os.path.relpath(line["target"], target)
        assert written.stat().st_mtime_ns == source.stat().st_mtime_ns
        assert line["target_size"] == images[name]["bytes"] == written.stat().st_size
        assert line["raw_size"] == 45 * 70 * 3
        if name in stayed:
            assert written.read_bytes() == source.read_bytes()
            assert line["format"] == "source"
            assert written.stat().st_ino != source.stat().st_ino
        else:
            assert written.read_bytes() == convert_image(source.read_bytes())


def test_other_commands_take_the_mix(run, tree, tmp_path):
    target = tmp_path / "dst"
    code, out, _ = run("convert", tree, target, "--mix", "source:7,l3-fast:3", "--dry-run")
    assert code == 0
    planned = {line.split(" -> ")[1] for line in out.splitlines()}
    run("convert", tree, target, "--mix", "source:7,l3-fast:3")
    assert planned == set(map(str, images_below(target).values()))
    assert "10 verified, 1 skipped, 0 failed" in run("verify", target)[2]
    assert len(run("info", "--json", target)[1].splitlines()) == 3
    assert "3 exported" in run("export", target, tmp_path / "png")[2]


def test_names_stay_unless_readers_would_not_find_them(run, tree, tmp_path):
    run("convert", tree, tmp_path / "dst", "--mix", "source:1", "--keep-suffix")
    run("convert", tree, tmp_path / "short", "--mix", "source:1")
    names = {f"cats/{name}" for name in ("0.jpg", "1.jpeg", "2.JPG", "3.JPEG", "4.jpg", "5.jpg", "6.jpg", "7.jpg")}
    assert (
        images_below(tmp_path / "dst").keys()
        == images_below(tmp_path / "short").keys()
        == names
        | {
            "cats/8.jpg",
            "cats/9.jpg",
        }
    )


def test_a_wrong_suffix_is_the_dataset_s_own_affair(run, tmp_path):
    data = imagecodecs.png_encode(noise((9, 7, 3)))
    write(tmp_path / "src" / "a.JPEG", data)
    assert run("convert", tmp_path / "src", tmp_path / "dst", "--mix", "source:1")[0] == 0
    assert (tmp_path / "dst" / "a.JPEG").read_bytes() == data


@pytest.mark.parametrize("options", [(), ("--keep-suffix",), ("--source-as", "hardlink")])
def test_later_runs_keep_what_is_done_and_mend_the_rest(run, tree, tmp_path, options):
    target = tmp_path / "dst"
    command = ("convert", tree, target, "--mix", "source:1,l3-fast:1", *options)
    run(*command)
    before, record = states(target), record_of(target)
    assert "10 kept" in run(*command)[2]
    assert (states(target), record_of(target)) == (before, record)
    stayed = [name for name, image in record["images"].items() if image["format"] == "source"]
    lost, replaced = (next(name for name in images_below(target) if name.startswith(stayed[i][:6])) for i in (0, 1))
    (target / lost).unlink()
    (tree / stayed[1]).unlink()  # a new file: what is linked does not change with it
    write(tree / stayed[1], jpeg(99))
    os.utime(tree / stayed[1], (5, 5))
    assert "2 converted, 8 kept" in run(*command)[2]
    assert (target / lost).read_bytes() == (tree / stayed[0]).read_bytes()
    assert (target / replaced).read_bytes() == jpeg(99)
    assert states(target).keys() == before.keys()
    assert "10 converted" in run(*command, "--overwrite")[2]
    assert states(target).keys() == before.keys()


def test_names_that_collide_stop_everything_whatever_was_drawn(run, tmp_path):
    write(tmp_path / "src" / "a.jpg", jpeg())
    write(tmp_path / "src" / "a.png", imagecodecs.png_encode(noise((9, 7, 3))))
    for seed in range(4):
        code, _, err = run("convert", tmp_path / "src", tmp_path / "dst", "--mix", "source:1,l3-fast:1", "--seed", seed)
        assert code == 2
        assert "several sources would become one file" in err
    assert not (tmp_path / "dst").exists()
    assert run("convert", tmp_path / "src", tmp_path / "dst", "--mix", "source:1", "--keep-suffix")[0] == 0
    assert images_below(tmp_path / "dst").keys() == {"a.jpg", "a.png"}


def test_kept_suffixes_can_collide_too(run, tmp_path):
    write(tmp_path / "src" / "a.png", imagecodecs.png_encode(noise((9, 7, 3))))
    write(tmp_path / "src" / "a.png.png", imagecodecs.png_encode(noise((9, 8, 3))))
    results = {
        run(
            "convert",
            tmp_path / "src",
            tmp_path / str(seed),
            "--mix",
            "source:1,png:1",
            "--keep-suffix",
            "--seed",
            seed,
        )[0]
        for seed in range(8)
    }
    for seed in range(8):
        images = images_below(tmp_path / str(seed))
        assert len(images) in (0, 2), "either refused, or a file for each"
    assert results == {0, 2}


def test_damage_is_found_in_files_that_stay(run, tree, tmp_path):
    whole = (tree / "cats" / "0.jpg").read_bytes()
    write(tree / "cats" / "0.jpg", whole[: len(whole) // 2])
    code, _, err = run("convert", tree, tmp_path / "dst", "--mix", "source:1")
    assert code == 1
    assert "0.jpg: damaged JPEG file: it ends too early" in err
    assert "9 converted, 1 failed" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--profile", "fast", "--source-as", "copy"), "--source-as needs source in --mix"),
        (("--mix", "bmp:1", "--source-as", "copy"), "--source-as needs source in --mix"),
        (("--mix", "source@95:1"), "unknown format 'source@95'"),
    ],
)
def test_requests_that_make_no_sense(run, tree, tmp_path, arguments, message):
    code, _, err = run("convert", tree, tmp_path / "dst", *arguments)
    assert code == 2
    assert message in err
    assert not (tmp_path / "dst").exists()


# ---- How files get there ---------------------------------------------------------------------------------------------


def clone(target, request, source):
    """What FICLONE does, on file systems without it."""
    assert request == files._FICLONE
    size = os.fstat(source).st_size
    return os.copy_file_range(source, target, size)


def test_hard_links_are_names_of_the_same_files(run, tree, tmp_path):
    os.rename(tree / "cats" / "0.jpg", tmp_path / "elsewhere.jpg")
    os.symlink(tmp_path / "elsewhere.jpg", tree / "cats" / "0.jpg")
    code, _, err = run("convert", tree, tmp_path / "dst", "--mix", "source:1", "--source-as", "hardlink")
    assert code == 0, err
    assert "note: stays as it is (hard link): 10 files" in err
    for name in ("0.jpg", "1.jpeg"):
        assert (tmp_path / "dst" / "cats" / name).samefile(tree / "cats" / name)
        assert not (tmp_path / "dst" / "cats" / name).is_symlink()


@pytest.mark.parametrize("former", ["nothing", "file", "link", "dangling link", "the same file"])
def test_hard_links_replace_what_was_there_at_once(tmp_path, monkeypatch, former):
    source, target = write(tmp_path / "source", b"new"), tmp_path / "target"
    if former in ("file", "link"):
        write(tmp_path / former, b"old")
    if former == "file":
        os.rename(tmp_path / former, target)
    elif "link" in former:
        target.symlink_to(tmp_path / former)
    elif former == "the same file":
        os.link(source, target)
    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", lambda path: unlink(path) if path != str(target) else pytest.fail("it was gone"))
    files.link(str(source), str(target))
    assert target.samefile(source)
    assert not target.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} <= {"source", "target", "link"}
    assert former != "link" or (tmp_path / "link").read_bytes() == b"old"


def test_reflinks_are_the_default_where_the_file_system_has_them(run, tree, tmp_path, monkeypatch):
    monkeypatch.setattr(files.fcntl, "ioctl", clone)
    code, _, err = run("convert", tree, tmp_path / "dst", "--mix", "source:1")
    assert code == 0, err
    assert "note: stays as it is (reflink): 10 files" in err
    source, target = tree / "cats" / "0.jpg", tmp_path / "dst" / "cats" / "0.jpg"
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mtime_ns == source.stat().st_mtime_ns


def no_reflinks(*arguments):
    raise OSError(95, "Operation not supported")


def test_copies_are_the_default_elsewhere(run, tree, tmp_path, monkeypatch):
    monkeypatch.setattr(files.fcntl, "ioctl", no_reflinks)
    assert "stays as it is (copy): 10 files" in run("convert", tree, tmp_path / "dst", "--mix", "source:1")[2]
    code, _, err = run("convert", tree, tmp_path / "other", "--mix", "source:1", "--source-as", "reflink")
    assert code == 1
    assert (
        "Operation not supported: the run was stopped after 3 files could not be written; use --source-as copy" in err
    )
    assert not images_below(tmp_path / "other")


def test_hard_links_to_another_disk_are_refused(run, tree, tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    code, _, err = run("convert", tree, tmp_path / "dst", "--mix", "source:1", "--source-as", "hardlink")
    assert code == 1
    assert "Invalid cross-device link: the run was stopped after 3 files could not be written; use --source-as" in err


# ---- What cannot be converted, and what cannot stay ------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--keep-suffix",)])
def test_cmyk_stays_and_is_reported(run, tmp_path, options):
    cmyk = saved(PHOTO.convert("CMYK"), format="JPEG")
    for number in range(4):
        write(tmp_path / "src" / f"{number}.jpg", cmyk)
    command = ("convert", tmp_path / "src", tmp_path / "dst", "--mix", "source:1,l3-fast:1", *options)
    code, _, err = run(*command)
    assert code == 0, err
    assert "cannot be converted (CMYK colours: convert to RGB first, with the right colour profile) and stays" in err
    assert "source: 2 drawn, 4 files" in err
    assert "l3-fast: 2 drawn; 2 not representable in it" in err
    assert images_below(tmp_path / "dst").keys() == {f"{number}.jpg" for number in range(4)}
    assert all(path.read_bytes() == cmyk for path in images_below(tmp_path / "dst").values())
    assert "4 kept" in run(*command)[2]
    assert "skipped: cannot be converted: CMYK" in run("verify", tmp_path / "dst")[2]


def test_cmyk_fails_where_nothing_stays(run, tmp_path):
    write(tmp_path / "src" / "a.jpg", saved(PHOTO.convert("CMYK"), format="JPEG"))
    code, _, err = run("convert", tmp_path / "src", tmp_path / "dst", "--mix", "l3-fast:1,bmp:1")
    assert code == 1
    assert "CMYK colours: convert to RGB first" in err


def test_cmyk_in_other_files_than_jpeg_fails(run, tmp_path):
    """Such as TIFF that has it inside, of which DALI shows few kinds."""
    pixels = noise((16, 16, 3))
    cmyk = saved(Image.fromarray(pixels).convert("CMYK"), format="JPEG")
    for number in range(2):
        data = tiff_files.tiff(pixels, photometric=2, compression=tiff_files.JPEG, encode=lambda raw: cmyk)
        write(tmp_path / "src" / f"{number}.tif", data)
    code, _, err = run("convert", tmp_path / "src", tmp_path / "dst", "--mix", "source:1,l3-fast:1")
    assert code == 1
    assert "CMYK colours" in err
    assert "2 failed" in err
    assert not images_below(tmp_path / "dst")


@pytest.mark.parametrize("options", [(), ("--keep-suffix",)])
def test_what_cannot_stay_becomes_l3(run, tmp_path, options):
    pixels = noise((9, 7, 3))
    np.save(tmp_path / "a.npy", pixels)
    write(tmp_path / "src" / "a.npy", (tmp_path / "a.npy").read_bytes())
    write(tmp_path / "src" / "b.jpg", jpeg())
    command = ("convert", tmp_path / "src", tmp_path / "dst", "--mix", "source:1", *options)
    code, _, err = run(*command)
    assert code == 0, err
    assert "cannot stay as it is (the decoder takes no NPY): converted to l3-fast" in err
    assert images_below(tmp_path / "dst").keys() == {"a.npy.l3" if options else "a.l3", "b.jpg"}
    assert "2 kept" in run(*command)[2]


def test_an_image_has_one_file_whatever_its_source_becomes(run, tmp_path):
    """RGB, then CMYK, which stays; and a JPEG, then a TIFF of its name, which cannot stay."""
    source, target = tmp_path / "src", tmp_path / "dst"
    cmyk = saved(PHOTO.convert("CMYK"), format="JPEG")
    for number in range(8):
        write(source / f"{number}.jpg", jpeg(number))
    command = ("convert", source, target, "--mix", "source:1,l3-fast:1")
    run(*command)
    assert sorted(path.suffix for path in images_below(target).values()) == [".jpg"] * 4 + [".l3"] * 4
    for number in range(8):
        write(source / f"{number}.jpg", cmyk)
        os.utime(source / f"{number}.jpg", (7, 7))
    assert "8 converted" in run(*command)[2]
    assert images_below(target).keys() == {f"{number}.jpg" for number in range(8)}
    for number in range(8):
        write(source / f"{number}.jpg", tiff(noise((9, 7, 3)), photometric=2))
        os.utime(source / f"{number}.jpg", (9, 9))
    assert "8 converted" in run(*command, "--overwrite")[2]
    assert images_below(target).keys() == {f"{number}.l3" for number in range(8)}


def test_labels_of_a_palette_are_converted(run, tmp_path):
    image = Image.fromarray(noise((9, 7)) % 4).convert("P")
    write(tmp_path / "src" / "a.png", saved(image, format="PNG"))
    assert run("convert", tmp_path / "src", tmp_path / "rgb", "--mix", "source:1")[0] == 0
    assert images_below(tmp_path / "rgb").keys() == {"a.png"}
    code, _, err = run("convert", tmp_path / "src", tmp_path / "index", "--mix", "source:1", "--palette", "index")
    assert code == 0, err
    assert "the decoder takes the colours of its palette, not the numbers" in err
    assert images_below(tmp_path / "index").keys() == {"a.l3"}


# ---- With DALI -------------------------------------------------------------------------------------------------------


def with_exif(data, *blocks):
    return data[:2] + b"".join(segment(APP1, b"Exif\0\0" + block) for block in blocks) + data[2:]


def long_orientation(orientation):
    """As some programs write it, in four bytes, not in two."""
    return b"MM\0*" + struct.pack(">IHHHIII", 8, 1, 0x0112, 4, 1, orientation, 0)


def raw_profile(block):
    """ImageMagick's way to keep EXIF data in a PNG file."""
    body = b"Exif\0\0" + block
    return png_chunk(b"tEXt", b"Raw profile type exif\0\nexif\n%8d\n%s\n" % (len(body), body.hex().encode()))


def jpegs():
    """Files by what is special about them. Their pixels depend on the decoder but for the flat ones at the end."""
    for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
        for progressive, quality in itertools.product((False, True), (50, 98)):
            options = {"subsampling": subsampling, "progressive": progressive, "quality": quality}
            yield f"{options}", jpeg(**options)
    yield "gray", saved(PHOTO.convert("L"), format="JPEG")
    yield "RGB", jpeg(keep_rgb=True)
    for subsampling in ((1, 2), (4, 1), (4, 2)):
        components = [noise((4 * v, 6 * h), seed=h) for h, v in (subsampling, (1, 1), (1, 1))]
        yield f"{subsampling}", colour_jpeg(components, samplings=(subsampling, (1, 1), (1, 1)))
    for orientation in range(1, 9):
        yield f"orientation {orientation}", with_exif(jpeg(), exif(orientation))
    yield "big endian", with_exif(jpeg(), exif(6, ">"))
    yield "orientation of four bytes", with_exif(jpeg(), long_orientation(8))
    yield "no such orientation", with_exif(jpeg(), exif(9))
    yield "two EXIF blocks", with_exif(jpeg(), exif(6), exif(3))
    flat = [noise((2, 3), seed=seed) for seed in range(3)]
    yield "Adobe's RGB", colour_jpeg(flat, before=adobe(0))
    yield "ids R, G, B", colour_jpeg(flat, ids=b"RGB")


def others():
    pixels, block = noise((9, 7, 3)), exif(6)
    for bits, colour, channels in (
        (1, 0, 1),
        (2, 0, 1),
        (4, 0, 1),
        (8, 0, 1),
        (16, 0, 1),
        (8, 4, 2),
        (8, 6, 4),
        (16, 2, 3),
    ):
        samples = np.random.default_rng(bits).integers(0, 1 << bits, (9, 7, channels))
        yield f"PNG of {bits} bits, {channels} channels", png(samples, bits, colour, interlaced=bits == 8)
    yield "PNG with eXIf", png(pixels, 8, 2, png_chunk(b"eXIf", block))
    yield "PNG with a late eXIf", png(pixels, 8, 2, late=png_chunk(b"eXIf", block))
    yield "PNG with a raw profile", png(pixels, 8, 2, raw_profile(block))
    yield "PNG with a palette", saved(PHOTO.convert("P"), format="PNG", transparency=3)
    for lossless in (False, True):
        yield f"WebP, lossless: {lossless}", saved(PHOTO, format="WEBP", lossless=lossless)
        yield f"WebP with EXIF, lossless: {lossless}", saved(PHOTO, format="WEBP", lossless=lossless, exif=block)
    for mode in ("RGB", "L", "P", "1"):
        yield f"BMP {mode}", saved(PHOTO.convert(mode), format="BMP")
    for mode in ("RGB", "L", "1"):
        yield f"PNM {mode}", saved(PHOTO.convert(mode), format="PPM")
    yield "PNM up to 100", b"P6 7 9 100\n" + (pixels // 3).tobytes()
    yield "PNM as text", b"P3 7 9 255\n" + b" ".join(b"%d" % sample for sample in pixels.ravel())
    yield "TIFF", tiff(pixels, photometric=2)
    yield "TIFF, white is zero", tiff(pixels[:, :, :1], photometric=0)


def decoded(folder, names):
    """Each file as fn.readers.liquid finds it and fn.decoders.image shows it, by its name without suffix."""
    from nvidia.dali import fn, pipeline_def

    import dali_l3.fn

    @pipeline_def(batch_size=len(names), num_threads=2, device_id=None, prefetch_queue_depth=1)
    def pipeline():
        encoded, _ = dali_l3.fn.readers.liquid(file_root=str(folder), cache_size="1MiB", name="reader")
        return fn.decoders.image(encoded), fn.get_property(encoded, key="source_info")

    pipe = pipeline()
    pipe.build()
    assert pipe.epoch_size("reader") == len(names)
    images, found = pipe.run()
    return {
        os.path.splitext(os.path.basename(bytes(np.array(name)).decode()))[0]: np.array(images[number])
        for number, name in enumerate(found)
    }


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("cases", [jpegs, others])
def test_both_sides_of_a_mix_show_the_same_picture(run, tmp_path, cases):
    """To the last bit, whether the pixels come from DALI's decoder or from the converter's; all orientations."""
    names = {}
    for number, (name, data) in enumerate(cases()):
        names[str(number)] = name
        write(tmp_path / "src" / "all" / f"{number}.png", data)
    for mix in ("source:1", "l3-fast:1"):
        assert run("convert", tmp_path / "src", tmp_path / mix, "--mix", mix)[0] == 0
    stays, converted = (decoded(tmp_path / mix, names) for mix in ("source:1", "l3-fast:1"))
    assert stays.keys() == converted.keys() == names.keys()
    for number, name in names.items():
        np.testing.assert_array_equal(stays[number], converted[number], err_msg=name)
    images = record_of(tmp_path / "source:1")["images"]
    replaced = {names[path[4:-4]] for path, image in images.items() if image["format"] != "source"}
    assert (
        replaced
        == {
            jpegs: {"two EXIF blocks"},
            others: {
                "PNG with a raw profile",
                "WebP with EXIF, lossless: False",
                "WebP with EXIF, lossless: True",
                "PNM up to 100",
                "PNM as text",
                "TIFF",
                "TIFF, white is zero",
            },
        }[cases]
    )


@pytest.mark.usefixtures("plugin")
def test_orientations_turn_the_picture(run, tmp_path):
    """With a picture whose pixels are known, made by hand: else both sides might be wrong."""
    gray = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
    turned = {1: gray, 2: gray[:, ::-1], 3: gray[::-1, ::-1], 4: gray[::-1]}
    turned |= {5: gray.T, 6: gray[::-1].T, 7: gray[::-1, ::-1].T, 8: gray[:, ::-1].T}
    for orientation in turned:
        data = with_exif(colour_jpeg([gray, np.full_like(gray, 128), np.full_like(gray, 128)]), exif(orientation))
        for number in range(2):
            write(tmp_path / "src" / "all" / f"{orientation}{number}.jpg", data)
    assert run("convert", tmp_path / "src", tmp_path / "dst", "--mix", "source:1,l3-raw:1")[0] == 0
    pictures = decoded(tmp_path / "dst", images_below(tmp_path / "dst"))
    assert {path.suffix for path in images_below(tmp_path / "dst").values()} == {".jpg", ".l3"}
    for name, picture in pictures.items():
        expected = pixels_of(turned[int(name[0])])
        np.testing.assert_array_equal(picture, np.repeat(expected[:, :, None], 3, 2), err_msg=name)


@pytest.mark.usefixtures("plugin")
def test_dali_shows_the_cmyk_that_stays(run, tmp_path):
    write(tmp_path / "src" / "all" / "a.jpg", saved(PHOTO.convert("CMYK"), format="JPEG"))
    assert run("convert", tmp_path / "src", tmp_path / "dst", "--mix", "source:1,l3-fast:1")[0] == 0
    assert decoded(tmp_path / "dst", ["a"])["a"].shape == (45, 70, 3)
