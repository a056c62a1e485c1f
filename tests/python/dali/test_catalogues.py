"""Readers that start from a catalogue, beside the same readers on what it was made from."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nvidia.dali import Pipeline

import dali_l3
from dali_l3 import catalogues
from dali_l3.catalogues import Selection, Source
from dali_l3.fn import readers
from reading import HEADERS
from tar_shards import samples, write_shard

pytestmark = pytest.mark.usefixtures("plugin")
both_readers = pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])

BATCHES = 9


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Arguments of readers, by kind, and the catalogue that was made from the same."""
    folder = tmp_path_factory.mktemp("catalogues")
    for i in range(23):
        name = ("png", "bmp", "l3")[i * i % 3]
        image = folder / "data" / "abc"[i // 9] / f"{i:02d}.{name}"
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(HEADERS[name] + bytes(i * 700))
        mask = folder / "masks" / image.parent.name / f"{image.stem}.png"
        mask.parent.mkdir(parents=True, exist_ok=True)
        mask.write_bytes(HEADERS["png"] + b"mask" * i)
    files = sorted(str(path.relative_to(folder)) for path in (folder / "data").rglob("*.*"))
    (folder / "list.txt").write_text("".join(f"{name} {i % 4}\n" for i, name in enumerate(files)))
    (folder / "vectors.txt").write_text("".join(f"{name} {i} {i / 4}\n" for i, name in enumerate(files)))
    shards = [write_shard(folder / f"s-{i}.tar", samples(count)) for i, count in enumerate((7, 12, 4))]
    companions = ["../masks/{dir}/{stem}.png"]
    arguments = {
        "folder": {"file_root": f"{folder}/data"},
        "companions": {"file_root": f"{folder}/data", "companions": companions},
        "list": {"file_list": f"{folder}/list.txt"},
        "vectors": {"file_list": f"{folder}/vectors.txt", "label_columns": 2},
        "shards": {"paths": shards, "ext": ["png", "seg.png"]},
        "labelled": {"paths": shards, "ext": ["png"], "label_ext": "cls"},
    }
    made = {}
    for kind, of_kind in arguments.items():
        path = str(folder / f"{kind}.l3cat")
        assert catalogues.write(Source(kind, of_kind), path) == (23, [])
        made[kind] = of_kind, path
    return made


def delivered(reader, arguments, batches=BATCHES, checkpoint=None, **more):
    """Each sample's name and the bytes of its outputs; and a checkpoint of the end."""
    pipe = Pipeline(4, 2, None, seed=3, enable_checkpointing=True, checkpoint=checkpoint, prefetch_queue_depth=1)
    with pipe:
        made = reader(name="reader", **arguments, **more)
        pipe.set_outputs(*(made if isinstance(made, (list, tuple)) else [made]))
    pipe.build()
    rows = []
    for _ in range(batches):
        outputs = pipe.run()
        for i in range(4):
            name = outputs[0][i].source_info()
            rows.append((name, *(bytes(memoryview(output.at(i))) for output in outputs)))
    return rows, pipe.checkpoint()


KINDS = ["folder", "companions", "list", "vectors", "shards", "labelled"]
SOME_ORDERS = [
    {},
    {"random_shuffle": True},
    {"mix": "dataset", "random_shuffle": True},
    {"shuffle_after_epoch": True, "num_shards": 3, "shard_id": 1},
    {"subset": (0.25, 0.75)},
    {"subset": [3, 4, 5, 9, 20], "pad_last_batch": True},
    {"check": "headers", "on_error": "skip"},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", SOME_ORDERS, ids=str)
def test_multi_format_delivers_what_it_does_from_the_source(sources, kind, order):
    arguments, catalogue = sources[kind]
    order = {name: value for name, value in order.items() if name != "check"}  # the made-up files have no contents
    assert (
        delivered(readers.multi_format, {"catalogue": catalogue}, **order)[0]
        == (delivered(readers.multi_format, arguments, **order)[0])
    )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_liquid_delivers_what_it_does_from_the_source(sources, data):
    arguments, catalogue = sources[data.draw(st.sampled_from(KINDS))]
    order = {
        "cache_size": data.draw(st.sampled_from([0, 40_000, 1_000_000])),
        "policy": data.draw(st.sampled_from(["liquid", "minio", "none"])),
        "num_shards": data.draw(st.integers(1, 3)),
        "pad_last_batch": data.draw(st.booleans()),
        "use_o_direct": False,
    }
    from_source, checkpoint = delivered(readers.liquid, arguments, **order)
    from_catalogue, same = delivered(readers.liquid, {"catalogue": catalogue}, **order)
    assert from_catalogue == from_source
    assert from_catalogue[0][0]
    # Each goes on from the other's checkpoint.
    after_source, _ = delivered(readers.liquid, {"catalogue": catalogue}, checkpoint=checkpoint, **order)
    after_catalogue, _ = delivered(readers.liquid, arguments, checkpoint=same, **order)
    assert after_source == after_catalogue


@both_readers
def test_proportions_and_weights(sources, reader):
    arguments, catalogue = sources["list"]
    for more in ({"class_proportions": "balanced"}, {"weights": range(1, 24), "epoch_size": 50}):
        assert delivered(reader, {"catalogue": catalogue}, **more)[0] == delivered(reader, arguments, **more)[0]


@both_readers
def test_arguments_that_the_catalogue_answers_are_refused(sources, reader):
    arguments, catalogue = sources["folder"]
    for more in (arguments, {"label_columns": 2}, {"companions": ["{stem}"]}, {"paths": ["a.tar"], "ext": ["png"]}):
        with pytest.raises(
            Exception, match=f"{next(iter(more))} cannot be used with catalogue, which says itself which samples"
        ):
            delivered(reader, {"catalogue": catalogue}, **more)


@both_readers
def test_bad_catalogues_are_errors(sources, tmp_path, reader):
    (tmp_path / "text.l3cat").write_text("no catalogue")
    with pytest.raises(Exception, match="text.l3cat: is no catalogue of dali-l3"):
        delivered(reader, {"catalogue": str(tmp_path / "text.l3cat")})
    with pytest.raises(Exception, match="none.l3cat: No such file or directory"):
        delivered(reader, {"catalogue": tmp_path / "none.l3cat"})
    # The number of outputs is that of a header whose checksum is wrong.
    content = bytearray(Path(sources["companions"][1]).read_bytes())
    content[35] = 1
    (tmp_path / "damaged.l3cat").write_bytes(content)
    with pytest.raises(Exception, match="damaged.l3cat: is damaged: the checksum of its header is wrong"):
        delivered(reader, {"catalogue": str(tmp_path / "damaged.l3cat")})


@both_readers
def test_vectors_are_known_by_their_numbers(sources, tmp_path, reader):
    """A part has other rows of labels than the list that it is a part of."""
    arguments, catalogue = sources["vectors"]
    part = str(tmp_path / "part.l3cat")
    catalogues.write(Source("catalogue", {"catalogue": catalogue}), part, Selection(part=(0, 0.5)))
    rows, checkpoint = delivered(reader, {"catalogue": part})
    expected, same = delivered(reader, arguments, subset=(0, 0.5))
    assert rows == expected
    after, _ = delivered(reader, arguments, subset=(0, 0.5), checkpoint=checkpoint)
    assert after == delivered(reader, {"catalogue": part}, checkpoint=same)[0]


@both_readers
def test_what_has_changed_is_bad(tmp_path, reader):
    for i in range(6):
        image = tmp_path / "data" / "a" / f"{i}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(HEADERS["png"] + bytes(i))
    catalogue = str(tmp_path / "x.l3cat")
    catalogues.write(Source("folder", {"file_root": str(tmp_path / "data")}), catalogue)
    shutil.copytree(tmp_path, tmp_path / "moved")  # both together
    assert len(delivered(reader, {"catalogue": str(tmp_path / "moved" / "x.l3cat")}, batches=3)[0]) == 12
    (tmp_path / "data/a/3.png").write_bytes(HEADERS["png"] + bytes(100))
    with pytest.raises(RuntimeError, match=r"3.png: has .* bytes, and not .*, unlike in the catalogue .*x.l3cat. Make"):
        delivered(reader, {"catalogue": catalogue}, batches=3)
    rows, _ = delivered(reader, {"catalogue": catalogue}, batches=3, on_error="skip", pad_last_batch=True)
    assert {os.path.basename(row[0]) for row in rows} == {f"{i}.png" for i in (0, 1, 2, 4, 5)}


def test_statistics_know_the_formats(sources):
    _, catalogue = sources["folder"]
    pipe = Pipeline(4, 2, None, seed=3)
    with pipe:
        pipe.set_outputs(*readers.multi_format(catalogue=catalogue, name="reader"))
    pipe.build()
    pipe.run()
    assert set(dali_l3.reader_stats(pipe, "reader")["epochs"][0]["formats"]) <= {"PNG", "BMP", "L3"}
    assert Path(catalogue).exists()
