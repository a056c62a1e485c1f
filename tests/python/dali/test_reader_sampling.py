"""Subsets, weights, proportions of classes and the length of an epoch, in both readers."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nvidia.dali import fn

from dali_l3.fn import readers
from reading import Delivered, Reading, grow, read, write_dataset

pytestmark = pytest.mark.usefixtures("plugin")
both_readers = pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])

# Of three classes: files 0 … 1, 2 … 6 and 7 … 18 of the listing.
NAMES = [f"{label}/{i:02d}.{'png' if i % 2 else 'jpg'}" for label, count in enumerate((2, 5, 12)) for i in range(count)]
LABELS = [int(name[0]) for name in NAMES]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return grow(tmp_path_factory.mktemp("dataset") / "data", NAMES)


def paths(reader, batches: int, **arguments) -> list[str]:
    return [sample.path for sample in read(reader, batches, **arguments)]


# ---- Subsets ----


@both_readers
@pytest.mark.parametrize("of", [list, np.array, tuple])
def test_a_subset_is_a_dataset_of_its_own(root, reader, of):
    indices = [18, 3, 0, 8]
    reading = Reading(reader, file_root=root, subset=of(indices))
    assert reading.pipeline.epoch_size("reader") == 4
    for _ in range(2):
        assert {(sample.path, sample.label) for sample in reading.batch()} == {(NAMES[i], LABELS[i]) for i in indices}


@both_readers
def test_a_subset_is_named_in_a_file_or_a_list(root, reader, tmp_path):
    chosen = [NAMES[i] for i in (1, 4, 17)]
    (tmp_path / "list.txt").write_text("\n".join(reversed(chosen)) + " \n\n")
    lists = [chosen, tuple(chosen), np.array(chosen), [Path(name) for name in chosen]]
    for subset in (*lists, str(tmp_path / "list.txt"), tmp_path / "list.txt"):
        assert sorted(paths(reader, 1, file_root=root, batch_size=3, subset=subset)) == chosen


def test_a_subset_has_the_order_of_fn_readers_file(root):
    chosen = sorted(np.random.default_rng(0).permutation(19)[:13].tolist())
    arguments = {
        "file_root": root,
        "random_shuffle": True,
        "initial_fill": 4,
        "num_shards": 2,
        "shard_id": 1,
        "seed": 3,
    }

    def file_reader(**arguments):
        files, labels = [NAMES[i] for i in chosen], [LABELS[i] for i in chosen]
        return fn.readers.file(files=files, labels=labels, **arguments)

    assert read(readers.multi_format, 9, subset=chosen, **arguments) == read(file_reader, 9, **arguments)


@both_readers
def test_parts_divide_the_dataset_and_hold_its_classes(tmp_path, reader):
    names = [f"{label}/{i}.png" for label in range(3) for i in range(10 * (label + 1))]
    root = grow(tmp_path / "data", names)
    parts = [(0.0, 0.5), (0.5, 0.8), (0.8, 1.0)]
    samples = [read(reader, 1, file_root=root, batch_size=round(60 * (b - a)), subset=(a, b)) for a, b in parts]
    assert sorted(sample.path for part in samples for sample in part) == sorted(names)
    for part, (a, b) in zip(samples, parts, strict=True):
        counts = Counter(sample.label for sample in part)
        assert all(abs(counts[label] - 10 * (label + 1) * (b - a)) <= 1 for label in range(3))
    half = {sample.path for sample in samples[0]}
    assert set(paths(reader, 1, file_root=root, batch_size=30, subset=0.5, seed=9)) == half
    assert set(paths(reader, 1, file_root=root, batch_size=30, subset=0.5, subset_seed=1)) != half


@both_readers
def test_companions_and_tables_go_with_a_subset(tmp_path, reader):
    names = [f"{i}.png" for i in range(6)]
    root = grow(tmp_path / "data", names + [f"mask {name}" for name in names])
    samples = Reading(
        reader,
        file_root=root,
        files=names,
        companion_files=[f"mask {name}" for name in names],
        label_values=np.arange(6),
        label_columns=1,
        subset=[1, 2, 5],
        batch_size=3,
    ).batch()
    assert sorted(sample.path for sample in samples) == ["1.png", "2.png", "5.png"]
    for sample in samples:
        assert sample.files[1].endswith(f"mask {sample.path}".encode())
        assert sample.label == int(sample.path[0])


@both_readers
@pytest.mark.parametrize(
    ("subset", "message"),
    [
        ([0, 19], "The argument subset has the index 19, but the dataset has 19 samples, counted from 0"),
        ([-1], "The argument subset has the index -1"),
        ([2**32], "The argument subset has the index 4294967296, but the dataset has 19 samples"),
        ([3, 3], "The argument subset has the index 3 twice: use weights"),
        (["0/00.jpg", "0/7.png"], "The argument subset names 1 file that the dataset does not have:\n  0/7.png"),
        (0.0, "The argument subset is the part of the dataset from 0 to 0, but both must be from 0 to 1"),
        (1.5, "The argument subset is the part of the dataset from 0 to 1.5, but"),
        ((0.6, 0.4), "The argument subset is the part of the dataset from 0.6 to 0.4, but"),
        (0.01, "The argument subset leaves none of the 19 samples"),
    ],
)
def test_subsets_that_do_not_suit_the_dataset_are_errors(root, reader, subset, message):
    with pytest.raises(RuntimeError, match=re.escape(message)):
        Reading(reader, file_root=root, subset=subset)


@both_readers
@pytest.mark.parametrize(
    ("subset", "error", "message"),
    [
        ([], ValueError, "subset is empty"),
        (3, TypeError, "subset must be a fraction, two fractions, a list of indices,"),
        ([0.1, 0.2, 0.3], TypeError, "subset must be"),
        ([True, False], TypeError, "subset must be a list of indices, not a mask: give np.flatnonzero(mask)"),
        (np.ones(19, bool), TypeError, "not a mask"),
        ([[1, 2]], TypeError, "subset must be"),
        ([2**63], ValueError, "subset must be indices of 64 bits, not [9223372036854775808]"),
        ([2**70], ValueError, "subset must be indices of 64 bits, not [1180591620717411303424]"),
        ([-(2**70)], ValueError, "subset must be indices of 64 bits, not [-1180591620717411303424]"),
        (np.uint64([2**63]), ValueError, "subset must be indices of 64 bits"),
        ([2**70, "a"], TypeError, "subset must be"),
        ([None], TypeError, "subset must be"),
        ((0, 1), TypeError, "subset=(0, 1) is ambiguous: write (0.0, 1.0)"),
        ("no such file", FileNotFoundError, "no such file"),
        ("/dev/null", OSError, "not a regular file"),
    ],
)
def test_subsets_of_another_form_are_errors(root, reader, subset, error, message):
    with pytest.raises(error, match=re.escape(message)):
        reader(file_root=root, subset=subset)


@both_readers
@pytest.mark.parametrize("argument", ["epoch_size", "num_shards", "shard_id", "subset_seed", "seed", "read_threads"])
def test_integers_are_whole(root, reader, argument):
    for value in (1.5, "1", float("nan")):
        with pytest.raises(TypeError, match=f"{argument} must be an integer, not {type(value).__name__}"):
            reader(file_root=root, **{argument: value})


@both_readers
def test_an_epoch_size_may_be_a_whole_float(root, reader):
    assert Reading(reader, file_root=root, epoch_size=1e1).pipeline.epoch_size("reader") == 10


@both_readers
def test_a_list_of_names_is_text(root, reader, tmp_path):
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ValueError, match=re.escape(f"subset {tmp_path / 'empty.txt'} names no files")):
        reader(file_root=root, subset=tmp_path / "empty.txt")
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=re.escape(f"subset {tmp_path / 'list.txt'} is not a text file in UTF-8")):
        reader(file_root=root, subset=tmp_path / "list.txt")
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbf" + "".join(f"{name}\r\n" for name in NAMES[:2]).encode())
    assert set(paths(reader, 1, file_root=root, subset=tmp_path / "list.txt", batch_size=2)) == set(NAMES[:2])


# ---- Counts ----


def is_rounded(count: int, exact: Fraction) -> bool:
    """Whether a count is the floor or the ceiling."""
    return abs(count - exact) < 1


@dataclass(frozen=True)
class Setting:
    """A dataset, how it is weighted and how it is read."""

    counts: dict[str, int]  # files of each format
    classes: int
    mode: str
    weights: list[int]  # at least as many as there are files, by turns for files and classes
    epoch_size: int
    shards: int
    batch_size: int
    pad_last_batch: bool
    reader: str

    def arguments(self, labels: list[int]) -> dict:
        """Those that weight; `labels` are those of the dataset."""
        arguments: dict = {"epoch_size": self.epoch_size}
        if self.mode == "weights":
            arguments["weights"] = self.weights[: len(labels)]
        if self.mode == "proportions":
            arguments["class_proportions"] = self.weights[: max(labels) + 1]
        if self.mode == "balanced":
            arguments["class_proportions"] = "balanced"
        return arguments

    def rates(self, labels: list[int]) -> list[Fraction]:
        """Draws of each sample in an epoch, exactly."""
        sizes = Counter(labels)
        weights = {
            "uniform": [Fraction(1)] * len(labels),
            "weights": [Fraction(weight) for weight in self.weights[: len(labels)]],
            "proportions": [Fraction(self.weights[label], sizes[label]) for label in labels],
            "balanced": [Fraction(1, sizes[label]) for label in labels],
        }[self.mode]
        return [self.epoch_size * weight / sum(weights) for weight in weights]


READERS = {
    "in order": (readers.multi_format, {}),
    "shuffled": (readers.multi_format, {"random_shuffle": True}),
    "mix": (readers.multi_format, {"random_shuffle": True, "mix": "dataset"}),
    "liquid": (readers.liquid, {"cache_size": 20000}),
    "minio": (readers.liquid, {"cache_size": 20000, "policy": "minio"}),
    "none": (readers.liquid, {"policy": "none"}),
}


@st.composite
def a_setting(draw) -> Setting:
    counts = draw(st.dictionaries(st.sampled_from(["png", "jpg", "bmp"]), st.integers(1, 8), min_size=1))
    epoch_size = draw(st.integers(1, 40))
    return Setting(
        counts,
        classes=draw(st.integers(1, 4)),
        mode=draw(st.sampled_from(["uniform", "weights", "proportions", "balanced"])),
        weights=[1, *draw(st.lists(st.integers(0, 9) | st.just(100), min_size=24, max_size=24))],
        epoch_size=epoch_size,
        shards=draw(st.integers(1, min(3, epoch_size))),
        batch_size=draw(st.integers(1, 9)),
        pad_last_batch=draw(st.booleans()),
        reader=draw(st.sampled_from(sorted(READERS))),
    )


def epochs_of(setting: Setting, shard: int, epochs: int, root: str, **arguments) -> list[list[Delivered]]:
    """The samples of a shard, epoch by epoch, without padding."""
    reader, more = READERS[setting.reader]
    reading = Reading(
        reader,
        file_root=root,
        num_shards=setting.shards,
        shard_id=shard,
        stick_to_shard=True,
        batch_size=setting.batch_size,
        pad_last_batch=setting.pad_last_batch,
        **more,
        **arguments,
    )
    assert reading.pipeline.reader_meta("reader")["epoch_size"] == setting.epoch_size
    size = setting.epoch_size * (shard + 1) // setting.shards - setting.epoch_size * shard // setting.shards
    largest = -(-setting.epoch_size // setting.shards)
    padded = -(-largest // setting.batch_size) * setting.batch_size if setting.pad_last_batch else size
    batches = -(-padded * epochs // setting.batch_size)
    samples = [sample for batch in reading.batches(batches) for sample in batch]
    return [samples[padded * epoch :][:size] for epoch in range(epochs)]


@settings(max_examples=60)
@given(a_setting())
def test_counts_are_exact_in_every_epoch_and_in_all(setting):
    epochs = 4
    with tempfile.TemporaryDirectory() as folder:
        files = write_dataset(Path(folder), setting.counts, setting.classes)
        names = [f"{path.parent.name}/{path.name}" for path in files]
        folders = sorted({path.parent.name for path in files})
        labels = [folders.index(path.parent.name) for path in files]
        rates = setting.rates(labels)
        arguments = setting.arguments(labels)
        shards = [epochs_of(setting, shard, epochs, folder, **arguments) for shard in range(setting.shards)]
    sums: Counter[str] = Counter()
    for epoch in zip(*shards, strict=True):
        samples = [sample for part in epoch for sample in part]
        assert len(samples) == setting.epoch_size
        counts = Counter(sample.path for sample in samples)
        sums += counts
        assert all(is_rounded(counts[name], rate) for name, rate in zip(names, rates, strict=True))
        assert all(sample.label == labels[names.index(sample.path)] for sample in samples)
        if setting.mode != "weights":
            classes = Counter(sample.label for sample in samples)
            for label in set(labels):
                exact = sum(rate for rate, other in zip(rates, labels, strict=True) if other == label)
                assert is_rounded(classes[label], exact)
        for extension in setting.counts:
            of_format = [sum(sample.format == extension for sample in part) for part in epoch]
            if setting.reader in ("mix", "liquid", "minio", "none"):
                assert max(of_format) - min(of_format) <= 1
    for name, rate in zip(names, rates, strict=True):
        assert abs(sums[name] - epochs * rate) < 2


@both_readers
def test_epochs_that_are_small_cover_the_dataset(root, reader):
    reading = Reading(reader, file_root=root, random_shuffle=True, epoch_size=1, batch_size=1)
    for _ in range(3):
        assert sorted(sample.path for batch in reading.batches(19) for sample in batch) == NAMES


@both_readers
def test_weights_belong_to_the_files_as_listed(tmp_path, reader):
    root = grow(tmp_path / "data", NAMES)
    (tmp_path / "data" / NAMES[3]).write_bytes(b"")
    weights = np.arange(19)
    counts = Counter(
        paths(
            reader,
            1,
            file_root=root,
            weights=weights,
            subset=[0, 1, 2, 3, 5],
            on_error="skip",
            epoch_size=80,
            batch_size=80,
        )
    )
    assert counts == {NAMES[1]: 10, NAMES[2]: 20, NAMES[5]: 50}


@both_readers
def test_shuffled_epochs_differ_and_repeat(root, reader):
    def order(seed):
        return paths(reader, 5, file_root=root, random_shuffle=True, class_proportions="balanced", seed=seed)

    assert order(1) == order(1)
    assert order(1) != order(2)


@both_readers
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [-1] * 19}, "weights[0] is -1.000000, but must be a finite number"),
        ({"weights": [np.nan] * 19}, "weights[0] is nan"),
        ({"weights": [0] * 19}, "weights must have a number that is more than 0"),
        ({"weights": [1] * 18}, "The argument weights has 18 numbers, but the dataset has 19 samples"),
        ({"class_proportions": [1, 1]}, "class_proportions has 2 numbers, none for the label 2"),
        ({"class_proportions": [1, 0, 1, 1]}, "class_proportions[3] is more than 0, but there are no samples"),
        ({"class_proportions": [0, 1, 0], "subset": [0, 1]}, "class_proportions[1] is more than 0, but there are no"),
        ({"weights": [0, *[1] * 18], "subset": [0]}, "weights are 0 for all samples that are left"),
        ({"weights": [1] * 19, "class_proportions": "balanced"}, "exclude each other"),
        ({"epoch_size": 0}, "epoch_size is 0, but must be from 1"),
        ({"epoch_size": 2**63}, "epoch_size is 9223372036854775808, which does not fit into 64 bits"),
        ({"class_proportions": "balanced", "num_shards": 20}, "There are fewer samples (19) than shards (20)"),
        ({"class_proportions": "balanced", "num_shards": 0}, "num_shards"),
        ({"epoch_size": 2, "num_shards": 3}, "epoch_size is 2, less than num_shards, which is 3"),
    ],
)
def test_wrong_weights_are_errors(root, reader, arguments, message):
    with pytest.raises((RuntimeError, ValueError), match=re.escape(message)):
        Reading(reader, file_root=root, **arguments)


@both_readers
@pytest.mark.parametrize("argument", ["weights", "class_proportions"])
@pytest.mark.parametrize(
    "values",
    [{0: 1}, ["a", "b"], [[1], [2]], 1.5, [1j], (1 for _ in range(19))],
    ids=["dict", "texts", "nested", "number", "complex", "generator"],  # the same in every process
)
def test_weights_are_lists_of_numbers(root, reader, argument, values):
    with pytest.raises((TypeError, ValueError), match=f"{argument} must be a list of numbers"):
        reader(file_root=root, **{argument: values})


@both_readers
def test_proportions_have_one_name(root, reader):
    with pytest.raises(ValueError, match='class_proportions is "equal", but must be "balanced" or a list of numbers'):
        reader(file_root=root, class_proportions="equal")


# ---- Liquid ----


def test_liquid_holds_what_is_drawn_most_often(tmp_path):
    counts = (3, 10, 60)
    names = [f"{label}/{i:02d}.png" for label, count in enumerate(counts) for i in range(count)]
    root = grow(tmp_path / "data", names)
    reading = Reading(
        readers.liquid,
        file_root=root,
        class_proportions="balanced",
        epoch_size=90,
        batch_size=15,
        cache_size=18 * 4096,
        companions=["{relpath}"],
    )
    # Image and companion take a page each: 9 samples are held, all of class 0 and 6 of class 1.
    reading.pass_over(6 * 6)
    stats = reading.statistics()
    assert stats["hit_ratio"] == pytest.approx((30 + 6 * 3) / 90)
    assert stats["cache_bytes_peak"] == 18 * 4096
    for epoch in stats["epochs"][1:6]:  # the pipeline has begun with another
        assert epoch["formats"] == {"PNG": {"hits": 48, "misses": 42}}
        assert epoch["files_read"] == 2 * 42
    for batch in stats["batches"][6:]:
        assert batch["formats"] == {"PNG": {"hits": 8, "misses": 7}}
    # In the first epoch, each held sample is read once.
    assert stats["epochs"][0]["files_read"] == 2 * (42 + 9)


def test_files_that_go_bad_are_replaced_in_every_draw(tmp_path):
    root = grow(tmp_path / "data", NAMES)
    reading = Reading(
        readers.liquid, file_root=root, class_proportions="balanced", epoch_size=60, batch_size=20, on_error="skip"
    )
    (tmp_path / "data" / NAMES[0]).unlink()
    samples = [sample for batch in reading.batches(9) for sample in batch][60:]
    assert len(samples) == 120
    assert NAMES[0] not in {sample.path for sample in samples}
    assert reading.statistics()["epochs"][1]["bad_samples"] == 10
