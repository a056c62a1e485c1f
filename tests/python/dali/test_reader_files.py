"""Which files the readers deliver: discovery, lists, companions, bad files, and all that is odd about a dataset."""

from __future__ import annotations

import io
import itertools
import os
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from nvidia.dali import fn
from PIL import Image

import dali_l3
from dali_l3.fn import readers
from reading import HEADERS, Delivered, Reading, file_reader, grow, read, write_dataset
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("plugin")

both_readers = pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])


def outcome(reader, **arguments) -> list[Delivered] | None:
    """The samples of an epoch, in batches of one; None if the reader fails."""
    try:
        reading = Reading(reader, batch_size=1, **arguments)
        return list(itertools.chain(*reading.batches(reading.pipeline.epoch_size("reader"))))
    except RuntimeError:
        return None


def listed(reader, **arguments) -> list[tuple[str, int]]:
    """Paths and labels of an epoch, by path."""
    samples = outcome(reader, **arguments)
    assert samples is not None
    return sorted((sample.path, sample.label) for sample in samples)


# ---- Discovery ----

SUFFIXES = ["jpg", "jpeg", "png", "bmp", "tif", "tiff", "pnm", "ppm", "pgm", "pbm", "jp2", "webp", "flac", "ogg", "wav"]
SUFFIXES += ["gif", "txt", "json", "npy", "jpe"]  # which are none by default

TREES = {
    "class folders": ["b/1.png", "a/2.png", "a/10.png", "B/3.png", "10/4.png", "9/5.png"],
    "hidden folder": [".hidden/1.png", "a/2.png"],
    "hidden files": ["a/.1.png", "a/2.png", "a/.png"],
    "empty folder": ["a/1.png", "b/", "c/2.png"],
    "folder without images": ["a/1.txt", "b/2.png"],
    "nested folders": ["a/1.png", "a/deeper/2.png", "a/folder.png/3.png", "b/deeper/4.png"],
    "files beside the folders": ["0.png", "a/1.png", "z.txt"],
    "no folders": ["0.png", "1.png"],
    "nothing": ["a/"],
    "links to files": ["a/1.png", "a/2.png -> 1.png", "b/3.png -> ../a/1.png", "b/4.png -> 3.png"],
    "links to folders": ["a/1.png", "b -> a", "c -> b", "d/2.png"],
    "link to nothing among files": ["a/1.png", "a/2.png -> nowhere"],
    "link to nothing among folders": ["a/1.png", "b -> nowhere"],
    "link to a file among folders": ["a/1.png", "b -> a/1.png"],
    "upper case": ["a/1.PNG", "a/2.Png", "A/3.jpG", "b/4.JPEG"],
    "odd names": [
        "a b/1 2.png",
        "ü/ß.png",
        "c/-.png",
        "c/[x].png",
        "c/x.tar.png",
        "c/png",
        "c/x.png~",
        "c/*.png",
        "\\/\\.png",
    ],
    "suffixes": [f"a/1.{suffix}" for suffix in SUFFIXES],
}

FILTERS = {
    "default": {},
    "one": {"file_filters": ["*.png"]},
    "not in a list": {"file_filters": "*.p*"},
    "overlapping": {"file_filters": ["*.png", "*.p*", "1.*"]},
    "all": {"file_filters": ["*"]},
    "none": {"file_filters": ["*.none"]},
    "odd": {"file_filters": ["[!1]*", "?.???", "\\[*"]},
    "case": {"case_sensitive_filter": True},
    "folders": {"dir_filters": ["[ab]"]},
    "no folders": {"dir_filters": ["none"]},
    "folders with case": {"dir_filters": ["A", "b*"], "case_sensitive_filter": True},
    "hidden folders": {"dir_filters": [".*"]},
    "no filters for files": {"file_filters": []},
    "no filters for folders": {"dir_filters": []},
}


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("tree", TREES)
def test_the_files_of_a_tree_are_those_that_the_file_reader_finds(tmp_path, tree, filters):
    arguments = FILTERS[filters] | {"file_root": grow(tmp_path / "dataset", TREES[tree])}
    assert outcome(readers.multi_format, **arguments) == outcome(file_reader, **arguments)


def test_links_to_folders_among_files_are_passed_over(tmp_path):
    """The file reader takes them for files, and fails."""
    root = grow(tmp_path, ["a/1.png", "a/2.png -> ../b", "b/3.png"])
    assert listed(readers.multi_format, file_root=root) == [("a/1.png", 0), ("b/3.png", 1)]
    assert outcome(file_reader, file_root=root) is None


@both_readers
def test_l3_files_are_found_by_default(tmp_path, reader):
    root = grow(tmp_path, ["a/1.l3", "a/2.png", "b/3.L3"])
    assert listed(reader, file_root=root) == [("a/1.l3", 0), ("a/2.png", 0), ("b/3.L3", 1)]


@both_readers
@pytest.mark.parametrize("root", ["relative", "trailing slash", "dots"])
def test_ways_to_write_the_root(tmp_path, monkeypatch, reader, root):
    grow(tmp_path / "dataset", ["a/1.png"])
    monkeypatch.chdir(tmp_path)
    spelling = {
        "relative": "dataset",
        "trailing slash": f"{tmp_path}/dataset//",
        "dots": f"{tmp_path}/dataset/../dataset/.",
    }[root]
    assert listed(reader, file_root=spelling) == [("a/1.png", 0)]


@both_readers
@pytest.mark.parametrize("lazy_init", [False, True])
def test_a_root_that_is_not_there_is_named(tmp_path, reader, lazy_init):
    with pytest.raises(RuntimeError, match=f"{tmp_path}/dataset cannot be listed: No such file"):
        Reading(reader, file_root=str(tmp_path / "dataset"), lazy_init=lazy_init).batch()


@both_readers
def test_a_root_without_files_is_named(tmp_path, reader):
    with pytest.raises(RuntimeError, match=f"No files found in {tmp_path}"):
        Reading(reader, file_root=str(tmp_path))


ODD = {
    "hidden folder": ([".hidden/1.png", "a/2.png"], ".hidden is hidden, but counts as a class folder with the label 0"),
    "empty folder": (["a/1.png", "b/"], "b holds no matching files, but has the label 1"),
    "folder without images": (["a/1.txt", "b/2.png"], "a holds no matching files, but has the label 0"),
    "link to nothing": (["a/1.png", "a/2.png -> nowhere"], "a/2.png is a link to nothing"),
}


@pytest.mark.parametrize("odd", ODD)
class TestOddDatasets:
    def test_are_reported(self, tmp_path, odd, capfd):
        tree, report = ODD[odd]
        Reading(readers.multi_format, file_root=grow(tmp_path, tree))
        printed = capfd.readouterr().err
        assert printed.count(f"{tmp_path}/{report}") == 1
        assert printed.count("\n") == 1

    @both_readers
    def test_are_refused_when_strict(self, tmp_path, reader, odd):
        tree, report = ODD[odd]
        with pytest.raises(RuntimeError, match=re.escape(f"The dataset has 1 problem:\n  {tmp_path}/{report}")):
            Reading(reader, file_root=grow(tmp_path, tree), strict=True)


@both_readers
def test_what_is_not_odd_is_neither_reported_nor_refused(tmp_path, reader, capfd):
    root = grow(tmp_path, ["0.png", "a/1.png", "a/nested/2.png", "a/.3.png", "a/notes.txt", "b/4.png -> ../a/1.png"])
    cache = {"cache_size": 4096} if reader is readers.liquid else {}
    Reading(reader, file_root=root, strict=True, **cache)
    assert capfd.readouterr().err == ""


def test_files_listed_twice_are_refused_when_strict(tmp_path):
    arguments = {"file_root": grow(tmp_path, ["1.png", "2.png"]), "files": ["1.png", "2.png", "1.png"]}
    assert [path for path, _ in listed(readers.multi_format, **arguments)] == ["1.png", "1.png", "2.png"]
    with pytest.raises(RuntimeError, match=f"{tmp_path}/1.png is listed twice"):
        Reading(readers.multi_format, strict=True, **arguments)


# ---- Lists of files ----

LISTS = {
    "plain": "a/1.png 3\nb/2.png 1\n",
    "no end of line": "a/1.png 3\nb/2.png 1",
    "blank lines": "\n\na/1.png 3\n \t\n\nb/2.png 1\n\n",
    "white space": "a/1.png \t 3  \nb/2.png\t1\t\n",
    "windows": "a/1.png 3\r\nb/2.png 1\r\n",
    "leading white space": "  a/1.png 3\n",
    "names with spaces": "a/x y.png 3\n",
    "a name that ends with a number": "a/1.png 3 4\n",
    "twice": "a/1.png 3\na/1.png 4\n",
    "leading zeros": "a/1.png 003\n",
    "nested": "a/nested/3.png 3\n",
    "above the root": "../dataset/a/1.png 3\n",
    "missing file": "a/1.png 3\nnowhere.png 1\n",
    "empty": "",
    "no label": "a/1.png 3\nb/2.png\n",
    "label only": "5\n",
    "negative label": "a/1.png -1\n",
    "label with a sign": "a/1.png +1\n",
    "fraction": "a/1.png 1.5\n",
    "comma": "a/1.png,1\n",
}


@pytest.fixture
def root(tmp_path):
    return grow(tmp_path / "dataset", ["a/1.png", "a/x y.png", "a/nested/3.png", "b/2.png"])


@pytest.mark.parametrize("with_root", [False, True])
@pytest.mark.parametrize("text", LISTS)
def test_the_files_of_a_list_are_those_of_the_file_reader(root, tmp_path, text, with_root):
    folder = tmp_path if with_root else Path(root)  # without a root, paths are relative to the list's folder
    file_list = folder / "list.txt"
    file_list.write_bytes(LISTS[text].encode())
    arguments = {"file_list": str(file_list)} | ({"file_root": root} if with_root else {})
    assert outcome(readers.multi_format, **arguments) == outcome(file_reader, **arguments)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("labels", [{}, {"labels": [5, -3, 5]}])
def test_the_files_of_the_argument_are_those_of_the_file_reader(root, absolute, labels):
    files = [f"{root}/{name}" if absolute else name for name in ("b/2.png", "a/1.png", "a/x y.png")]
    arguments = labels | {"files": files} | ({} if absolute else {"file_root": root})
    samples = outcome(readers.multi_format, **arguments)
    assert samples == outcome(file_reader, **arguments)
    assert [sample.label for sample in samples] == labels.get("labels", [0, 1, 2])


def test_an_empty_root_is_the_current_folder_where_files_are_listed(root, monkeypatch):
    monkeypatch.chdir(root)
    Path("list.txt").write_text("b/2.png 5\n")
    for source in ({"files": ["b/2.png", "a/1.png"]}, {"file_list": "list.txt"}):
        samples = outcome(readers.multi_format, file_root="", **source)
        assert samples
        assert samples == outcome(file_reader, file_root="", **source)


@both_readers
def test_bad_lines_are_named_with_their_numbers(root, tmp_path, reader):
    file_list = tmp_path / "list.txt"
    file_list.write_text("a/1.png 1\nb/2.png\n\na/1.png -1\n" + "a/1.png 99999999999\n" * 30)
    with pytest.raises(RuntimeError) as error:
        Reading(reader, file_root=root, file_list=str(file_list))
    message = str(error.value)
    assert f"file_list {file_list} has 32 lines that are not a path and a label:" in message
    assert "\n  line 2: b/2.png\n  line 4: a/1.png -1\n  line 5: a/1.png 99999999999\n" in message
    assert "\n  line 22:" in message
    assert "\n  line 23:" not in message
    assert "line 1:" not in message


@both_readers
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "One of the arguments file_root, file_list, files, paths and catalogue is needed"),
        ({"file_root": ""}, "The argument file_root is empty"),
        ({"file_list": ""}, "The argument file_list is empty"),
        ({"files": []}, "The argument files is an empty list"),
        ({"file_list": "list.txt", "files": ["1.png"]}, "The arguments file_list and files exclude each other"),
        ({"file_root": ".", "labels": [1]}, "The argument labels needs the argument files"),
        ({"files": ["1.png", "2.png"], "labels": [1]}, "The argument labels has 1 label, the argument files 2 files"),
        ({"file_list": "nowhere.txt"}, "file_list nowhere.txt cannot be opened: No such file or directory"),
    ],
)
def test_arguments_that_make_no_sense(reader, arguments, message):
    with pytest.raises(RuntimeError, match=message):
        Reading(reader, **arguments)


@both_readers
@pytest.mark.parametrize("argument", ["file_list", "paths", "index_paths", "catalogue", "subset"])
def test_lists_and_catalogues_that_are_fifos_are_errors(reader, tmp_path, argument):
    fifo = str(tmp_path / "list.txt")
    os.mkfifo(fifo)
    arguments = {argument: fifo}
    if argument in ("paths", "index_paths"):
        arguments = {"paths": str(tmp_path / "a.tar"), "ext": ["png", "cls"], **arguments}
    if argument == "subset":
        arguments["files"] = ["1.png"]
    with pytest.raises((RuntimeError, OSError), match="list.txt.*(not a regular file|no catalogue)|not a regular file"):
        Reading(reader, **arguments)


@both_readers
@pytest.mark.parametrize("filters", ["file_filters", "dir_filters"])
@pytest.mark.parametrize("where", ["file_root", "file_list", "files"])
def test_empty_lists_of_filters_are_refused_wherever_the_files_are_from(root, tmp_path, reader, filters, where):
    file_list = tmp_path / "list.txt"
    file_list.write_text("a/1.png 1\n")
    arguments = {"file_root": root, filters: []}
    arguments |= {"file_root": {}, "file_list": {"file_list": str(file_list)}, "files": {"files": ["a/1.png"]}}[where]
    with pytest.raises(RuntimeError, match=f"The argument {filters} is an empty list"):
        Reading(reader, **arguments)
    assert outcome(file_reader, **arguments) is None


@both_readers
@pytest.mark.parametrize("uri", ["file:///a/1.png", "https://host/1.png", "S3://{dir}/{name}"])
@pytest.mark.parametrize("where", ["file_root", "file_list", "in a list", "files", "companions", "substitute"])
def test_other_uris_are_refused(root, tmp_path, reader, where, uri):
    file_list = tmp_path / "list.txt"
    file_list.write_text(f"a/1.png 1\n{uri} 2\n")
    arguments = {"file_root": root} | {
        "file_root": {"file_root": uri},
        "file_list": {"file_list": uri},
        "in a list": {"file_list": str(file_list)},
        "files": {"files": ["a/1.png", uri]},
        "companions": {"companions": [uri]},
        "substitute": {"on_error": "substitute", "substitute": uri},
    }[where]
    message = re.escape(f"{uri} is a URI: only s3:// and gs:// can be read, and paths of files in local or mounted")
    with pytest.raises(RuntimeError, match=message):
        Reading(reader, **arguments)


@both_readers
def test_paths_that_only_look_like_uris(tmp_path, reader):
    root = grow(tmp_path, ["a/s3:/1.png", "://2.png"])
    files = ["a/s3://1.png", "://2.png", f"{tmp_path}/a/s3://1.png"]
    assert listed(reader, file_root=root, files=files, labels=[0, 1, 2]) == sorted(zip(files, range(3), strict=True))


# ---- Companions ----


@pytest.fixture
def segmentation(tmp_path):
    """The root of images, beside masks and depth maps."""
    stems = [f"{folder}/{i}" for folder in ("a", "b") for i in range(12)]
    grow(tmp_path / "masks", [f"{stem}.png" for stem in stems])
    grow(tmp_path / "depth", [f"{stem}.jpg.l3" for stem in stems])
    return grow(tmp_path / "images", [f"{stem}.jpg" for stem in stems])


TEMPLATES = ["../masks/{dir}/{stem}.png", "../depth/{relpath}.l3", "../depth/{dir}/{name}.l3"]


@both_readers
@pytest.mark.parametrize("count", [1, 2, 3])
def test_companions_come_with_their_image(segmentation, reader, count):
    samples = outcome(reader, file_root=segmentation, companions=TEMPLATES[:count], random_shuffle=True)
    assert len({sample.path for sample in samples}) == 24
    for sample in samples:
        folder, stem = sample.path.removesuffix(".jpg").split("/")
        depth = HEADERS["l3"] + f"{folder}/{stem}.jpg.l3".encode()
        companions = (HEADERS["png"] + f"{folder}/{stem}.png".encode(), depth, depth)
        assert sample.files == (HEADERS["jpg"] + sample.path.encode(), *companions[:count])
        assert sample.label == "ab".index(folder)


@both_readers
def test_a_substitute_has_no_companions(segmentation, reader):
    with pytest.raises(ValueError, match="cannot be used with companions"):
        Reading(reader, file_root=segmentation, companions=TEMPLATES[0], on_error="substitute", substitute="any.png")


@both_readers
def test_companions_do_not_change_the_order(segmentation, reader):
    arguments = {"file_root": segmentation, "random_shuffle": True}
    with_masks = read(reader, 20, companions=TEMPLATES[0], **arguments)
    assert [sample.path for sample in with_masks] == [sample.path for sample in read(reader, 20, **arguments)]


def test_companions_of_listed_files(segmentation):
    arguments = {
        "file_root": segmentation,
        "files": ["a/0.jpg", "b/1.jpg"],
        "companions": ["../masks/{dir}/{stem}.png"],
    }
    (first, second) = outcome(readers.multi_format, **arguments)
    assert (first.files[1], second.files[1]) == (HEADERS["png"] + b"a/0.png", HEADERS["png"] + b"b/1.png")


def test_companions_of_files_without_a_folder(tmp_path):
    root = grow(tmp_path, ["1.png", "1.l3", "2.png", "2.l3"])
    samples = outcome(readers.multi_format, file_root=root, files=["1.png", "2.png"], companions=["{dir}/{stem}.l3"])
    assert [sample.files[1] for sample in samples] == [HEADERS["l3"] + b"1.l3", HEADERS["l3"] + b"2.l3"]


def test_companions_are_kept_and_counted_with_their_image(segmentation):
    reading = Reading(readers.liquid, batch_size=6, file_root=segmentation, companions=TEMPLATES[:2], cache_size="1MiB")
    first = {sample.path: sample for batch in reading.batches(4) for sample in batch}
    for path in Path(segmentation).parent.rglob("*.*"):
        path.unlink()
    assert {sample.path: sample for batch in reading.batches(4) for sample in batch} == first
    statistics = reading.statistics()
    assert statistics["cache_bytes_planned"] == 24 * 3 * 4096
    one, two, *_ = statistics["epochs"]
    assert (one["files_read"], two["files_read"]) == (72, 0)
    assert one["bytes_read"] == sum(len(file) for sample in first.values() for file in sample.files)


def lose(segmentation):
    for name in ("masks/a/3.png", "depth/b/7.jpg.l3"):
        (Path(segmentation).parent / name).unlink()


@both_readers
def test_missing_companions_are_listed_when_the_pipeline_is_built(segmentation, reader):
    lose(segmentation)
    with pytest.raises(RuntimeError) as error:
        Reading(reader, file_root=segmentation, companions=TEMPLATES[:2])
    assert "2 of 24 samples have bad files:\n" in str(error.value)
    for path in ("../masks/a/3.png", "../depth/b/7.jpg.l3"):
        assert f"\n  {segmentation}/{path}: No such file or directory" in str(error.value)


@both_readers
def test_images_whose_companions_are_missing_can_be_left_out(segmentation, reader):
    lose(segmentation)
    samples = listed(reader, file_root=segmentation, companions=TEMPLATES[:2], on_error="skip")
    expected = [(f"{folder}/{i}.jpg", label) for label, folder in enumerate("ab") for i in range(12)]
    assert samples == sorted({*expected} - {("a/3.jpg", 0), ("b/7.jpg", 1)})


@both_readers
def test_a_companion_that_goes_missing_later_makes_its_sample_bad(segmentation, reader):
    reading = Reading(reader, batch_size=6, file_root=segmentation, companions=TEMPLATES[:2], on_error="skip")
    lose(segmentation)
    samples = [sample for batch in reading.batches(4) for sample in batch]
    assert len(samples) == 24
    assert {sample.path for sample in samples}.isdisjoint({"a/3.jpg", "b/7.jpg"})
    assert all(len(sample.files) == 3 for sample in samples)


@both_readers
def test_companions_that_may_be_missing(segmentation, reader, capfd):
    lose(segmentation)
    (Path(segmentation).parent / "void.png").write_bytes(HEADERS["png"] + b"void")
    arguments = {"file_root": segmentation, "companions": TEMPLATES[:2], "missing_companions": ["../void.png", "empty"]}
    files = {sample.path: sample.files for sample in outcome(reader, random_shuffle=True, **arguments)}
    assert len(files) == 24
    assert files["a/3.jpg"][1:] == (HEADERS["png"] + b"void", HEADERS["l3"] + b"a/3.jpg.l3")
    assert files["b/7.jpg"][1:] == (HEADERS["png"] + b"b/7.png", b"")
    assert all(all(content) for path, content in files.items() if path != "b/7.jpg")
    warnings = capfd.readouterr().err
    assert f"1 of 24 samples has no companion {TEMPLATES[0]}:\n  {segmentation}/a/3.jpg" in warnings
    assert f"1 of 24 samples has no companion {TEMPLATES[1]}:\n  {segmentation}/b/7.jpg" in warnings


@both_readers
def test_companions_are_called_by_their_own_paths(segmentation, reader):
    lose(segmentation)
    (Path(segmentation).parent / "void.png").write_bytes(HEADERS["png"] + b"void")
    arguments = {"companions": TEMPLATES[:2], "missing_companions": ["../void.png", "empty"]}
    reading = Reading(reader, file_root=segmentation, batch_size=24, **arguments)
    for _ in range(2):  # from disk, and from memory
        *files, _ = reading.pipeline.run()
        for i in range(24):
            image, mask, depth = (output[i].source_info() for output in files)
            stem = image.removesuffix(".jpg")
            assert mask == ("../void.png" if image == "a/3.jpg" else f"../masks/{stem}.png")
            assert depth == (image if image == "b/7.jpg" else f"../depth/{image}.l3")


@both_readers
def test_a_broken_mask_is_named_not_its_image(segmentation, reader):
    (Path(segmentation).parent / "depth/b/5.jpg.l3").write_bytes(HEADERS["l3"][:-1])
    with pytest.raises(RuntimeError, match=r"\(\.\./depth/b/5\.jpg\.l3\): truncated"):
        Reading(
            lambda **arguments: [fn.decoders.l3(reader(**arguments)[1])],
            file_root=segmentation,
            companions=TEMPLATES[1],
            batch_size=24,
        ).pipeline.run()


def test_an_empty_companion_is_kept_and_restored(segmentation):
    lose(segmentation)
    arguments = {"companions": TEMPLATES[:2], "missing_companions": "empty", "cache_size": "1MiB", "batch_size": 6}
    reading = Reading(readers.liquid, file_root=segmentation, checkpointing=True, **arguments)
    reading.pass_over(6)
    checkpoint = reading.pipeline.checkpoint()
    expected = reading.batches(8)
    assert {len(sample.files[2]) for batch in expected for sample in batch if sample.path == "b/7.jpg"} == {0}
    assert Reading(readers.liquid, file_root=segmentation, checkpoint=checkpoint, **arguments).batches(8) == expected


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{folder}/x", "the unknown field {folder}"),
        ("{dir", "an unmatched brace"),
        ("dir}", "an unmatched brace"),
        ("{}", "{}"),
        ("{stem%}", "no text to look for in {stem%}"),
        ("{stem%%_x}", "two signs in {stem%%_x}, of which one is enough"),
        ("{stem##x}", "two signs in {stem##x}, of which one is enough"),
        ("{stem%_*}", "a pattern in {stem%_*}: give the text itself"),
        ("{name/?/b}", "a pattern in {name/?/b}: give the text itself"),
        ("{stem/a}", "no new text in {stem/a}"),
    ],
)
def test_templates_that_make_no_sense(segmentation, template, problem):
    with pytest.raises(RuntimeError, match=re.escape(f'The companions\' path "{template}" has')) as error:
        Reading(readers.multi_format, file_root=segmentation, companions=[template])
    assert problem in str(error.value)
    assert "its fields are {dir}, {stem}, {name} and {relpath}" in str(error.value)


@both_readers
def test_missing_companions_of_none(segmentation, reader):
    message = "The argument missing_companions needs companions or companion_files"
    for value in ("empty", ["error", "empty"], "mask.png"):
        with pytest.raises(RuntimeError, match=message):
            Reading(reader, file_root=segmentation, missing_companions=value)


# ---- Names that are no text ----


@pytest.fixture
def latin(tmp_path):
    """A root with a file that is named in Latin-1, and empty."""
    root = grow(tmp_path / "dataset", ["a/1.png", "a/2.png"])
    Path(root, "a", os.fsdecode(b"\xe9t\xe9.png")).touch()
    return root


@both_readers
def test_errors_show_names_that_are_not_utf8(latin, reader, tmp_path, capfd):
    message = re.escape(f"{latin}/a/\\xE9t\\xE9.png: is empty")
    with pytest.raises(RuntimeError, match=message):
        Reading(reader, file_root=latin, batch_size=3).batch()
    assert len(outcome(reader, file_root=latin, on_error="skip")) == 2
    (tmp_path / "list.txt").write_bytes(b"a/\xe9t\xe9.png 0\na/1.png 1\n")
    with pytest.raises(RuntimeError, match=message):
        Reading(reader, file_root=latin, file_list=str(tmp_path / "list.txt")).batch()


# ---- Bad files ----


def encoded(name: str) -> bytes:
    """A file of a format."""
    image = Image.fromarray(np.arange(40 * 50 * 3, dtype=np.uint8).reshape(40, 50, 3))
    if name == "l3":
        return dali_l3.encode(np.asarray(image))
    file = io.BytesIO()
    image.save(file, name)
    return file.getvalue()


BAD = {
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "of no format": (lambda path: path.write_bytes(b"no image at all"), "of no known image format"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "No such file or directory"),
    "short": (lambda path: path.write_bytes(b"B"), "of no known image format"),
}


@pytest.fixture(params=BAD)
def bad_dataset(request, tmp_path):
    """A root with a bad file, its name and what is wrong with it."""
    make, problem = BAD[request.param]
    root = grow(tmp_path / "dataset", ["a/1.png", "a/3.png", "b/4.png"])
    make(Path(root) / "a/2.png")
    return root, "a/2.png", problem


@pytest.fixture
def substitute(tmp_path):
    path = tmp_path / "substitute.png"
    path.write_bytes(HEADERS["png"] + b"substitute")
    return {"on_error": "substitute", "substitute": str(path)}


class TestFilesThatAreBadFromTheBeginning:
    def test_are_named_by_liquid_when_the_pipeline_is_built(self, bad_dataset):
        root, name, problem = bad_dataset
        with pytest.raises(RuntimeError, match=f"1 of 4 samples has bad files:\n  {root}/{name}: {problem}"):
            Reading(readers.liquid, file_root=root)

    def test_do_not_keep_multi_format_from_being_built(self, bad_dataset):
        """It does not open files, unless it is asked to."""
        root, *_ = bad_dataset
        assert Reading(readers.multi_format, file_root=root).pipeline.epoch_size("reader") == 4

    @both_readers
    @pytest.mark.parametrize("on_error", ["skip", "substitute"])
    def test_are_left_out_and_reported_once(self, bad_dataset, substitute, reader, on_error, capfd):
        root, name, problem = bad_dataset
        arguments = {"file_root": root} | (substitute if on_error == "substitute" else {"on_error": on_error})
        assert listed(reader, **arguments) == [("a/1.png", 0), ("a/3.png", 0), ("b/4.png", 1)]
        reports = capfd.readouterr().err
        assert f"1 of 4 samples has bad files:\n  {root}/{name}: {problem}\nThey are left out" in reports
        assert reports.count("samples has bad files") == 1

    @both_readers
    def test_are_left_out_before_the_dataset_is_sharded(self, bad_dataset, reader):
        root, *_ = bad_dataset
        arguments = {"file_root": root, "num_shards": 3, "stick_to_shard": True, "on_error": "skip"}
        readings = [Reading(reader, batch_size=1, shard_id=shard, **arguments) for shard in range(3)]
        assert {reading.pipeline.epoch_size("reader") for reading in readings} == {3}
        assert sorted(reading.batch()[0].path for reading in readings) == ["a/1.png", "a/3.png", "b/4.png"]

    @both_readers
    def test_are_an_error_if_there_are_no_others(self, tmp_path, reader):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "1.png").write_bytes(b"")
        with pytest.raises(RuntimeError, match=f"No files found in {tmp_path}"):
            Reading(reader, file_root=str(tmp_path), on_error="skip")


def test_multi_format_names_a_bad_file_when_it_comes_to_it(tmp_path):
    root = grow(tmp_path, ["a/1.png", "a/2.png -> nowhere"])
    reading = Reading(readers.multi_format, batch_size=1, file_root=root)
    assert reading.batch()[0].path == "a/1.png"
    with pytest.raises(RuntimeError, match=f"{root}/a/2.png: No such file or directory"):
        reading.batch()


def test_multi_format_delivers_what_the_file_reader_delivers_of_files_of_no_format(tmp_path):
    root = grow(tmp_path, ["a/1.png"])
    (tmp_path / "a" / "2.png").write_bytes(b"no image")
    assert outcome(readers.multi_format, file_root=root) == outcome(file_reader, file_root=root)


@both_readers
@pytest.mark.parametrize("name", ["nowhere.png", "empty.png", "text.png"])
def test_a_substitute_that_is_bad_itself(tmp_path, reader, name):
    root = grow(tmp_path, ["a/1.png"])
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("not an image")
    with pytest.raises(RuntimeError, match=f"{tmp_path}/{name}"):
        Reading(reader, file_root=root, on_error="substitute", substitute=str(tmp_path / name))


@both_readers
def test_twenty_bad_files_are_shown_at_most(tmp_path, reader):
    root = grow(tmp_path, [f"a/{i:02d}.png" for i in range(30)])
    for path in (tmp_path / "a").iterdir():
        path.write_bytes(b"")
    (tmp_path / "a" / "99.png").write_bytes(encoded("png"))
    with pytest.raises(RuntimeError, match="30 of 31 samples have bad files") as error:
        Reading(reader, file_root=root, check="headers")
    assert "/19.png: is empty\n  …" in str(error.value)
    assert "/20.png" not in str(error.value)


CUTS = {
    "l3": ([9, 20, -1], "bytes|header"),
    "png": ([9, 20, 32], "the file ends within the PNG header"),
    "jpeg": ([3, 4, 30, 200], "the file ends within the JPEG header"),
}


@both_readers
@pytest.mark.parametrize(
    ("name", "length"), [(name, length) for name, (lengths, _) in CUTS.items() for length in lengths]
)
class TestFilesThatAreCutOff:
    def test_are_bad_with_checked_headers(self, tmp_path, reader, name, length):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / f"1.{name}").write_bytes(encoded(name))
        (tmp_path / "a" / f"2.{name}").write_bytes(encoded(name)[:length])
        with pytest.raises(RuntimeError, match=rf"1 of 2 samples has bad files:\n  .*/2.{name}: .*({CUTS[name][1]})"):
            Reading(reader, file_root=str(tmp_path), check="headers")

    def test_are_delivered_otherwise(self, tmp_path, reader, name, length):
        (tmp_path / "a").mkdir()
        data = encoded(name)[:length]
        (tmp_path / "a" / f"1.{name}").write_bytes(data)
        (sample,) = outcome(reader, file_root=str(tmp_path))
        assert sample.files == (data,)


# ---- Ways of reading ----


@both_readers
@pytest.mark.parametrize(
    "ways",
    [
        {"use_o_direct": True},
        {"use_o_direct": False},
        {"read_threads": 1},
        {"read_threads": 30},
        {"lazy_init": True},
        {"prefetch_queue_depth": 5},
        {"dont_use_mmap": True},
        {"read_ahead": True},
    ],
    ids=str,
)
def test_the_samples_do_not_depend_on_how_files_are_read(root, reader, ways):
    assert read(reader, 9, file_root=root, **ways) == read(reader, 9, file_root=root)


@both_readers
@pytest.mark.parametrize(("batch_size", "depth"), [(100, 1), (24, 3)])
def test_64_images_and_at_least_one_batch_are_read_ahead(tmp_path, reader, batch_size, depth):
    """Neither more nor less: after every batch that is taken as much is there again, when the machine gets to it."""
    write_dataset(tmp_path, {"png": 500})

    def check(batches_ahead, **arguments):
        reading = Reading(reader, batch_size=batch_size, file_root=str(tmp_path), **arguments)
        for _ in range(4):
            reading.batch()
            wait_until(lambda: reading.statistics()["other_bytes_used"] == batches_ahead * batch_size * 4096)

    check(depth)
    for chosen in (depth, depth + 1):
        check(chosen, prefetch_queue_depth=chosen)


@both_readers
@pytest.mark.parametrize("use_o_direct", [False, True])
@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 3_000_001])
def test_files_of_any_size_are_delivered_whole(tmp_path, reader, use_o_direct, size):
    (tmp_path / "a").mkdir()
    content = np.random.default_rng(size).bytes(size)
    for name in ("1.png", "2.png"):
        (tmp_path / "a" / name).write_bytes((HEADERS["png"] + content)[: max(size, 8)])
    for sample in outcome(reader, file_root=str(tmp_path), use_o_direct=use_o_direct):
        assert sample.files == ((HEADERS["png"] + content)[: max(size, 8)],)


@both_readers
def test_ctrl_c_works_after_several_readers_listed_at_once(tmp_path, run_python, reader):
    """Listing sets a handler of its own for the time that it takes, whoever else is listing."""
    root = grow(tmp_path / "dataset", [f"a/{i}.png" for i in range(200)])
    program = f"""
        import os, signal, threading, time
        import dali_l3
        from nvidia.dali import Pipeline, fn

        def read():
            for _ in range(40):
                pipeline = Pipeline(batch_size=1, num_threads=1, device_id=None)
                with pipeline:
                    reader = fn.readers.{reader.__name__}(file_root={root!r}, on_error="skip", lazy_init=True)
                    pipeline.set_outputs(*reader)
                pipeline.build()
                pipeline.run()  # lists the files, in a thread of its own

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert run_python(textwrap.dedent(program)) == "interrupted"
