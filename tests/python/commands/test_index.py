"""`dali-l3 index`: which indices it writes, keeps and replaces, and what it refuses."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from dali_l3.jobs import workers
from tar_shards import samples, write_shard

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture
def shards(tmp_path):
    return [write_shard(tmp_path / f"s-{i:02d}.tar", samples(i + 1)) for i in range(3)]


def index_of(path):
    return path.replace(".tar", ".idx")


def first_line(path):
    return Path(path).read_text().splitlines()[0]


def test_every_form_of_paths(run, shards, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.txt").write_text("s-{00..02}.tar\n")
    for form in (shards, ["s-*.tar"], ["s-{00..02}.tar"], ["list.txt"]):
        code, _, err = run("index", *form)
        assert (code, "3 indexed, 0 failed" in err) == (0, True)
        for i, path in enumerate(shards):
            lines = Path(index_of(path)).read_text().splitlines()
            assert lines[0] == f"v1.2 {i + 1} size={os.path.getsize(path)}"
            assert len(lines) == i + 2
            os.remove(index_of(path))


def test_an_archive_takes_as_long_as_it_likes(run, shards, monkeypatch):
    monkeypatch.setattr(workers, "_SECONDS", -1000)  # others are given up at the first look
    assert "3 indexed, 0 failed" in run("index", *shards, "--workers", "2")[2]


def test_what_is_there_is_kept_as_long_as_it_fits(run, shards):
    assert run("index", *shards)[0] == 0
    stamp = os.stat(index_of(shards[0])).st_mtime_ns
    assert "3 kept" in run("index", *shards)[2]
    write_shard(Path(shards[1]), samples(9))
    code, _, err = run("index", *shards)
    assert (code, "1 indexed, 2 kept, 0 failed" in err) == (0, True)
    assert first_line(index_of(shards[1])).startswith("v1.2 9 ")
    assert os.stat(index_of(shards[0])).st_mtime_ns == stamp
    # That of another program is replaced, and a file that is no index is not.
    Path(index_of(shards[0])).write_text("v1.2 1\npng 512 1 x.png\n")
    Path(index_of(shards[2])).write_text("my notes")
    code, _, err = run("index", *shards)
    assert code == 1
    assert "s-02.idx: exists and is no index" in err
    assert Path(index_of(shards[2])).read_text() == "my notes"
    assert "size=" in first_line(index_of(shards[0]))
    assert run("index", "--overwrite", *shards)[0] == 0
    assert "size=" in first_line(index_of(shards[2]))


def test_a_folder_for_the_indices(run, shards, tmp_path):
    code, _, _ = run("index", *shards, "--output", tmp_path / "new" / "indices")
    assert code == 0
    assert sorted(os.listdir(tmp_path / "new" / "indices")) == ["s-00.idx", "s-01.idx", "s-02.idx"]
    (tmp_path / "other").mkdir()
    other = write_shard(tmp_path / "other" / "s-00.tar", samples(1))
    code, _, err = run("index", shards[0], other, "--output", tmp_path / "x")
    assert (code, "would have the same index" in err) == (2, True)


def test_a_folder_is_no_archive(run, shards):
    folder = os.path.dirname(shards[0])
    code, _, err = run("index", shards[0], folder)
    assert (code, f"{folder} is a folder: name the archives in it, such as '{folder}/*.tar'" in err) == (2, True)
    assert not os.path.exists(index_of(shards[0]))


def test_what_cannot_be_indexed(run, shards, tmp_path):
    data = Path(shards[2]).read_bytes()
    bad = {"cut.tar": data[:2000], "z.tar": b"\x1f\x8b" + bytes(600), "empty.tar": bytes(1024), "none.tar": None}
    for name, content in bad.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    report = tmp_path / "report.jsonl"
    code, _, err = run("index", *shards, *(tmp_path / name for name in bad), "--report", report)
    assert code == 1
    assert "3 indexed, 4 failed" in err
    for text in (
        "cut.tar: is cut off",
        "z.tar: is compressed with gzip",
        "empty.tar: holds no samples",
        "none.tar: No such",
    ):
        assert text in err
    assert not [
        name for name in os.listdir(tmp_path) if name.split(".")[0] in ("cut", "z", "empty", "none") and "idx" in name
    ]
    outcomes = {json.loads(line)["source"]: json.loads(line)["status"] for line in report.open()}
    assert outcomes[shards[0]] == "done"
    assert outcomes[str(tmp_path / "z.tar")] == "failed"
    for name in (b"nothing", b"\xe9"):  # a name that is not UTF-8, too
        code, _, err = run("index", os.path.join(tmp_path, os.fsdecode(name) + "-*.tar"))
        assert code == 2
        assert "-*.tar, which no file matches" in err


def test_names_that_repeat_are_noted(run, tmp_path):
    path = write_shard(tmp_path / "a.tar", samples(2) + samples(2))
    code, _, err = run("index", path)
    assert (code, "2 samples with the name of another" in err) == (0, True)


def test_an_index_appears_whole(shards):
    """Whoever looks while it is written anew sees a whole one."""
    from dali_l3 import _core

    index = index_of(shards[2])
    _core.update_index(shards[2], index, True)
    expected = Path(index).read_text()
    seen = set()
    done = threading.Event()

    def watch():
        while not done.is_set():
            seen.add(Path(index).read_text())

    thread = threading.Thread(target=watch)
    thread.start()
    for _ in range(100):
        _core.update_index(shards[2], index, True)
    done.set()
    thread.join()
    assert seen == {expected}
    assert len(os.listdir(os.path.dirname(index))) == 4
