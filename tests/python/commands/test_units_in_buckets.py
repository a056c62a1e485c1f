"""Conversion in units from and to s3:// and gs://: the same output as on a disk, whole or not at all, and errors."""

from __future__ import annotations

import os
import resource
import sys
import tempfile

import pytest

import killing_in_bucket
from converting_in_buckets import contents, forget_buckets
from image_files import noise, write_png
from unreliable_proxy import Fault

pytest.importorskip("moto", reason="moto is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")

from dali_l3.errors import StorageError, TargetError
from dali_l3.units import buckets, storage
from dali_l3.units.storage import Entry, find_storage

pytestmark = pytest.mark.usefixtures("one_process")

SHARDS = ("--shards", "20KiB")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Images of two classes, some with companions; one is damaged, and one folder is inside another."""
    folder = tmp_path_factory.mktemp("source") / "train"
    for number in range(10):
        stem = folder / ("cats", "dogs/small")[number % 2] / f"{number:03d}"
        write_png(stem.with_suffix(".png"), noise((20 + number, 30, 3), seed=number))
        if number % 3 == 0:
            stem.with_suffix(".json").write_text(f'{{"number": {number}}}')
    damaged = folder / "cats" / "004.png"
    damaged.write_bytes(damaged.read_bytes()[:300])
    return folder


@pytest.fixture(scope="module")
def s3_source(s3, source):
    return s3.put_folder(source, "source/train")


def on_disk(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def convert(run, *arguments, expect=1):
    """One image of `source` fails."""
    code, out, err = run("convert", *arguments)
    assert code == expect, err
    return out + err


@pytest.fixture
def shards(run, source, tmp_path):
    """What is written on a disk."""
    convert(run, source, tmp_path / "shards", *SHARDS)
    return on_disk(tmp_path / "shards")


@pytest.fixture
def files(run, source, tmp_path):
    convert(run, source, tmp_path / "files", "--part", "1/1")
    return on_disk(tmp_path / "files")


def test_from_a_bucket_to_a_bucket_and_back(run, s3, s3_source, shards, files, tmp_path):
    assert "9 converted, 1 failed" in convert(run, s3_source, s3.uri("a/shards"), *SHARDS)
    assert contents(s3, "a/shards") == shards
    convert(run, s3_source, s3.uri("a/files"))
    assert contents(s3, "a/files") == files
    assert "units: " in convert(run, "--status", s3.uri("a/shards"))
    assert len(convert(run, "--merge-reports", s3.uri("a/shards")).splitlines()) >= 10
    convert(run, s3_source, tmp_path / "back")
    assert on_disk(tmp_path / "back") == files


def test_from_shards_in_a_bucket(run, s3, shards, tmp_path):
    for name, data in shards.items():
        s3.put(f"b/shards/{name}", data)
    convert(run, tmp_path / "shards" / "*.tar", tmp_path / "expected", expect=0)
    s3.take_requests()
    convert(run, s3.uri("b/shards/*.tar"), s3.uri("b/files"), expect=0)
    assert contents(s3, "b/files") == on_disk(tmp_path / "expected")
    whole = [request for request in s3.take_requests() if request.method == "GET" and request.path.endswith(".tar")]
    assert all(request.range for request in whole), "the indices beside the shards are read"
    assert len(contents(s3, "b/files")) > 9


def test_shards_whose_index_is_missing_or_of_another_archive(run, s3, shards, tmp_path, monkeypatch):
    names = sorted(name for name in shards if name.endswith(".tar"))
    for name in names:
        s3.put(f"c/shards/{name}", shards[name])
    s3.put("c/shards/shard-000000.idx", b"v1.2 1 size=17\njpg 512 99 x.jpg\n")
    monkeypatch.setattr("dali_l3.units.buckets._BLOCK", 1000)  # fetched in pieces, the last of which is not whole
    convert(run, tmp_path / "shards" / "*.tar", tmp_path / "expected", expect=0)
    convert(run, s3.uri("c/shards/*.tar"), tmp_path / "out", expect=0)
    assert on_disk(tmp_path / "out") == on_disk(tmp_path / "expected")


def test_google_cloud_storage(run, gs, s3, s3_source, shards, files):
    convert(run, s3_source, gs.uri("shards"), *SHARDS)
    assert contents(gs, "shards") == shards
    convert(run, gs.uri("shards/*.tar"), s3.uri("from-gs"), expect=0)
    convert(run, gs.uri("shards/shard-000000.tar"), gs.uri("first"), expect=0)
    assert contents(s3, "from-gs").items() >= contents(gs, "first").items() != set()
    assert {name for name in contents(s3, "from-gs") if name.endswith(".l3")} == {
        name for name in files if name.endswith(".l3")
    }


def test_export_from_and_to_buckets(run, s3, gs, shards, files, tmp_path):
    def export(*arguments, expect=0):
        code, out, err = run("export", *arguments)
        assert code == expect, err
        return out + err

    for place, written in (("shards", shards), ("files", files)):
        for store in (s3, gs):
            for name, data in written.items():
                store.put(f"p/{place}/{name}", data)
    export(tmp_path / "shards" / "*.tar", tmp_path / "expected", *SHARDS)
    export(tmp_path / "shards" / "*.tar", tmp_path / "unpacked")
    export(tmp_path / "files", tmp_path / "exported")
    expected, unpacked, exported = (on_disk(tmp_path / name) for name in ("expected", "unpacked", "exported"))
    assert len(expected) > 4
    assert sum(name.endswith(".png") for name in unpacked) == sum(name.endswith(".png") for name in exported) == 9

    assert "9 exported, 0 failed" in export(s3.uri("p/shards/*.tar"), s3.uri("p/out"), *SHARDS)
    assert contents(s3, "p/out") == expected
    assert "9 kept, 0 failed" in export(s3.uri("p/shards/*.tar"), s3.uri("p/out"), *SHARDS)
    assert "9 exported, 0 skipped, 0 failed, 0 left" in export("--status", s3.uri("p/out"))
    assert "9 files; 0 of" in export("--merge-reports", s3.uri("p/out"))
    for index in (2, 1):
        export(s3.uri("p/shards/*.tar"), gs.uri("p/out"), *SHARDS, "--part", f"{index}/2")
    assert contents(gs, "p/out") == expected
    export(gs.uri("p/shards/*.tar"), tmp_path / "out")
    assert on_disk(tmp_path / "out") == unpacked
    export(tmp_path / "files", s3.uri("p/exported"))
    export(gs.uri("p/files"), tmp_path / "from-gs")
    assert contents(s3, "p/exported") == on_disk(tmp_path / "from-gs") == exported


def test_an_outage_leaves_no_failures_of_export(run, s3, files, tmp_path, impatient):
    for name, data in files.items():
        s3.put(f"q/files/{name}", data)
    arguments = ("export", s3.uri("q/files"), s3.uri("q/out"))
    with s3.failing(Fault("GET .*q/files/.*002.l3", status=503, code="SlowDown")):
        code, _, err = run(*arguments)
    assert code == 1
    assert "no file is to blame, so the run was stopped; run it again" in err
    assert run(*arguments)[0] == 0
    assert {name for name in contents(s3, "q/out")} == {
        name.replace(".l3", ".png") for name in files if name.endswith(".l3")
    }


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_listing_has_the_order_of_a_disk(scheme, request, tmp_path):
    store = request.getfixturevalue(scheme)
    for name in ("b.png", "a/b.png", "a/c/d.png", "a/d.png", "a.png", "a-b/c.png", "a/é b#1.png", ".hidden/x.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * len(name))
        store.put(f"listed/{name}", b"x" * len(name))
    store.put("listed-elsewhere/x.png", b"x")
    if scheme == "s3":  # the emulator refuses it
        store.put("listed/a/", b"")  # what some programs make for a folder
    there, here = find_storage(store.uri()), find_storage(str(tmp_path))
    found = [entry for entry in there.files(store.uri("listed")) if isinstance(entry, Entry)]
    expected = [entry for entry in here.files(str(tmp_path)) if isinstance(entry, Entry)]
    assert [(entry.path, entry.size) for entry in found] == [(entry.path, entry.size) for entry in expected]
    for entry in found:
        assert there.entry(store.uri(f"listed/{entry.path}")).version == entry.version != ""
    assert there.folders(store.uri("listed")) == here.folders(str(tmp_path))
    assert there.sizes(store.uri("listed/a")) == here.sizes(str(tmp_path / "a"))
    assert there.sizes(store.uri("nothing")) == {}
    assert there.folders(store.uri("nothing")) == []


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_what_a_storage_reads_and_writes(scheme, request):
    store = request.getfixturevalue(scheme)
    files, path = find_storage(store.uri()), store.uri("storage/file")
    files.write(path, b"0123456789")
    assert files.read(path) == b"0123456789"
    assert files.read(path, 3, 4) == b"3456"
    assert files.read(path, 8, 40) == b"89"
    assert files.read(path, 3, 0) == b""
    before = files.entry(path).version
    files.write(path, b"")
    assert files.read(path) == b""
    assert files.entry(path).version != before
    files.remove(path)
    files.remove(path)
    with pytest.raises(FileNotFoundError) as caught:
        files.read(path)
    assert caught.value.filename == path
    with pytest.raises(FileNotFoundError):
        files.entry(store.uri("storage"))


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_large_file_appears_at_the_end_or_not_at_all(scheme, request):
    store = request.getfixturevalue(scheme)
    files, path, data = find_storage(store.uri()), store.uri("large/file"), os.urandom(11 << 20)

    def write(fail):
        with files.writing(path) as file:
            file.write(data)
            assert "file" not in contents(store, "large")
            if fail:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(fail=True)
    assert contents(store, "large") == {}
    write(fail=False)
    assert contents(store, "large") == {"file": data}


def test_of_two_that_create_a_file_one_does(s3, monkeypatch):
    files, path = find_storage("s3://"), s3.uri("created/file")
    assert files.create(path, b"first")
    assert not files.create(path, b"second")
    exists, answers = files._exists, iter([False])  # as if it had appeared after the look
    monkeypatch.setattr(files, "_exists", lambda path: next(answers, None) is None and exists(path))
    assert not files.create(path, b"third")
    assert contents(s3, "created") == {"file": b"first"}


def test_what_is_done_is_kept_and_a_changed_source_is_noticed(run, s3, source, tmp_path):
    uri = s3.put_folder(source, "d/in")
    convert(run, uri, s3.uri("d/out"), *SHARDS)
    whole = contents(s3, "d/out")
    s3.send("DELETE", "/bucket/d/out.conversion/records/000001.jsonl")
    s3.send("DELETE", "/bucket/d/out/shard-000002.tar")
    output = convert(run, uri, s3.uri("d/out"), *SHARDS)
    assert " converted" in output
    assert " kept" in output
    assert contents(s3, "d/out") == whole
    s3.take_requests()
    convert(run, uri, s3.uri("d/out"), *SHARDS)
    asked = [request for request in s3.take_requests() if request.method == "GET" and "/samples-" in request.path]
    assert len(asked) == 1, "all samples at once, though there are some units"
    s3.put("d/in/cats/000.png", (source / "cats" / "002.png").read_bytes())
    assert "1 changed, 0 new, 0 gone" in convert(run, uri, s3.uri("d/out"), *SHARDS, expect=2)
    for record in contents(s3, "d/out.conversion/records"):
        s3.send("DELETE", f"/bucket/d/out.conversion/records/{record}")
    output = convert(run, uri, s3.uri("d/out"), *SHARDS, "--part", "1/1")  # without a look at all of the source
    assert f"failed: {uri}/cats/000.png: {uri}/cats/000.png: has changed since the conversion was begun" in output


def test_answers_that_may_pass_are_asked_for_again(run, s3, s3_source, shards):
    with s3.failing(Fault("00[01].png", times=2, status=503)):
        convert(run, s3_source, s3.uri("e/out"), *SHARDS)
    assert contents(s3, "e/out") == shards


@pytest.fixture
def impatient(monkeypatch):
    """Has botocore send each request once. (s3fs sends some again.)"""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    forget_buckets()
    yield
    forget_buckets()


OUTAGES = {
    "busy": Fault("m/in/.*png", status=503, code="ServiceUnavailable"),
    "broken": Fault("m/in/dogs", status=500, code="InternalError"),
    "throttling": Fault("GET .*m/in/cats", status=429, code="TooManyRequests"),
    "cut": Fault("GET .*m/in/dogs/small/003.png", cut_after=0),
    "expired": Fault("m/in/cats", status=400, code="ExpiredToken"),
    "unknown": Fault("m/in/cats", status=403, code="InvalidAccessKeyId"),
}


@pytest.mark.parametrize("options", [SHARDS, ()], ids=["shards", "files"])
@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_leaves_no_failures(run, s3, source, shards, files, impatient, outage, options):
    if "m/in" not in str(contents(s3, "m")):
        s3.put_folder(source, "m/in")
    key = f"m/out-{outage}-{len(options)}"
    convert(run, s3.uri("m/in"), s3.uri(key), *options, "--plan", expect=0)
    with s3.failing(OUTAGES[outage]):
        output = convert(run, s3.uri("m/in"), s3.uri(key), *options, "--part", "1/1")
    assert "s3://bucket/m/in/" in output
    assert "no file is to blame, so the run was stopped; run it again" in output
    assert "failed: " not in output
    assert " 0 failed, " in convert(run, "--status", s3.uri(key))
    assert "1 failed" in convert(run, s3.uri("m/in"), s3.uri(key), *options)
    assert contents(s3, key) == (shards if options else files)


def test_outages_are_told_from_what_is_wrong_with_an_object():
    aiohttp, auth = pytest.importorskip("aiohttp"), pytest.importorskip("google.auth.exceptions")
    http_error = pytest.importorskip("gcsfs.retry").HttpError
    botocore = pytest.importorskip("botocore.exceptions")
    for error, is_outage in [
        *((http_error({"code": code, "message": "x"}), code not in (400, 404, 412)) for code in (400, 404, 412, 503)),
        *((http_error({"code": code, "message": "x"}), True) for code in (401, 408, 429, "500", 502)),
        (aiohttp.ServerDisconnectedError(), True),
        (aiohttp.ClientPayloadError("cut off"), True),
        (auth.RefreshError("expired"), True),
        (botocore.NoCredentialsError(), True),
        (botocore.EndpointConnectionError(endpoint_url="x"), True),
        (botocore.ParamValidationError(report="x"), False),
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (OSError("Forbidden: x"), False),
        (FileNotFoundError("x"), False),
        (ValueError("x"), False),
    ]:
        with pytest.raises(OSError, match="s3://b/x") as caught, buckets._errors("s3://b/x"):
            raise error
        assert isinstance(caught.value, StorageError) == is_outage, error
        with pytest.raises(TargetError), buckets._errors("s3://b/x", TargetError):
            raise error


def test_a_service_that_is_away_and_no_plan(run, s3, source, tmp_path, impatient, monkeypatch):
    uri = s3.put_folder(source, "n/in")
    convert(run, uri, tmp_path / "planned", *SHARDS, "--plan", expect=0)
    with monkeypatch.context() as context:
        context.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # where nobody listens
        forget_buckets()
        assert "no file is to blame" in convert(run, uri, tmp_path / "planned", *SHARDS, "--part", "1/1")
        convert(run, uri, tmp_path / "new", *SHARDS)
    forget_buckets()
    assert not (tmp_path / "new.conversion").exists()
    convert(run, uri, tmp_path / "planned", *SHARDS)
    with s3.failing(Fault("GET .*002.png", status=503, code="SlowDown")):  # when samples are tried, to plan shards
        assert "no file is to blame" in convert(run, uri, tmp_path / "new", *SHARDS)
    assert not (tmp_path / "new.conversion" / "manifest.json").exists()
    convert(run, uri, tmp_path / "new", *SHARDS)
    assert on_disk(tmp_path / "new") == on_disk(tmp_path / "planned")


def test_an_object_that_may_not_be_read_fails_alone(run, s3, s3_source, tmp_path, impatient):
    for number, status, code in ((0, 403, "AccessDenied"), (2, 404, "NoSuchKey"), (6, 403, "InvalidObjectState")):
        with s3.failing(Fault(f"00{number}.png", status=status, code=code)):
            output = convert(run, s3_source, tmp_path / f"out-{code}", "--part", "1/1")
        assert "8 converted, 4 skipped, 2 failed" in output


def test_a_replaced_object_is_converted_when_failures_are_tried_again(run, s3, source, files, tmp_path):
    uri = s3.put_folder(source, "o/in")
    convert(run, uri, s3.uri("o/out"))
    s3.put("o/in/cats/004.png", (source / "cats" / "002.png").read_bytes())
    assert "9 kept, 4 skipped, 1 failed" in convert(run, uri, s3.uri("o/out"))
    assert "10 converted" in convert(run, uri, s3.uri("o/out"), "--retry-failed", expect=0)
    assert contents(s3, "o/out") == {**files, "cats/004.l3": files["cats/002.l3"]}
    assert "10 kept, 4 skipped, 0 failed" in convert(run, uri, s3.uri("o/out"), expect=0)


def test_names_that_no_object_can_have_fail_alone(run, s3, tmp_path):
    long = "/".join("x" * 250 for _ in range(5))
    for name in ("good.png", os.fsdecode(b"\xff.png"), f"{long}.png"):
        write_png(tmp_path / "in" / name)
    output = convert(run, tmp_path / "in", s3.uri("i/out"))
    assert "1 converted, 2 failed" in output
    assert "names of objects are UTF-8" in output
    assert "names of objects have at most 1024 bytes" in output
    assert [*contents(s3, "i/out")] == ["good.l3"]


def test_objects_with_names_that_no_file_can_have_fail_alone(run, s3, source, tmp_path):
    image = (source / "cats" / "000.png").read_bytes()
    for name in ("a.png", "/a.png", "b//c.png", "d/../../e.png"):
        s3.put(f"j/in/{name}", image)
    output = convert(run, s3.uri("j/in"), tmp_path / "out")
    assert "1 converted, 1 skipped, 2 failed" in output
    assert "its name has an empty part" in output
    assert [*on_disk(tmp_path / "out")] == ["a.l3"]
    assert sorted(os.listdir(tmp_path)) == ["out", "out.conversion"]


def test_the_error_of_another_file_is_not_that_of_the_temporary_one(s3):
    error = TargetError(5, "broken", "s3://bucket/other")
    with pytest.raises(TargetError) as caught, find_storage("s3://").writing(s3.uri("k/file")):
        raise error
    assert caught.value is error


def test_what_arrives_differently_at_google_is_an_error(gs, monkeypatch):
    files, call = find_storage("gs://"), find_storage("gs://")._objects._call

    async def answer(*arguments, **options):
        found = await call(*arguments, **options)
        return {**found, "md5Hash": "AAAAAAAAAAAAAAAAAAAAAA=="} if isinstance(found, dict) else found

    monkeypatch.setattr(files._objects, "_call", answer)
    with pytest.raises(TargetError, match="MD5"):
        files.write(gs.uri("l/file"), b"data")


def test_errors(run, s3, s3_source, tmp_path):
    for source, target, message in [
        (s3.uri("none"), s3.uri("f/out"), f"{s3.uri('none')}: there are no objects in this folder"),
        ("s3://absent/x", s3.uri("f/out"), "s3://absent/x: The specified bucket does not exist"),
        (s3_source, "s3://absent/x", "The specified bucket does not exist"),
        (s3_source, "s3://bucket", "name a folder in the bucket"),
        (s3_source, f"{s3_source}/out", "must not be the same or inside one another"),
        (s3_source, s3.uri("source"), "must not be the same or inside one another"),
        (s3_source, "s3://bucket//x", "without empty names"),
        (s3.uri("source/none-*.tar"), s3.uri("f/out"), "stands for no objects"),
        (s3.uri("source/{0..3}.tar"), s3.uri("f/out"), "write a pattern instead"),
        (f"{s3_source}/cats/000.png", s3.uri("f/out"), "a single object; name the folder"),
        ("http://a/b", s3.uri("f/out"), "neither a file of this machine, nor in a bucket"),
        (tmp_path, "ftp://a/b", "neither a file of this machine, nor in a bucket"),
    ]:
        code, _, err = run("convert", source, target, *SHARDS)
        assert code in (1, 2)
        assert message in err
    assert contents(s3, "f") == {}, "not even a manifest"


def test_a_bucket_that_may_not_be_written(run, s3, s3_source):
    with s3.failing(Fault("g/out/", status=403)):
        output = convert(run, s3_source, s3.uri("g/out"), *SHARDS)
    assert "s3://bucket/g/out" in output
    assert "the run was stopped after 1 file could not be written" in output
    assert "10 left" in output


def test_no_room_for_a_shard_on_the_way_to_a_bucket(s3, tmp_path):
    files, limits = find_storage("s3://"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
    try:
        with pytest.raises(TargetError) as caught, files.writing(s3.uri("h/file")) as file:  # noqa: PT012
            file.write(bytes(1 << 20))
            file.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.filename == tempfile.gettempdir()
    assert contents(s3, "h") == {}


def test_kills_at_random_moments(s3, tmp_path):
    assert killing_in_bucket.kill_conversions(s3, tmp_path, kills=2, seed=1) >= 1


def test_without_s3fs(run, s3_source, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3")  # where it was imported before
    storage._bucket_storage.cache_clear()
    output = convert(run, s3_source, tmp_path / "out", expect=2)
    storage._bucket_storage.cache_clear()
    assert "s3:// needs s3fs, try: pip install 'dali-l3[buckets]'" in output
