"""`dali-l3 index -o FILE.l3cat`, and the commands that take catalogues."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from catalogue_oracle import FORMATS, read_catalogue
from dali_l3 import _core
from gil import check_gil_is_released
from reading import HEADERS
from tar_shards import image, samples, write_shard

pytestmark = pytest.mark.usefixtures("one_process")

NAMES = {"cat": ["1.png", "2.png", "3.bmp"], "dog": ["4.l3", "5.png"], "ox": ["é 6.jpg"]}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of six images in three classes, from whose parent commands run."""
    monkeypatch.chdir(tmp_path)
    for folder, names in NAMES.items():
        (tmp_path / "data" / folder).mkdir(parents=True)
        for name in names:
            path = tmp_path / "data" / folder / name
            path.write_bytes(HEADERS[path.suffix[1:]] + bytes(ord(name[-1])))
            (tmp_path / "masks" / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "masks" / folder / f"{path.stem}.png").write_bytes(HEADERS["png"])
    return tmp_path / "data"


def listed(folder: Path) -> list[tuple[str, int, int]]:
    """The files in class folders, as a catalogue has them."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(str(path.relative_to(folder)), path.stat().st_size, 0) for path in paths]


def index(run, *arguments):
    code, _, err = run("index", *arguments)
    assert code == 0, err
    return err


def test_a_folder(run, data):
    assert "x.l3cat: 6 samples" in index(run, "data", "-o", "x.l3cat")
    catalogue = read_catalogue("x.l3cat")
    assert catalogue.root == "data"
    assert catalogue.files == [listed(data)]
    assert catalogue.formats == ["PNG", "PNG", "BMP", "L3", "PNG", "JPEG"]
    assert catalogue.labels == [0, 0, 0, 1, 1, 2]
    assert FORMATS == _core.FORMATS
    assert not list(Path().glob("*.tmp"))
    index(run, "data", "--filter", "*.png", "-o", "x.l3cat")
    assert [name for name, *_ in read_catalogue("x.l3cat").files[0]] == ["cat/1.png", "cat/2.png", "dog/5.png"]


def test_companions(run, data):
    index(run, "data", "--companions", "../masks/{dir}/{stem}.png", "-o", "x.l3cat")
    masks = [f"../masks/{Path(name).parent}/{Path(name).stem}.png" for name, *_ in listed(data)]
    assert read_catalogue("x.l3cat").files[1] == [(mask, len(HEADERS["png"]), 0) for mask in masks]
    (data / masks[2]).unlink()
    assert (
        "1 of 6 samples has bad files"
        in run("index", "data", "--companions", "../masks/{dir}/{stem}.png", "-o", "x.l3cat")[2]
    )
    err = index(run, "data", "--companions", "../masks/{dir}/{stem}.png", "--missing", "empty", "-o", "x.l3cat")
    assert "1 of 6 samples has no companion" in err
    assert read_catalogue("x.l3cat").files[1][2] == ("", 0, 0)
    assert "6 samples" in index(run, "x.l3cat", "--select", "size > 0", "-o", "y.l3cat")
    assert read_catalogue("y.l3cat").files == read_catalogue("x.l3cat").files


def test_a_list(run, data):
    Path("lists").mkdir()
    Path("lists/l.txt").write_text("../data/dog/5.png 7\n../data/cat/1.png 3\n")
    index(run, "lists/l.txt", "-o", "x.l3cat")
    catalogue = read_catalogue("x.l3cat")
    assert (catalogue.root, catalogue.labels) == ("lists", [7, 3])
    assert [name for name, *_ in catalogue.files[0]] == ["../data/dog/5.png", "../data/cat/1.png"]
    Path("lists/v.txt").write_text("../data/dog/5.png 0.5 -1\n../data/cat/1.png 2 1e3\n")
    index(run, "lists/v.txt", "--label-columns", "2", "-o", "x.l3cat")
    assert read_catalogue("x.l3cat").labels == [[0.5, -1], [2, 1000]]
    index(run, "x.l3cat", "--names", write_lines("n.txt", ["../data/cat/1.png"]), "-o", "y.l3cat")
    assert read_catalogue("y.l3cat").labels == [[2, 1000]]


def write_lines(path: str, lines: list[str]) -> str:
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def test_shards(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards = [write_shard(tmp_path / f"s-{i}.tar", samples(i + 2)) for i in range(2)]
    index(run, "s-*.tar", "--ext", "png", "--ext", "seg.png", "--label-ext", "cls", "-o", "x.l3cat")
    catalogue = read_catalogue("x.l3cat")
    assert (catalogue.root, catalogue.archives) == (".", ["s-0.tar", "s-1.tar"])
    assert catalogue.archive_sizes == [os.path.getsize(path) for path in shards]
    assert catalogue.labels == [0, 1, 0, 1, 2]
    content = {path: Path(path).read_bytes() for path in catalogue.archives}
    for name, size, offset in catalogue.files[0]:
        archive, _, member = name.partition(":")
        assert content[archive][offset : offset + size] == image(str(int(member[:3])))
    assert all(name.endswith(".seg.png") for name, *_ in catalogue.files[1])
    index(run, "s-*.tar", "--ext", "png", "-o", "x.l3cat")
    assert read_catalogue("x.l3cat").labels is None
    assert "needs --ext" in run("index", "s-0.tar", "-o", "x.l3cat")[2]


def chosen(run, *rules) -> list[str]:
    index(run, "x.l3cat", *rules, "-o", "y.l3cat")
    return [Path(name).stem for name, *_ in read_catalogue("y.l3cat").files[0]]


def test_a_root_elsewhere(run, data):
    uri = "hdfs://host/data"
    index(run, "data", "--root", uri, "-o", "x.l3cat")
    catalogue = read_catalogue("x.l3cat")
    assert catalogue.root == uri
    assert catalogue.files == [listed(data)]
    index(run, "x.l3cat", "--select", "label in 0", "-o", "cats.l3cat")
    assert read_catalogue("cats.l3cat").root == uri
    # What needs the files has no access to them.
    refused = "neither a file of this machine, nor in a bucket that is known (s3://, gs://)"
    for arguments in (["verify", "x.l3cat"], ["index", uri, "-o", "y.l3cat"]):
        code, _, err = run(*arguments)
        assert (code, err.strip()) == (2, f"dali-l3: {uri}: {refused}")
    assert not Path("y.l3cat").exists()
    index(run, "x.l3cat", "--root", "data", "-o", "z.l3cat")
    assert run("verify", "z.l3cat")[0] == 0


def test_a_root_elsewhere_for_shards(run, tmp_path):
    shard = write_shard(tmp_path / "one.tar", samples(3))
    index(run, shard, "--ext", "png", "--root", "gs://bucket/shards", "-o", str(tmp_path / "x.l3cat"))
    catalogue = read_catalogue(str(tmp_path / "x.l3cat"))
    assert (catalogue.root, catalogue.archives) == ("gs://bucket/shards", ["one.tar"])
    assert catalogue.archive_sizes == [os.path.getsize(shard)]


def test_parts(run, data):
    index(run, "data", "-o", "x.l3cat")
    assert chosen(run, "--select", "label in 1, 2") == ["4", "5", "é 6"]
    assert chosen(run, "--select", "label NOT IN 1") == ["1", "2", "3", "é 6"]
    assert chosen(run, "--select", "format in PNG,l3", "--select", "label in 1") == ["4", "5"]
    size = os.path.getsize(data / "cat/3.bmp")
    sizes = {Path(name).stem: size for name, size, _ in listed(data)}
    assert chosen(run, "--select", f"size < {size}") == [name for name, of in sizes.items() if of < size]
    assert chosen(run, "--select", f"size >= {size}") == [name for name, of in sizes.items() if of >= size]
    assert chosen(run, "--names", write_lines("names.txt", ["ox/é 6.jpg", "cat/2.png"])) == ["2", "é 6"]
    halves = [chosen(run, "--fraction", part, "--seed", "3") for part in ("0:0.5", "0.5:1")]
    assert sorted(sum(halves, [])) == ["1", "2", "3", "4", "5", "é 6"]
    assert [len(half) for half in halves] == [3, 3]
    assert read_catalogue("y.l3cat").labels == [
        {"c": 0, "d": 1, "o": 2}[n[0]] for n, *_ in read_catalogue("y.l3cat").files[0]
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "label = 1"], "is no rule: write 'label in 1,2,7'"),
        (["--select", "label in a"], "labels are integers"),
        (["--select", "format in GIFF"], "there is no format GIFF"),
        (["--select", "size in 1"], "is no rule"),
        (["--select", "label < 2"], "is no rule"),
        (["--select", "size < 1 parsec"], "is not a size"),
        (["--select", "label in 9"], "no sample of x.l3cat is chosen by label in 9"),
        (["--names", "x.txt", "--fraction", "0:1"], "exclude each other"),
        (["--fraction", "1:0"], "from 0 to 1"),
        (["--fraction", "half"], "--fraction is half"),
        (["--fraction", "0:1", "--seed", str(2**63)], "is no integer of 64 bits"),
        (["--ext", "png"], "--ext does not go with x.l3cat"),
    ],
)
def test_wrong_selections(run, data, arguments, message):
    index(run, "data", "-o", "x.l3cat")
    code, _, err = run("index", "x.l3cat", *arguments, "-o", "y.l3cat")
    assert code == 2, err
    assert message in err
    assert not os.path.exists("y.l3cat")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["s.tar", "--ext", "png"], "--ext is for catalogues: say where to write one"),
        (["s.tar", "--skip-bad", "-o", "indices"], "--skip-bad is for catalogues"),
        (["x.l3cat", "--select", "label in 1"], "--select is for catalogues"),
        (["data", "-o", "y.l3cat", "--report", "r.jsonl"], "do not go with catalogues"),
        (["data", "-o", "y.l3cat", "--missing", "empty"], "--missing goes with --companions or shards"),
        (["x.l3cat", "-o", "y.l3cat", "--missing", "skip"], "--missing goes with --companions or shards"),
        (["x.l3cat", "-o", "y.l3cat", "--skip-bad"], "--skip-bad does not go with x.l3cat"),
        (["x.l3cat", "-o", "y.l3cat", "--select", "label in 1", "--seed", "3"], "--seed is for --fraction"),
    ],
)
def test_options_that_would_do_nothing(run, data, arguments, message):
    code, _, err = run("index", *arguments)
    assert (code, message in err) == (2, True), err
    assert not os.path.exists("y.l3cat")


@pytest.mark.parametrize(
    ("path", "message"), [("s3://bucket/x.l3cat", "mapped into memory"), ("none/x.l3cat", "there is no folder none")]
)
def test_where_no_catalogue_can_be(run, data, monkeypatch, path, message):
    monkeypatch.setattr(_core, "write_catalogue", None)  # before anything is listed
    code, _, err = run("index", "data", "-o", path)
    assert (code, f"{path}: " in err, message in err) == (2, True, True)


def test_too_many_threads(run, data):
    index(run, "data", "-o", "x.l3cat")
    for arguments in (("index", "data", "-o", "y.l3cat"), ("verify", "x.l3cat")):
        code, _, err = run(*arguments, "--workers", "100000")
        assert (code, "must be from 1 to 1024" in err) == (2, True)
    assert not os.path.exists("y.l3cat")


def test_wrong_sources(run, data):
    assert "choose from a catalogue" in run("index", "data", "--select", "label in 1", "-o", "x.l3cat")[2]
    assert "one folder, list or catalogue" in run("index", "data", "data", "-o", "x.l3cat")[2]
    assert "No such file" in run("index", "nothing", "-o", "x.l3cat")[2]
    (data / "cat/2.png").write_bytes(b"")
    code, _, err = run("index", "data", "-o", "x.l3cat")
    assert (code, "data/cat/2.png" in err, os.path.exists("x.l3cat")) == (2, True, False)
    assert "5 samples" in index(run, "data", "--skip-bad", "-o", "x.l3cat")


def test_info(run, data):
    index(run, "data", "-o", "x.l3cat")
    code, out, _ = run("info", "--json", "x.l3cat")
    facts = json.loads(out)
    assert (code, facts["samples"], facts["classes"]) == (0, 6, 3)
    assert facts["formats"] == {"L3": 1, "PNG": 3, "JPEG": 1, "BMP": 1}
    assert facts["bytes"] == [sum(size for _, size, _ in listed(data))]
    code, out, _ = run("info", "x.l3cat")
    assert (code, "6: 1 L3, 3 PNG, 1 JPEG, 1 BMP" in out) == (0, True)
    content = bytearray(Path("x.l3cat").read_bytes())
    content[-1] ^= 1
    Path("x.l3cat").write_bytes(content)
    code, _, err = run("info", "x.l3cat")
    assert (code, "x.l3cat: " in err, "is damaged: the checksum of section" in err) == (1, True, True)


def test_verify(run, data):
    index(run, "data", "-o", "x.l3cat")
    code, _, err = run("verify", "x.l3cat")
    assert (code, err) == (0, "x.l3cat: fits its files\n")
    (data / "cat/1.png").write_bytes((data / "cat/1.png").read_bytes() + b"x")
    (data / "cat/2.png").unlink()
    bmp = data / "cat/3.bmp"
    bmp.write_bytes(HEADERS["png"].ljust(bmp.stat().st_size, b"\0"))
    (data / "dog/7.png").write_bytes(HEADERS["png"])
    code, _, err = run("verify", "x.l3cat")
    lines = err.splitlines()
    assert code == 1
    size = os.path.getsize(data / "cat/1.png")
    assert lines == [
        f"data/cat/1.png: has {size} bytes, and not {size - 1}",
        "data/cat/2.png: No such file or directory",
        "data/cat/3.bmp: is of the format PNG, and not BMP",
        "dog/7.png: is not in the catalogue",
        "x.l3cat: 4 differences: make it anew with dali-l3 index",
    ]
    for options in (["--part", "1/2"], ["--ray"], ["--report", "r"], ["--timeout", "5"], ["--strict"]):
        code, _, err = run("verify", "x.l3cat", *options)
        assert (code, f"{options[0]} does not go with catalogues" in err) == (2, True), err
    assert "by themselves" in run("verify", "x.l3cat", "data")[2]
    # A part does not have all files of the folder.
    index(run, "x.l3cat", "--select", "label in 2", "-o", "y.l3cat")
    assert run("verify", "y.l3cat")[0] == 0


def test_verify_shards(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_shard(tmp_path / "s-0.tar", samples(3))
    index(run, "s-*.tar", "--ext", "png", "-o", "x.l3cat")
    assert run("verify", "x.l3cat")[0] == 0
    write_shard(tmp_path / "s-1.tar", samples(2))
    code, _, err = run("verify", "x.l3cat")
    assert (code, err.splitlines()[0]) == (1, "s-1.tar: is not in the catalogue")
    size = os.path.getsize(path)
    os.truncate(path, 1024)
    code, _, err = run("verify", "x.l3cat")
    assert (code, f"s-0.tar: has 1024 bytes, and not {size}" in err) == (1, True)


def test_verify_knows_what_was_left_out(run, data):
    (data / "cat/2.png").write_bytes(b"")
    (data.parent / "masks/dog/5.png").unlink()
    index(run, "data", "--companions", "../masks/{dir}/{stem}.png", "--skip-bad", "-o", "x.l3cat")
    assert [name for name, *_ in read_catalogue("x.l3cat").files[0]] == [
        name for name, *_ in listed(data) if name not in ("cat/2.png", "dog/5.png")
    ]
    assert run("verify", "x.l3cat")[0] == 0
    (data / "ox/7.png").write_bytes(HEADERS["png"])
    (data.parent / "masks/ox/7.png").write_bytes(HEADERS["png"])
    code, _, err = run("verify", "x.l3cat")
    assert (code, err.splitlines()[0]) == (1, "ox/7.png: is not in the catalogue")


def test_verify_after_a_move(run, data):
    Path("set/lists").mkdir(parents=True)
    write_shard(Path("set/s-0.tar"), samples(3))
    data.rename("set/data")
    Path("set/lists/l.txt").write_text("../data/cat/1.png 3\n")
    for name, source in {"shards": ["set/s-*.tar", "--ext", "png"], "list": ["set/lists/l.txt"]}.items():
        index(run, *source, "-o", f"set/{name}.l3cat")
    Path("set").rename("moved")
    for name in ("shards", "list"):
        assert run("verify", f"moved/{name}.l3cat")[0] == 0
    write_shard(Path("moved/s-1.tar"), samples(3))
    assert run("verify", "moved/shards.l3cat")[2].startswith("moved/s-1.tar: is not in the catalogue\n")
    # Without the list, the files are compared all the same.
    Path("moved/lists/l.txt").unlink()
    Path("moved/data/cat/1.png").unlink()
    code, _, err = run("verify", "moved/list.l3cat")
    assert code == 1
    assert "1.png: No such file or directory\nwhat it was made from cannot be listed: file_list moved/lists/" in err


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "[" * 100_000,
        '{"arguments": []}',
        '{"arguments": {"unknown": 1}}',
        '{"kind": "list", "arguments": {"file_list": 5}}',
        '{"kind": "shards", "arguments": {"paths": [5]}}',
        '{"kind": "folder", "arguments": {"file_filters": "*"}}',
        '{"kind": "catalogue", "arguments": {}, "selection": 4}',
    ],
    ids=lambda origin: origin[:40],
)
def test_origins_of_other_programs(run, data, origin):
    _core.write_catalogue("x.l3cat", {"file_root": "data"}, origin)
    code, out, _ = run("info", "x.l3cat")
    assert (code, out.splitlines()[-1]) == (0, "  made from  unknown")
    assert run("verify", "x.l3cat")[0] == 0


def test_origins_in_buckets(run, data):
    _core.write_catalogue(
        "x.l3cat", {"file_root": "data"}, '{"kind": "shards", "arguments": {"paths": ["ftp://b/x.tar"]}}'
    )
    code, _, err = run("verify", "data/../x.l3cat")
    assert (code, "what it was made from cannot be listed: ftp://b/x.tar is a URI" in err) == (1, True)


def test_export(run, data):
    parquet = pytest.importorskip("pyarrow.parquet")
    index(run, "data", "--companions", "../masks/{dir}/{stem}.png", "-o", "x.l3cat")
    assert run("export", "x.l3cat", "x.parquet")[0] == 0
    columns = parquet.read_table("x.parquet").to_pydict()
    catalogue = read_catalogue("x.l3cat")
    assert columns == {
        "name": [name for name, *_ in catalogue.files[0]],
        "format": catalogue.formats,
        "size": [size for _, size, _ in catalogue.files[0]],
        "label": catalogue.labels,
        "companion_1": [name for name, *_ in catalogue.files[1]],
        "companion_1_size": [size for _, size, _ in catalogue.files[1]],
    }
    code, _, err = run("export", "x.l3cat", "x.parquet")
    assert (code, "exists; --overwrite replaces it" in err) == (2, True)
    assert run("export", "x.l3cat", "x.parquet", "--overwrite")[0] == 0
    assert "must end in .parquet" in run("export", "x.l3cat", "folder")[2]
    for options in (["--dry-run"], ["--level", "6"], ["--workers", "2"], ["--strict"], ["--keep-suffix"]):
        code, _, err = run("export", "x.l3cat", "y.parquet", *options)
        assert (code, f"{options[0]} does not go with catalogues" in err) == (2, True), err
        assert not os.path.exists("y.parquet")
    assert not list(Path().glob(".*partial"))


def test_columns_are_arrays(data, run):
    index(run, "data", "-o", "x.l3cat")
    catalogue = _core.Catalogue("x.l3cat")
    assert len(catalogue) == 6
    np.testing.assert_array_equal(catalogue.labels(), [0, 0, 0, 1, 1, 2])
    assert catalogue.names(4, 100) == ["dog/5.png", "ox/é 6.jpg"]
    with pytest.raises(IndexError):
        catalogue.sizes(1)


def test_other_threads_run_while_columns_are_made(data):
    Path("list.txt").write_text("cat/1.png 0\n" * 50_000)
    _core.write_catalogue("x.l3cat", {"file_root": "data", "file_list": "list.txt"}, "{}")
    catalogue = _core.Catalogue("x.l3cat")
    for column in (catalogue.labels, catalogue.formats, catalogue.sizes, catalogue.offsets):
        check_gil_is_released(column)
