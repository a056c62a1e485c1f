"""`dali-l3 index` and `dali-l3 verify` of s3:// and gs://: as of the same files on a disk."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from catalogue_oracle import read_catalogue
from converting_in_buckets import contents, forget_buckets
from image_files import noise, write_png
from reading import HEADERS
from tar_shards import samples, write_shard
from unreliable_proxy import Fault

pytest.importorskip("moto", reason="moto is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")

from dali_l3 import files
from dali_l3.units import storage

pytestmark = pytest.mark.usefixtures("one_process", "no_cache")


@pytest.fixture(params=["s3", "gs"])
def store(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(tmp_path):
    """Headers of images in three classes, and a mask for each."""
    for number, name in enumerate(["cat/1.png", "cat/2.bmp", "dog-b/3.l3", "dog/4.png", "ox/é 5.jpg"]):
        path = tmp_path / "set" / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(HEADERS[path.suffix[1:]] + bytes(5000 * number))
        mask = tmp_path / "set" / "masks" / f"{path.parent.name}/{path.stem}.png"
        mask.parent.mkdir(parents=True, exist_ok=True)
        mask.write_bytes(HEADERS["png"] + bytes(number))
    paths = sorted((tmp_path / "set" / "data").rglob("*.*"))
    lines = [f"{path.relative_to(tmp_path / 'set' / 'data')} {number}\n" for number, path in enumerate(paths)]
    (tmp_path / "set" / "data" / "list.txt").write_text("".join(lines))
    return tmp_path / "set" / "data"


def command(run, *arguments, expect=0):
    code, out, err = run(*arguments)
    assert code == expect, err
    return out + err


MASKS = ("--companions", "../masks/{dir}/{stem}.png")


@pytest.mark.parametrize("arguments", [(), ("--filter", "*.png"), MASKS, ("list",), ("list", *MASKS)], ids=str)
def test_a_catalogue_is_that_of_the_folder(run, store, data, arguments):
    store.put_folder(data.parent, f"a{len(arguments)}")
    root = store.uri(f"a{len(arguments)}/data")
    name = "/list.txt" if arguments[:1] == ("list",) else ""
    options = arguments[bool(name) :]
    command(run, "index", f"{data}{name}", *options, "-o", "local.l3cat")
    command(run, "index", f"{root}{name}", *options, "-o", "remote.l3cat", "--workers", "3")
    remote, local = read_catalogue("remote.l3cat"), read_catalogue("local.l3cat")
    assert remote.root == root
    assert remote.files == local.files
    assert (remote.formats, remote.labels) == (local.formats, local.labels)
    assert command(run, "verify", "remote.l3cat").splitlines() == ["remote.l3cat: fits its files"]


@pytest.mark.parametrize("has_index", [True, False])
def test_a_catalogue_of_shards(run, store, tmp_path, has_index):
    key = f"b{has_index}"
    for number in range(2):
        shard = Path(write_shard(tmp_path / f"t-{number}.tar", samples(5, f"s{number}/")))
        store.put(f"{key}/{shard.name}", shard.read_bytes())
    options = ("--ext", "png", "--ext", "seg.png", "--label-ext", "cls")
    command(run, "index", "t-*.tar", *options, "-o", "local.l3cat")
    if has_index:
        for number in range(2):
            store.put(f"{key}/t-{number}.idx", (tmp_path / f"t-{number}.idx").read_bytes())
    command(run, "index", store.uri(f"{key}/t-*.tar"), *options, "-o", "remote.l3cat")
    remote, local = read_catalogue("remote.l3cat"), read_catalogue("local.l3cat")
    assert remote.root == store.uri(f"{key}/")
    assert [remote.files, remote.labels, remote.archives, remote.archive_sizes] == [
        local.files,
        local.labels,
        local.archives,
        local.archive_sizes,
    ]
    assert (tmp_path / "cache" / "dali_l3").exists() != has_index
    assert set(contents(store, key)) == {f"t-{i}.{kind}" for i in range(2) for kind in ["tar", "idx"][: 1 + has_index]}
    assert "fits its files" in command(run, "verify", "remote.l3cat")
    store.put(f"{key}/t-2.tar", (tmp_path / "t-0.tar").read_bytes())
    store.put(f"{key}/t-1.tar", (tmp_path / "t-0.tar").read_bytes() + bytes(10240))
    err = command(run, "verify", "remote.l3cat", expect=1)
    size = (tmp_path / "t-1.tar").stat().st_size
    assert f"{store.uri(key)}/t-1.tar: has {size + 10240} bytes, and not {size}\n" in err
    assert f"{store.uri(key)}/t-2.tar: is not in the catalogue\n" in err


def test_what_a_bucket_is_asked_for(run, s3, data):
    s3.put_folder(data, "c")
    s3.take_requests()
    command(run, "index", s3.uri("c"), "-o", "x.l3cat")
    listing, *looks = s3.take_requests()
    assert "prefix=c" in listing.path
    assert [request.method for request in looks] == ["GET"] * 5
    assert all(request.range[0] == 0 and request.delivered <= 4096 for request in looks)


def test_differences_are_found(run, store, data):
    store.put_folder(data.parent, "d")
    command(run, "index", data, *MASKS, "--root", store.uri("d/data"), "-o", "copied.l3cat")
    command(run, "index", store.uri("d/data"), *MASKS, "-o", "made.l3cat")
    for name in ("copied.l3cat", "made.l3cat"):
        assert "fits its files" in command(run, "verify", name)
    store.put("d/data/cat/1.png", HEADERS["png"] + b"more")
    store.put("d/data/cat/2.bmp", HEADERS["png"].ljust((data / "cat/2.bmp").stat().st_size, b"\0"))
    store.put("d/data/dog/6.png", HEADERS["png"])
    path = "/bucket/d/masks/ox/%C3%A9%205.png"
    store.send("DELETE", path if store.scheme == "s3" else "/storage/v1/b/bucket/o/d%2Fmasks%2Fox%2F%C3%A9%205.png")
    size = len(HEADERS["png"])
    for name in ("copied.l3cat", "made.l3cat"):
        lines = command(run, "verify", name, expect=1).splitlines()
        assert sorted(lines[:-1]) == [
            "dog/6.png: is not in the catalogue",
            f"{store.uri('d/data')}/cat/1.png: has {size + 4} bytes, and not {size}",
            f"{store.uri('d/data')}/cat/2.bmp: is of the format PNG, and not BMP",
            f"{store.uri('d/masks')}/ox/é 5.png: is missing",
        ]


@pytest.fixture
def one_attempt(monkeypatch):
    """botocore, in a new client, asks once and gives up; the next test has another client."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    forget_buckets()
    yield
    forget_buckets()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("o/data/cat/1.png", status=403, code="ExpiredToken"),
        Fault("list-type", status=403, code="InvalidAccessKeyId"),
    ],
    ids=lambda fault: fault.code,
)
@pytest.mark.usefixtures("one_attempt")
def test_an_outage_is_no_difference(run, s3, data, fault):
    uri = s3.put_folder(data.parent, "o")
    command(run, "index", f"{uri}/data", "-o", "made.l3cat")
    with s3.failing(fault):
        output = command(run, "verify", "made.l3cat", expect=1)
    assert f"{uri}/data" in output
    assert "no file is to blame, so the run was stopped; run it again" in output
    assert "difference" not in output


@pytest.mark.usefixtures("one_attempt")
def test_an_outage_is_no_difference_of_shards(run, s3, tmp_path):
    s3.put("q/1.tar", Path(write_shard(tmp_path / "1.tar", samples(3))).read_bytes())
    command(run, "index", s3.uri("q/*.tar"), "--ext", "png", "-o", "made.l3cat")
    assert "fits its files" in command(run, "verify", "made.l3cat")
    with s3.failing(Fault("list-type", status=403, code="InvalidAccessKeyId")):
        output = command(run, "verify", "made.l3cat", expect=1)
    assert "no file is to blame, so the run was stopped; run it again" in output
    assert "difference" not in output


@pytest.mark.usefixtures("one_attempt")
def test_objects_that_may_not_be_read_are_differences(run, s3, data):
    uri = s3.put_folder(data.parent, "r")
    command(run, "index", f"{uri}/data", "-o", "made.l3cat")
    with s3.failing(Fault("r/data/cat/1.png", status=403, code="AccessDenied")):
        output = command(run, "verify", "made.l3cat", expect=1)
    assert f"{uri}/data/cat/1.png: may not be read with these credentials" in output
    assert "1 difference" in output


@pytest.mark.usefixtures("one_attempt")
def test_failures_that_pass_are_not_noticed_and_others_leave_no_catalogue(run, s3, data):
    s3.put_folder(data, "e")
    with s3.failing(Fault("png|list-type", times=2, status=503, code="SlowDown")):
        command(run, "index", s3.uri("e"), "-o", "x.l3cat")
    Path("x.l3cat").unlink()
    for fault, message in [
        (Fault("cat/1.png", status=403, code="AccessDenied"), "e/cat/1.png: may not be read with these credentials"),
        (Fault("list-type", status=403, code="InvalidAccessKeyId"), "may not be read with these credentials"),
        (Fault("cat/1.png", status=404, code="NoSuchKey"), "e/cat/1.png: there is no such object"),
    ]:
        with s3.failing(fault):
            code, _, err = run("index", s3.uri("e"), "-o", "x.l3cat")
        assert (code in (1, 2), message in err, os.path.exists("x.l3cat")) == (True, True, False), err


def test_names_that_readers_cannot_ask_for_are_bad(run, s3, data):
    for name in ("f/cat/1.png", "f/cat/2?.png"):
        s3.put(name, HEADERS["png"])
    err = command(run, "index", s3.uri("f"), "-o", "x.l3cat", expect=2)
    assert "f/cat/2?.png is a URI: DALI takes what is behind ? or # for no part of the name" in err
    command(run, "index", s3.uri("f"), "--skip-bad", "-o", "x.l3cat")
    assert [name for name, *_ in read_catalogue("x.l3cat").files[0]] == ["cat/1.png"]


def test_nothing_there(run, s3):
    assert "No files found in s3://bucket/none" in command(run, "index", s3.uri("none"), "-o", "x.l3cat", expect=2)
    for arguments in (("index", "ftp://a", "-o", "x.l3cat"), ("index", "ftp://a/b.tar"), ("verify", "ftp://a/b")):
        assert "neither a file of this machine, nor in a bucket" in command(run, *arguments, expect=2)


# ---- Files and shards in buckets, without a catalogue ----


def test_indices_of_shards_in_a_bucket(run, store, tmp_path):
    for number in range(2):
        shard = Path(write_shard(tmp_path / f"t-{number}.tar", samples(5, f"s{number}/")))
        store.put(f"g/{shard.name}", shard.read_bytes())
    command(run, "index", "t-*.tar")
    expected = {f"t-{number}.idx": (tmp_path / f"t-{number}.idx").read_bytes() for number in range(2)}

    def indices(key):
        return {name: text for name, text in contents(store, key).items() if name.endswith(".idx")}

    assert "2 indexed" in command(run, "index", store.uri("g/t-*.tar"))
    assert indices("g") == expected
    assert "2 kept" in command(run, "index", store.uri("g/t-*.tar"))
    store.put("g/t-0.idx", b"v1.2 1 size=17\njpg 512 99 x.jpg\n")
    store.put("g/t-1.idx", b"something else")
    assert "t-1.idx: exists and is no index" in command(run, "index", store.uri("g/t-*.tar"), expect=1)
    assert indices("g") == {**expected, "t-1.idx": b"something else"}
    command(run, "index", store.uri("g/t-{0..1}.tar"), "--overwrite")
    assert indices("g") == expected
    # Another archive of the same size, in which members lie elsewhere.
    first = (tmp_path / "t-0.tar").read_bytes()
    other = Path(write_shard(tmp_path / "other.tar", samples(5, "s0/")[::-1])).read_bytes()
    assert (len(other), other == first) == (len(first), False)
    store.put("g/t-0.tar", other)
    assert "1 indexed, 1 kept" in command(run, "index", store.uri("g/t-*.tar"))
    command(run, "index", "other.tar")
    assert indices("g")["t-0.idx"] == (tmp_path / "other.idx").read_bytes()
    store.put("g/t-0.tar", first)
    assert "1 indexed, 1 kept" in command(run, "index", store.uri("g/t-*.tar"))
    command(run, "index", store.uri("g/t-*.tar"), "-o", "here")
    assert {path.name: path.read_bytes() for path in Path("here").iterdir()} == expected
    command(run, "index", "t-*.tar", "-o", store.uri("g/there"))
    assert contents(store, "g/there") == expected
    store.put("g/t-2.tar", (tmp_path / "t-0.tar").read_bytes()[:700])
    assert "1 failed" in command(run, "index", store.uri("g/t-2.tar"), expect=1)


@pytest.fixture
def images(tmp_path):
    """Images, one of which is damaged, and a file that is none."""
    for number in range(4):
        write_png(tmp_path / "images" / ("a", "b")[number % 2] / f"{number}.png", noise((20, 30), seed=number))
    damaged = tmp_path / "images" / "b" / "3.png"
    damaged.write_bytes(damaged.read_bytes()[:300])
    (tmp_path / "images" / "notes.md").write_text("hello")
    return tmp_path / "images"


def test_verify_objects(run, store, images):
    store.put_folder(images, "h")
    on_disk = command(run, "verify", images, expect=1)
    in_bucket = command(run, "verify", store.uri("h"), "--report", "report", expect=1)
    assert "3 verified, 1 skipped, 1 failed" in on_disk
    assert "3 verified, 1 skipped, 1 failed" in in_bucket
    failure = next(line for line in in_bucket.splitlines() if line.startswith("failed: "))
    assert failure.replace(store.uri("h"), str(images)) in on_disk
    assert '"damaged": true' in Path("report").read_text()
    assert "1 verified, 0 failed" in command(run, "verify", store.uri("h/a/0.png"))
    assert "1 verified, 0 failed" in command(run, "verify", store.uri("h/a/0.png"), "--workers", "2")
    assert "--quarantine moves files" in command(run, "verify", store.uri("h"), "--quarantine", "q", expect=2)
    assert "no objects" in command(run, "verify", store.uri("none"), expect=1)
    parts = [run("verify", store.uri("h"), "--part", f"{i}/2")[2] for i in (1, 2)]
    assert sum("failed: " in part for part in parts) == 1


def test_verify_shards(run, store, images, tmp_path):
    members = [(str(path.relative_to(images)), path.read_bytes()) for path in sorted(images.rglob("*.*"))]
    shard = write_shard(tmp_path / "x.tar", [*members, ("a/0.cls", b"3"), ("c/4.jpg", members[0][1][:5])])
    store.put("i/x.tar", Path(shard).read_bytes())
    for path in (shard, store.uri("i/*.tar")):
        output = command(run, "verify", path, expect=1)
        assert "3 verified, 2 skipped, 2 failed" in output
        assert "x.tar: b/3.png: " in output


def test_a_bad_shard_is_a_failure_among_others(run, store, images, tmp_path):
    key = "k"
    shard = Path(write_shard(tmp_path / "1.tar", [("0.png", (images / "a" / "0.png").read_bytes())])).read_bytes()
    (tmp_path / "0.tar").write_bytes(shard[:700])
    (tmp_path / "2.tar").symlink_to(tmp_path / "nothing")
    for name, content in (("0.tar", shard[:700]), ("1.tar", shard)):
        store.put(f"{key}/{name}", content)
    for path in ("*.tar", store.uri(f"{key}/*.tar")):
        output = command(run, "verify", path, "--report", "report", expect=1)
        assert f"1 verified, {1 + (path == '*.tar')} failed" in output
        failure = next(line for line in output.splitlines() if line.startswith("failed: ") and "0.tar" in line)
        assert failure.count("0.tar") == 1
        damaged = [line for line in Path("report").read_text().splitlines() if '"damaged": true' in line]
        assert ["0.tar" in line for line in damaged] == [True]


@pytest.mark.parametrize(
    "line",
    [
        b"png 512 99 a.png",
        b"png 1024 %d a.png",
        b"png 512 %d a.png cls",
        b"png x %d a.png",
        b"png -512 %d a.png",
        b"png 512 -1 a.png",
        b"png 512 99999 a.png",
        b"png 512 %s a.png" % (b"9" * 5000),
    ],
)
def test_an_index_in_a_bucket_is_not_trusted(run, s3, images, tmp_path, line):
    image = (images / "a" / "0.png").read_bytes()
    shard = Path(write_shard(tmp_path / "1.tar", [("0.png", image)])).read_bytes()
    s3.put("l/1.tar", shard)
    line = line.replace(b"%d", b"%d" % len(image))
    s3.put("l/1.idx", b"v1.2 1 size=%d\n%b\n" % (len(shard), line))
    assert "1 verified" in command(run, "verify", s3.uri("l/1.tar"))
    assert "1 converted" in command(run, "convert", s3.uri("l/1.tar"), "out")
    assert os.listdir("out") == ["0.l3"]


def test_a_name_in_an_index_that_is_not_as_ours_are_is_an_error(run, s3, images, tmp_path):
    image = (images / "a" / "0.png").read_bytes()
    shard = Path(write_shard(tmp_path / "1.tar", [("a b.png", image)])).read_bytes()
    s3.put("t/1.tar", shard)
    s3.put("t/1.idx", b"v1.2 1 size=%d\npng 512 %d a b.png\n" % (len(shard), len(image)))
    for arguments in (("verify", s3.uri("t/1.tar")), ("convert", s3.uri("t/1.tar"), "out")):
        code, _, err = run(*arguments)
        assert code in (1, 2)
        assert "t/1.tar: the index beside it has the line" in err
    assert not os.path.exists("out")


def test_a_full_disk_is_named_where_an_archive_is_fetched(run, s3, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "r+b"))  # noqa: SIM115
    s3.put("m/1.tar", bytes(10240))
    for arguments in (("index", s3.uri("m/1.tar")), ("verify", s3.uri("m/1.tar"))):
        output = command(run, *arguments, expect=1)
        assert f"{tempfile.gettempdir()}: No space left on device" in output


def test_an_outage_ends_a_verification(run, s3, images, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    forget_buckets()
    s3.put_folder(images, "j")
    with s3.failing(Fault("j/b", status=503, code="SlowDown")):
        output = command(run, "verify", s3.uri("j"), expect=1)
    assert "no file is to blame, so the run was stopped" in output
    forget_buckets()


def test_without_s3fs_catalogues_say_what_is_missing(run, s3, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3")  # where it was imported before
    storage._bucket_storage.cache_clear()
    for arguments in (("index", s3.uri("a"), "-o", "x.l3cat"), ("verify", s3.uri("a")), ("index", s3.uri("a.tar"))):
        assert "s3:// needs s3fs, try: pip install 'dali-l3[buckets]'" in command(run, *arguments, expect=2)
    storage._bucket_storage.cache_clear()


# ---- What must not block ----


def test_ctrl_c_ends_what_asks_a_bucket(run_python):
    program = """
import os, signal, time
from dali_l3 import _core

class Objects:
    def objects_in(self, folder):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)  # so that the main thread waits when this thread wants the GIL
        return [("1.png", 8)]

for ask in (
    lambda: _core.expand_paths(["s3://bucket/a/*.tar"], Objects()),
    lambda: _core.write_catalogue("x.l3cat", {"file_root": "s3://bucket/a"}, "{}", None, 2, Objects()),
):
    try:
        ask()
    except KeyboardInterrupt:
        print("interrupted")
"""
    assert run_python(program).split() == ["interrupted"] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("index", "fifo.txt"),
        ("index", "fifo.tar"),
        ("index", "fifo.txt", "-o", "x.l3cat"),
        ("index", "fifo.tar", "--ext", "png", "-o", "x.l3cat"),
        ("index", "fifo.l3cat", "-o", "x.l3cat"),
        ("index", "good.l3cat", "--names", "fifo.txt", "-o", "x.l3cat"),
        ("verify", "fifo.l3cat"),
        ("verify", "fifo.tar"),
        ("verify", "fifo.png"),
        ("info", "fifo.l3cat"),
        ("info", "fifo.l3"),
        ("export", "fifo.l3cat", "x.parquet"),
        ("export", "fifo.l3", "out/"),
        ("convert", "fifo.png", "out/"),
        ("convert", "fifo.tar", "out"),
        ("convert", "fifo.txt", "out", "--shards", "1MiB"),
    ],
    ids=" ".join,
)
def test_a_fifo_in_the_place_of_a_file_is_an_error(run, data, arguments):
    command(run, "index", data, "-o", "good.l3cat")
    fifo = next(word for word in arguments if word.startswith("fifo"))
    os.mkfifo(fifo)
    code, out, err = run(*arguments)
    assert code in (1, 2)
    assert fifo in out + err
    assert files.PARTIAL_SUFFIX not in str(os.listdir())
    assert not os.path.exists("x.l3cat")
