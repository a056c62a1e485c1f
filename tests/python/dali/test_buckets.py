"""Readers of datasets in buckets: S3 by moto's server, Google Cloud Storage by an emulator, on this machine."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nvidia.dali import Pipeline

import dali_l3
from buckets import Bucket, bucket
from converting_in_buckets import forget_buckets, gcsfs_variables
from dali_l3 import catalogues
from dali_l3.catalogues import Source
from reading import HEADERS, Reading, file_reader, grow, read, write_dataset
from tar_shards import samples, write_shard
from unreliable_proxy import Fault

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning")]

liquid, multi_format = dali_l3.fn.readers.liquid, dali_l3.fn.readers.multi_format
both_readers = pytest.mark.parametrize("reader", [liquid, multi_format], ids=["liquid", "multi_format"])
CACHE = {"cache_size": 40 * 4096}


@pytest.fixture(scope="module")
def open_bucket():
    return bucket  # as DALI finds it, which tries once only


@pytest.fixture(params=["s3", "gs"])
def any_bucket(request) -> Bucket:
    made = request.getfixturevalue(request.param)
    made.take_requests()
    return made


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, s3, gs) -> Path:
    """A folder, and the same in both buckets as data/."""
    root = tmp_path_factory.mktemp("buckets") / "data"
    write_dataset(root, {"png": 24, "l3": 12})
    for made in (s3, gs):
        made.put_folder(root, "data")
    return root


def cached(reader):
    return CACHE if reader is liquid else {}


def gets(requests):
    return [request for request in requests if request.method == "GET" and request.range]


# ---- The same samples as from a folder ----


@both_readers
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"num_shards": 3, "shard_id": 1},
        {"on_error": "skip", "check": "headers"},
        {"subset": (0.25, 0.75)},
        {"pad_last_batch": True, "num_shards": 2},
    ],
    ids=str,
)
def test_samples_are_those_of_the_folder(any_bucket, dataset, reader, arguments):
    arguments = {"reader": reader, "batches": 24, **cached(reader), **arguments}
    remote = read(file_root=any_bucket.uri("data"), **arguments)
    assert remote == read(file_root=str(dataset), **arguments)
    assert len({sample.path for sample in remote}) >= 12


@both_readers
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batch_size=st.integers(1, 9),
    num_shards=st.integers(1, 4),
    seed=st.integers(0, 1000),
    stop=st.integers(0, 30),
    slash=st.booleans(),
)
def test_epochs_and_resumption_are_those_of_the_folder(s3, dataset, reader, batch_size, num_shards, seed, stop, slash):
    arguments = {
        "batch_size": batch_size,
        "num_shards": num_shards,
        "shard_id": num_shards - 1,
        "pipeline_seed": seed,
        **({} if reader is liquid else {"mix": "dataset", "random_shuffle": True}),
        **cached(reader),
    }
    local = Reading(reader, file_root=str(dataset), checkpointing=True, **arguments)
    remote = Reading(reader, file_root=s3.uri("data") + "/" * slash, checkpointing=True, **arguments)
    assert remote.batches(stop) == local.batches(stop)
    # The checkpoint of one is that of the other.
    resumed = Reading(reader, file_root=s3.uri("data"), checkpoint=local.pipeline.checkpoint(), **arguments)
    assert resumed.batches(12) == local.batches(12)


def test_fn_readers_file_finds_the_same(s3, dataset):
    assert read(multi_format, 20, file_root=s3.uri("data")) == read(
        file_reader, 20, file_root=s3.uri("data"), file_filters=["*.png", "*.l3"]
    )


def test_class_folders_come_by_name(tmp_path, any_bucket):
    root = grow(tmp_path / "classes", ["a/1.png", "a-b/1.png", "a.b/1.png", "B/1.png", "a/deeper/2.png", "c/x.txt"])
    any_bucket.put_folder(Path(root), "classes")
    any_bucket.put("classes/README", b"beside")
    remote = read(multi_format, 2, file_root=any_bucket.uri("classes"))
    assert remote == read(multi_format, 2, file_root=root)
    assert {sample.path: sample.label for sample in remote} == {
        "B/1.png": 0,
        "a/1.png": 1,
        "a-b/1.png": 2,
        "a.b/1.png": 3,
    }


@both_readers
def test_lists_files_and_companions(tmp_path, any_bucket, reader):
    grow(tmp_path / "lists" / "images", ["a/1.png", "a/2 2.png", "b/3.png", "b/4%20.png"])
    grow(tmp_path / "lists" / "masks", ["a/1.png", "b/3.png", "b/4%20.png", "default.png"])
    paths = ["a/1.png", "a/2 2.png", "b/3.png", "b/4%20.png"]
    listed = "".join(f"{path} {i}\n" for i, path in enumerate(paths))
    (tmp_path / "lists" / "images" / "list.txt").write_text(listed)
    any_bucket.put_folder(tmp_path / "lists", "lists")
    root, remote_root = str(tmp_path / "lists" / "images"), any_bucket.uri("lists/images")

    def delivered(where, **arguments):
        return read(reader, 4, **{**cached(reader), "companions": ["../masks/{relpath}"], **arguments})

    for missing in (["empty"], ["../masks/default.png"]):
        expected = delivered(root, file_list=f"{root}/list.txt", missing_companions=missing)
        assert delivered(root, file_list=f"{remote_root}/list.txt", missing_companions=missing) == expected
        assert delivered(root, file_root=remote_root, files=paths, missing_companions=missing) == expected
        assert (
            delivered(root, file_root=root, files=paths, missing_companions=missing, companions=["../masks/{relpath}"])
            == expected
        )
    assert {len(sample.files) for sample in expected} == {2}

    # Images in the bucket, masks in a folder.
    mixed = delivered(root, file_root=remote_root, files=paths[:1], companions=[f"{tmp_path}/lists/masks/{{relpath}}"])
    assert mixed[0].files == delivered(root, file_root=root, files=paths[:1])[0].files


@both_readers
def test_tar_shards(tmp_path, monkeypatch, any_bucket, reader):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shards = [write_shard(tmp_path / f"t-{i}.tar", samples(12, f"s{i}/")) for i in range(3)]
    for shard in shards:
        any_bucket.put(f"{reader.__name__}/{Path(shard).name}", Path(shard).read_bytes())
    folder = any_bucket.uri(reader.__name__)
    arguments = {"reader": reader, "batches": 30, "ext": ["png", "seg.png"], "label_ext": "cls", **cached(reader)}
    expected = read(paths=shards, **arguments)
    for paths in (f"{folder}/t-{{0..2}}.tar", f"{folder}/t-*.tar", [f"{folder}/t-{i}.tar" for i in range(3)]):
        assert read(paths=paths, **arguments) == expected
    assert len(list((tmp_path / "cache" / "dali_l3").glob("*.idx"))) == 3

    # Indices beside the shards, and named, spare the headers all over them.
    for i in range(3):
        index = (tmp_path / f"t-{i}.idx").read_bytes()
        any_bucket.put(f"{reader.__name__}/t-{i}.idx", index)
        any_bucket.put(f"{reader.__name__}/indices/{i}.idx", index)
    assert read(paths=f"{folder}/t-*.tar", **arguments) == expected
    assert read(paths=f"{folder}/t-*.tar", index_paths=f"{folder}/indices/{{0..2}}.idx", **arguments) == expected
    with pytest.raises(RuntimeError, match=r"t-0.idx: .*no such object"):
        read(paths=f"{folder}/t-0.tar", index_paths=f"{folder}/indices/t-0.idx", **arguments)


@both_readers
def test_catalogues_that_were_made_before_the_files_were_copied(tmp_path, any_bucket, dataset, reader):
    key = f"catalogues-{reader.__name__}"
    shards = [write_shard(tmp_path / f"t-{i}.tar", samples(7, f"s{i}/")) for i in range(2)]
    for shard in shards:
        any_bucket.put(f"{key}/{Path(shard).name}", Path(shard).read_bytes())
    sources = [
        (Source("folder", {"file_root": str(dataset)}), any_bucket.uri("data")),
        (Source("shards", {"paths": shards, "ext": ["png", "seg.png"], "label_ext": "cls"}), any_bucket.uri(key)),
    ]
    for source, root in sources:
        catalogue = str(tmp_path / f"{source.kind}.l3cat")
        catalogues.write(source, catalogue, root=root)
        any_bucket.take_requests()
        Stepwise(reader, 4, catalogue=catalogue, **cached(reader))
        assert any_bucket.take_requests() == []  # to build a pipeline
        from_files = read(reader, 12, **source.arguments, **cached(reader))
        assert read(reader, 12, catalogue=catalogue, **cached(reader)) == from_files
        requests = any_bucket.take_requests()
        assert requests == gets(requests)  # each reads a file

    any_bucket.put(f"{key}/t-1.tar", bytes(Path(shards[1]).stat().st_size))
    unlike = re.escape(f"unlike in the catalogue {catalogue}. Make that anew with dali-l3 index")
    with pytest.raises(RuntimeError, match=unlike):
        read(reader, 12, catalogue=catalogue, **cached(reader))


@both_readers
def test_catalogues_that_were_made_of_the_bucket(tmp_path, monkeypatch, any_bucket, dataset, reader):
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in gcsfs_variables(any_bucket).items():
        monkeypatch.setenv(name, value)
    forget_buckets()
    key = f"over-{reader.__name__}"
    shards = [write_shard(tmp_path / f"t-{i}.tar", samples(7, f"s{i}/")) for i in range(2)]
    for shard in shards:
        any_bucket.put(f"{key}/{Path(shard).name}", Path(shard).read_bytes())
    in_bucket = {"ext": ["png", "seg.png"], "label_ext": "cls"}
    for source, local in [
        (Source("folder", {"file_root": any_bucket.uri("data")}), {"file_root": str(dataset)}),
        (Source("shards", {"paths": [any_bucket.uri(f"{key}/*.tar")], **in_bucket}), {"paths": shards, **in_bucket}),
    ]:
        catalogue = str(tmp_path / f"{source.kind}.l3cat")
        catalogues.write(source, catalogue)
        assert catalogues.compare(catalogue) == []
        any_bucket.take_requests()
        assert read(reader, 12, catalogue=catalogue, **cached(reader)) == read(reader, 12, **local, **cached(reader))
        requests = any_bucket.take_requests()
        assert requests == gets(requests) != []  # each reads a file
    forget_buckets()


# ---- What a bucket is asked for ----


class Stepwise:
    """A reader that reads a batch when it is asked for, and none ahead."""

    def __init__(self, reader, batch_size, **arguments):
        self.pipeline = Pipeline(
            batch_size=batch_size,
            num_threads=1,
            device_id=None,
            seed=1,
            prefetch_queue_depth=1,
            exec_async=False,
            exec_pipelined=False,
            exec_dynamic=False,
        )
        with self.pipeline:
            self.pipeline.set_outputs(*reader(name="reader", prefetch_queue_depth=0, **arguments))
        self.pipeline.build()

    def batch(self) -> list[bytes]:
        files, _ = self.pipeline.run()
        return [np.array(file).tobytes() for file in files]

    def statistics(self) -> dict:
        return dali_l3.reader_stats(self.pipeline, "reader")


def test_an_object_takes_one_request(any_bucket, dataset):
    any_bucket.take_requests()
    reading = Stepwise(multi_format, 5, file_root=any_bucket.uri("data"))
    (listing,) = any_bucket.take_requests()
    assert "prefix" in listing.path
    for _ in range(9):
        sizes = [len(file) for file in reading.batch()]
        requests = any_bucket.take_requests()
        assert sorted(request.delivered for request in requests) == sorted(sizes)
    assert reading.statistics()["storage"]["requests"] == 1 + 9 * 5


def test_bytes_asked_for_are_those_of_the_misses(any_bucket, tmp_path):
    """An epoch costs (1 - h) D."""
    write_dataset(tmp_path / "large", {"png": 80}, size=100_000)
    uri = any_bucket.put_folder(tmp_path / "large", "large")
    total = sum(path.stat().st_size for path in (tmp_path / "large").rglob("*.png"))
    reading = Stepwise(liquid, 8, file_root=uri, cache_size=total // 2)
    for _ in range(10):  # the first epoch fills the memory
        reading.batch()
    any_bucket.take_requests()
    before = reading.statistics()
    epochs = 4
    for _ in range(10 * epochs):
        reading.batch()
    after = reading.statistics()
    requests = any_bucket.take_requests()
    asked = after["storage"]["bytes"] - before["storage"]["bytes"]
    assert asked == sum(request.delivered for request in requests)
    assert after["storage"]["requests"] - before["storage"]["requests"] == len(requests)
    assert 0.3 < after["hit_ratio"] < 0.6
    assert asked == pytest.approx((1 - after["hit_ratio"]) * total * epochs, rel=0.02)


def test_looking_at_objects_takes_their_first_bytes(any_bucket, tmp_path):
    root = tmp_path / "heads"
    write_dataset(root, {"png": 12}, size=100_000)
    uri = any_bucket.put_folder(root, "heads")
    any_bucket.take_requests()
    Reading(liquid, file_root=uri, cache_size=1 << 20, lazy_init=False, prefetch_queue_depth=0)
    requests = gets(any_bucket.take_requests())
    assert sorted(request.range for request in requests)[:12] == [(0, 4095)] * 12


# ---- What goes wrong ----


@both_readers
@pytest.mark.parametrize(
    "fault",
    [
        Fault("GET .*000[0-4].(png|l3)", times=1, status=503, code="SlowDown"),
        Fault("GET .*000[0-4].(png|l3)", times=1, status=500, code="InternalError"),
        Fault("GET .*000[0-4].(png|l3)", times=1, cut_after=100),
        Fault("list-type|prefix", times=1, status=503, code="SlowDown"),
    ],
    ids=["503", "500", "cut", "listing"],
)
def test_what_passes_is_not_noticed(any_bucket, dataset, reader, fault):
    expected = read(reader, 10, file_root=str(dataset), **cached(reader))
    with any_bucket.failing(fault):
        reading = Reading(reader, file_root=any_bucket.uri("data"), **cached(reader))
        assert [sample for batch in reading.batches(10) for sample in batch] == expected
        if any_bucket.scheme == "s3":  # the client of the other tries again by itself
            assert reading.statistics()["storage"]["retries"] > 0


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault("png", status=404, code="NoSuchKey"), "there is no such object"),
        (Fault("png", status=403, code="AccessDenied"), "may not be read with these credentials"),
    ],
    ids=["missing", "forbidden"],
)
def test_what_does_not_pass_fails_at_once(any_bucket, dataset, fault, message):
    path = str(next(dataset.rglob("*.png")).relative_to(dataset))
    uri = any_bucket.uri(f"data/{path}")
    with any_bucket.failing(fault):
        for arguments in ({"files": [uri]}, {"file_root": any_bucket.uri("data"), "files": [path]}):
            any_bucket.take_requests()
            with pytest.raises(RuntimeError, match=f"{re.escape(uri)}: .*{message}"):
                Stepwise(multi_format, 1, **arguments).batch()
            # It is asked for its size, and S3, which then says nothing, for a few bytes.
            requests = [request for request in any_bucket.take_requests() if "png" in request.path]
            assert len(requests) == (2 if any_bucket.scheme == "s3" else 1)


def test_no_bucket_and_nothing_in_it(any_bucket):
    with pytest.raises(RuntimeError, match=rf"No files found in {any_bucket.uri('nothing')}"):
        Reading(multi_format, file_root=any_bucket.uri("nothing"))
    with pytest.raises(RuntimeError, match="none-of-this/data.*no such object"):
        Reading(multi_format, file_root=f"{any_bucket.scheme}://none-of-this/data")
    with pytest.raises(RuntimeError, match="list.txt.*no such object"):
        Reading(multi_format, file_list=any_bucket.uri("list.txt"))


def test_names_that_dali_cannot_ask_s3_for(s3):
    with pytest.raises(RuntimeError, match=r"s3://bucket/a\?.png is a URI: DALI takes what is behind"):
        Reading(multi_format, files=["s3://bucket/a?.png"])


def test_missing_objects_are_replaced_and_outages_are_not(s3, dataset):
    files = [str(path.relative_to(dataset)) for path in sorted(dataset.rglob("*.png"))]
    arguments = {"file_root": s3.uri("data"), "files": [*files, "none.png"], "on_error": "skip"}
    assert len(read(multi_format, 6, **arguments)) == 24
    reading = Reading(multi_format, prefetch_queue_depth=0, **arguments)
    with s3.failing(Fault("GET .*png", status=503, code="SlowDown")), pytest.raises(RuntimeError, match="6 tries"):
        reading.batches(20)


def test_objects_that_change_are_noticed(s3):
    for i in range(30):
        s3.put(f"changing/{i}.png", HEADERS["png"] + bytes(100))
    files = [s3.uri(f"changing/{i}.png") for i in range(30)]
    reading = Reading(liquid, files=files, policy="none", prefetch_queue_depth=0)
    reading.batch()
    for i in range(30):
        s3.put(f"changing/{i}.png", HEADERS["png"] + bytes(101))
    with pytest.raises(RuntimeError, match="no longer has [0-9]+ bytes"):
        reading.batches(20)


def interrupt_soon(s3: Bucket) -> threading.Thread:
    """Sends Ctrl-C when two requests have failed."""

    def wait_and_send():
        seen = 0
        while seen < 2:
            seen += len(s3.take_requests())
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait_and_send)
    thread.start()
    return thread


def test_ctrl_c_while_requests_fail(s3, dataset):
    reading = Reading(multi_format, file_root=s3.uri("data"), prefetch_queue_depth=0)
    reading.batch()
    s3.take_requests()
    with s3.failing(Fault("png|l3", status=503, code="SlowDown")):
        thread = interrupt_soon(s3)
        with pytest.raises((KeyboardInterrupt, RuntimeError), match="^$|interrupted"):
            reading.batches(20)
        thread.join()


def test_statistics_count_nothing_without_buckets(dataset):
    reading = Reading(multi_format, file_root=str(dataset))
    reading.batch()
    assert reading.statistics()["storage"] == {"requests": 0, "retries": 0, "bytes": 0}
