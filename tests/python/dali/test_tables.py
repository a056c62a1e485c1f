"""Labels that are numbers, companions from a list, and tables of samples."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from nvidia.dali import Pipeline, fn

import dali_l3
from dali_l3.fn import readers
from reading import HEADERS, grow

pytestmark = pytest.mark.usefixtures("plugin")
both_readers = pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])

NAMES = [f"{i}.png" for i in range(7)]


@pytest.fixture
def root(tmp_path):
    return grow(tmp_path / "data", [*NAMES, "m.png", *(f"mask {name}" for name in NAMES)])


def delivered(reader, epochs: int = 2, **arguments) -> list[tuple[str, list[bytes], np.ndarray]]:
    """Path, companions without their header, and label of each sample."""
    pipeline = Pipeline(batch_size=3, num_threads=2, device_id=None, seed=1)
    with pipeline:
        pipeline.set_outputs(*reader(name="reader", random_shuffle=True, pad_last_batch=True, **arguments))
    pipeline.build()
    samples = []
    for _ in range(epochs * 3):
        images, *companions, labels = pipeline.run()
        for i in range(len(labels)):
            files = [np.array(output[i]).tobytes().removeprefix(HEADERS["png"]) for output in companions]
            samples.append((images[i].source_info(), files, np.array(labels[i])))
    return samples


@both_readers
def test_labels_are_vectors_of_the_list(root, reader, tmp_path):
    vectors = {name: [i / 3, -i, 1e30] for i, name in enumerate(NAMES)}
    (tmp_path / "list.txt").write_text("".join(f"{name} {a} {b} {c}\n" for name, (a, b, c) in vectors.items()))
    samples = delivered(reader, file_root=root, file_list=str(tmp_path / "list.txt"), label_columns=3)
    assert {path for path, _, _ in samples} == set(NAMES)
    for path, _, label in samples:
        assert label.dtype == np.float32
        assert np.array_equal(label, np.float32(vectors[path]))


@both_readers
@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 2), (14,)])
def test_labels_are_arrays(root, reader, shape):
    values = np.random.default_rng(0).normal(size=shape)
    columns = values.size // 7
    samples = delivered(reader, file_root=root, files=NAMES, label_values=values, label_columns=columns)
    for path, _, label in samples:
        assert np.array_equal(label, np.float32(values.reshape(7, columns)[NAMES.index(path)]))


@both_readers
@pytest.mark.parametrize("of", [list, np.array, np.float64])
def test_files_and_labels_are_lists_or_arrays(root, reader, of):
    labels = [-(2**31), 2**31 - 1, 0, 1, 2, 3, 4]
    files = np.array(NAMES) if of is np.array else [Path(name) for name in NAMES]
    samples = delivered(reader, file_root=Path(root), files=files, labels=of(labels))
    assert {(path, int(label[0])) for path, _, label in samples} == set(zip(NAMES, labels, strict=True))


@both_readers
@pytest.mark.parametrize("label", [2**31, -(2**31) - 1, -(2**63), 2**63, 1.5, np.nan, "1", None])
def test_labels_that_are_no_32_bit_integers_are_errors(root, reader, label):
    with pytest.raises((TypeError, ValueError), match="labels must be integers"):
        reader(file_root=root, files=NAMES, labels=[label, *range(6)])


@both_readers
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [2**32, *range(6)]}, "labels: 4294967296 does not fit into 32 bits"),
        ({"subset_indices": [2**32]}, "subset has the index 4294967296"),
        ({"shard_id": 2**32}, "shard_id: 4294967296 does not fit into 32 bits"),
        ({"num_shards": 2**32 + 1}, "num_shards: 4294967297 does not fit into 32 bits"),
        ({"read_threads": 2**32 + 1}, "read_threads: 4294967297 does not fit into 32 bits"),
        ({"prefetch_queue_depth": 2**32}, "prefetch_queue_depth: 4294967296 does not fit into 32 bits"),
        ({"epoch_size": 2**63}, "epoch_size"),
        ({"prefetch_queue_depth": 2**63}, "prefetch_queue_depth"),
    ],
    ids=str,
)
def test_integers_are_not_cut_off_by_dalis_own_functions(root, reader, arguments, message):
    operator = getattr(fn.readers, reader.__name__)
    with pytest.raises((RuntimeError, ValueError), match=message):
        delivered(operator, file_root=root, files=NAMES, **arguments)


@both_readers
def test_labels_stay_with_their_samples_where_others_are_bad(root, reader):
    files = ["missing.png", *NAMES]
    samples = delivered(
        reader, file_root=root, files=files, label_values=np.arange(8), label_columns=1, on_error="skip"
    )
    assert {(path, float(label[0])) for path, _, label in samples} == {
        (name, float(i)) for i, name in enumerate(NAMES, 1)
    }


@both_readers
def test_a_table_gives_labels_and_companions(root, reader, tmp_path):
    rows = "".join(f"{i},{name},mask {name},{i / 2}\n" for i, name in enumerate(NAMES))
    (tmp_path / "train.csv").write_text("class,image,mask,angle\n" + rows.replace("mask 2.png", ""))
    table = dali_l3.read_table(tmp_path / "train.csv", labels="class", companions="mask")
    for path, companions, label in delivered(reader, file_root=root, missing_companions="empty", **table):
        assert label.dtype == np.int32
        assert label.tolist() == [NAMES.index(path)]
        assert companions == [b"" if path == "2.png" else f"mask {path}".encode()]
    table = dali_l3.read_table(tmp_path / "train.csv", labels=["angle", "class"])
    for path, companions, label in delivered(reader, file_root=root, **table):
        assert label.tolist() == [NAMES.index(path) / 2, NAMES.index(path)]
        assert companions == []
    table = dali_l3.read_table(tmp_path / "train.csv", companions=["mask"])
    with pytest.raises(RuntimeError, match=re.escape("2.png: the path of its companion 0 is empty")):
        delivered(reader, file_root=root, **table)


def test_a_parquet_table_is_as_good(tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet, table

    columns = {"image": ["a", "b"], "x": [1, 2], "y": [0.5, None], "mask": ["m", None]}
    parquet.write_table(table(columns), tmp_path / "t.parquet")
    assert dali_l3.read_table(tmp_path / "t.parquet", labels="x", companions=["mask"]) == {
        "files": ["a", "b"],
        "labels": [1, 2],
        "companion_files": ["m", ""],
    }
    with pytest.raises(ValueError, match="row 2, column 'y': there is no value"):
        dali_l3.read_table(tmp_path / "t.parquet", labels="y")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_fifo_is_no_table(tmp_path, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="not a regular file"):
        dali_l3.read_table(tmp_path / name)


def test_a_parquet_column_may_hold_vectors(tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet, table

    columns = {"image": ["a", "b"], "box": [[1, 2.5], [3, 4]], "x": [7, 8], "short": [[1, 2], [3]], "none": [[], []]}
    parquet.write_table(table({**columns, "gap": [[1], [None]]}), tmp_path / "t.parquet")

    def read(labels):
        return dali_l3.read_table(tmp_path / "t.parquet", labels=labels)

    assert read("box") == {"files": ["a", "b"], "label_columns": 2, "label_values": [1, 2.5, 3, 4]}
    assert read(["x", "box"])["label_values"] == [7, 1, 2.5, 8, 3, 4]
    for labels, problem in [
        ("short", "row 2: the label has 1 number, but row 1 has 2"),
        ("none", "row 1: the label has 0 numbers"),
        ("gap", "row 2, column 'gap': there is no value"),
    ]:
        with pytest.raises(ValueError, match=re.escape(f"t.parquet, {problem}")):
            read(labels)


@pytest.mark.parametrize(
    ("text", "arguments", "problem"),
    [
        ("image,x\n", {}, "the table has no rows"),
        ("", {}, "the table is empty"),
        ("image;x\na;1\n", {}, "there is no column 'image', only 'image;x'; commas separate columns"),
        ("image\tx\na\t1\n", {}, "; commas separate columns"),
        ("path,x\na,1\n", {}, "there is no column 'image', only 'path', 'x'"),
        ("image,x\na,1\n,2\n", {}, "row 2, column 'image': the path is empty"),
        (
            "image,x\na,1\nb,one\n",
            {"labels": "x"},
            "row 2, column 'x': 'one' is not a number; give classes numbers first",
        ),
        ("image,x\na,1\nb\n", {"labels": "x"}, "row 2, column 'x': there is no value"),
        ("image,x\na,1\nb,\n", {"labels": ["x"]}, "row 2, column 'x': there is no value"),
        ('image,x\n"a,1\n', {}, ": unexpected end of data"),
        ("image,x\na,1\na, b.png,1\n", {}, "row 2: more values than columns; quote those that hold a comma"),
        ("image,x,x\na,1,2\n", {"labels": "x"}, "there are several columns 'x'"),
        ("image\n\udcff\n", {}, " is not a text file in UTF-8: 'utf-8' codec can't decode byte 0xff"),
        ("\udcff\n", {}, " is not a text file in UTF-8: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path, text, arguments, problem):
    (tmp_path / "t.csv").write_text(text, errors="surrogateescape")
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}/t.csv") + ".*" + re.escape(problem)):
        dali_l3.read_table(tmp_path / "t.csv", **arguments)


@pytest.mark.parametrize("column", [("1", "99999999999"), ("1", "1.5"), ("1.0", "2.0")])
def test_labels_that_are_no_32_bit_integers_are_numbers(tmp_path, column):
    (tmp_path / "t.csv").write_text("image,x\n" + "".join(f"a,{x}\n" for x in column))
    assert dali_l3.read_table(tmp_path / "t.csv", labels="x")["label_columns"] == 1
