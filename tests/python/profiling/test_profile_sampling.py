"""The profiler's sample of a dataset."""

from __future__ import annotations

import math
import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dali_l3
from dali_l3.errors import ConversionError
from dali_l3.profiling import sampling
from dali_l3.profiling.sampling import Dataset, choose_sample, list_images
from image_files import write_png


def dataset(folders):
    """Of folders with files of these sizes."""
    images = [
        (os.path.join(f"class {folder}", str(number)), size)
        for folder, sizes in enumerate(folders)
        for number, size in enumerate(sizes)
    ]
    return Dataset([path for path, _ in images], [size for _, size in images])


FOLDERS = st.lists(st.lists(st.integers(1, 10**7), max_size=40), min_size=1, max_size=8).filter(any)


@given(FOLDERS, st.integers(1, 400), st.integers(0, 100))
@example([[1]], 1, 0)
@example([[1]], 100, 0)
@example([list(range(40))] * 8, 1, 0)
def test_as_many_distinct_images_as_wanted_or_all(folders, count, seed):
    images = dataset(folders)
    chosen = choose_sample(images, count, seed)
    assert len(chosen) == len(set(chosen)) == min(count, len(images.files))
    assert set(chosen) <= set(images.files)
    assert chosen == choose_sample(images, count, seed)


@given(FOLDERS, st.integers(1, 100), st.integers(0, 100), st.data())
def test_folders_and_ranges_of_sizes_have_their_shares(folders, count, seed, data):
    images = dataset(folders)
    chosen = set(choose_sample(images, count, seed))
    part = min(count / len(images.files), 1)

    def is_share(taken, whole):
        return math.floor(whole * part - 1e-9) <= taken <= math.ceil(whole * part + 1e-9)

    taken = Counter(os.path.dirname(path) for path in chosen)
    for folder, sizes in enumerate(folders):
        assert is_share(taken[f"class {folder}"], len(sizes))

    sizes = dict(zip(images.files, images.sizes, strict=True))
    folder = data.draw(st.sampled_from([number for number, sizes in enumerate(folders) if sizes]))
    low, high = sorted(data.draw(st.tuples(*[st.sampled_from(folders[folder])] * 2)))
    within = {
        path for path, size in sizes.items() if os.path.dirname(path) == f"class {folder}" and low <= size <= high
    }
    assert is_share(len(chosen & within), len(within))


def test_sizes_are_represented_wherever_the_files_are():
    small, large = 10**3, 10**6
    images = dataset([[small, large] * 50, [large, small] * 20])
    sizes = dict(zip(images.files, images.sizes, strict=True))
    assert Counter(sizes[path] for path in choose_sample(images, 70)) == {small: 35, large: 35}


def test_seeds_draw_different_samples():
    images = dataset([range(1, 1000)])
    assert len({tuple(choose_sample(images, 10, seed)) for seed in range(10)}) == 10


def test_every_image_may_be_chosen():
    images = dataset([range(1, 8), range(1, 6)])
    assert set().union(*(choose_sample(images, 5, seed) for seed in range(100))) == set(images.files)


def test_the_first_of_the_sample_are_of_all_folders():
    images = dataset([range(1, 101)] * 4)
    first = choose_sample(images, 100)[:25]
    assert len({os.path.dirname(path) for path in first}) == 4


# ---- Listing ---------------------------------------------------------------------------------------------------------


def test_images_are_told_by_their_content(tmp_path):
    files = [write_png(tmp_path / "b" / "1.png"), write_png(tmp_path / "a" / "no suffix")]
    (tmp_path / "a" / "text.png").write_text("not an image")
    (tmp_path / "labels.csv").write_text("a,b")
    (tmp_path / "empty.png").touch()
    (tmp_path / "dangling.png").symlink_to("nowhere")
    write_png(tmp_path / ".hidden.png")
    found = list_images(str(tmp_path))
    assert found.files == sorted(map(str, files))
    assert found.sizes == [os.path.getsize(path) for path in found.files]


def test_l3_files_only_if_wanted(tmp_path):
    import dali_l3
    from image_files import noise

    png = write_png(tmp_path / "1.png")
    l3 = tmp_path / "2.l3"
    l3.write_bytes(dali_l3.encode(noise((8, 8))))
    assert list_images(str(tmp_path)).files == [str(png)]
    assert list_images(str(tmp_path), with_l3=True).files == [str(png), str(l3)]


def test_files_that_cannot_be_opened_are_passed_over(tmp_path, monkeypatch):
    kept, locked = write_png(tmp_path / "1.png"), write_png(tmp_path / "2.png")

    def sniff(path, sniff=sampling.sniff_file):
        if path == str(locked):
            raise PermissionError(path)
        return sniff(path)

    monkeypatch.setattr(sampling, "sniff_file", sniff)
    assert list_images(str(tmp_path)).files == [str(kept)]


def test_npy_files_count_but_are_passed_over(tmp_path):
    """fn.decoders.image does not decode them, but they are converted."""
    png, npy = write_png(tmp_path / "1.png"), tmp_path / "2.npy"
    np.save(npy, np.zeros((8, 8), np.uint8))
    for with_l3 in (False, True):
        found = list_images(str(tmp_path), with_l3)
        assert found.files == [str(png)]
        assert (found.images, found.bytes) == (2, png.stat().st_size + npy.stat().st_size)


def make_l3_files(path):
    path.mkdir()
    (path / "a.l3").write_bytes(dali_l3.encode(np.zeros((2, 2), np.uint8)))


def make_npy_files(path):
    path.mkdir()
    np.save(path / "a.npy", np.zeros((2, 2), np.uint8))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.write_text("a file"), "not a folder"),
        (lambda path: path.mkdir(), "no images that can be profiled$"),
        (make_l3_files, "no images that can be profiled; convert its L3 files with `dali-l3 export` first$"),
        (make_npy_files, "no images that can be profiled; fn.decoders.image does not decode its NPY files$"),
    ],
)
def test_not_a_folder_of_images(tmp_path, make, message):
    path = tmp_path / "data"
    make(path)
    with pytest.raises(ConversionError, match=f"data: {message}"):
        list_images(str(path))
