"""Conversion on a Ray cluster of two nodes: the same output, whatever becomes of the nodes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading

import pytest

from dali_l3.cli.cluster import with_addresses
from dali_l3.errors import ConversionError
from dali_l3.jobs import cluster
from dali_l3.jobs.cluster import Lost, run_on_cluster
from dali_l3.jobs.planning import PlanError
from dali_l3.jobs.workers import DEFAULT_LIMITS
from dali_l3.units import on_ray
from dali_l3.units.manifest import Settings
from dali_l3.units.planning import open_manifest
from image_files import noise, write_png
from ray_nodes import is_at_work, two_nodes
from waiting import wait_until

SHARDS = ("--shards", "20KiB")


@pytest.mark.parametrize(
    ("written", "complete"),
    [
        ("convert in out --ray", "convert in out --ray auto"),
        ("convert --ray in out", "convert --ray auto in out"),
        ("convert --ray host:6379 in out", None),
        ("convert in out --ray 10.0.0.1:6379 --strict", None),
        ("convert in out --ray --strict", "convert in out --ray auto --strict"),
        ("convert in out --ray auto", None),
        ("convert in out --ray=head:1", None),
        ("convert --ray ray://head-1.local:10001 in s3://bucket/out", None),
        ("convert --ray s3://bucket/in out", "convert --ray auto s3://bucket/in out"),
        ("verify --ray", "verify --ray auto"),
        ("convert in out", None),
    ],
)
def test_an_address_may_be_left_out(written, complete):
    assert with_addresses(written.split()) == (complete or written).split()


def test_without_ray(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "in").mkdir()
    write_png(tmp_path / "in" / "a.png", noise((8, 8, 3)))
    code, _, err = run("verify", tmp_path / "in", "--ray")
    assert code == 2
    assert "ray is not installed, try: pip install 'dali-l3[ray]'" in err


def test_a_machine_without_the_source_does_not_fail_all_samples(tmp_path, one_process):
    write_png(tmp_path / "in" / "a.png", noise((8, 8, 3)))
    manifest = open_manifest(str(tmp_path / "out"), Settings(str(tmp_path / "in"), shards=20 << 10))
    (tmp_path / "in").rename(tmp_path / "elsewhere")
    with pytest.raises(PlanError, match="/in: a machine of the cluster has no such file"):
        on_ray._do_unit(manifest, DEFAULT_LIMITS, 0)
    assert not (tmp_path / "out.conversion" / "records").exists()


def test_an_empty_folder_in_the_place_of_the_source_does_not_either(tmp_path, one_process):
    write_png(tmp_path / "in" / "a.png", noise((8, 8, 3)))
    manifest = open_manifest(str(tmp_path / "out"), Settings(str(tmp_path / "in"), shards=20 << 10))
    (tmp_path / "in" / "a.png").unlink()
    with pytest.raises(PlanError, match="/in: a machine of the cluster has no such file"):
        on_ray._do_unit(manifest, DEFAULT_LIMITS, 0)
    assert not (tmp_path / "out.conversion" / "records").exists()


def test_a_folder_that_is_gone_fails_its_own_samples(tmp_path, one_process):
    for name in ("a/1.png", "a/2.png", "b/3.png"):
        write_png(tmp_path / "in" / name, noise((8, 8, 3)))
    manifest = open_manifest(str(tmp_path / "out"), Settings(str(tmp_path / "in"), shards=20 << 10))
    shutil.rmtree(tmp_path / "in" / "a")
    record = on_ray._do_unit(manifest, DEFAULT_LIMITS, 0)
    statuses = {os.path.basename(outcome.source): outcome.status for outcome in record.outcomes}
    assert statuses == {"1.png": "failed", "2.png": "failed", "3.png": "done"}


@pytest.fixture(scope="module")
def nodes():
    pytest.importorskip("ray", reason="ray is not installed")
    with two_nodes() as made:
        yield made


@pytest.fixture(scope="module")
def address(nodes):
    return nodes[0].address


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Images in two classes, one of which is damaged."""
    folder = tmp_path_factory.mktemp("source") / "train"
    for number in range(24):
        write_png(folder / f"class{number % 2}" / f"{number:03d}.png", noise((60, 40, 3), seed=number))
    damaged = folder / "class0" / "004.png"
    damaged.write_bytes(damaged.read_bytes()[:300])
    return folder


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    return tmp_path_factory.mktemp("whole") / "shards"


@pytest.fixture
def expected(run, one_process, source, whole):
    """What an undisturbed run writes here."""
    if not whole.exists():
        assert run("convert", source, whole, *SHARDS)[0] == 1
    return contents(whole)


def test_units_and_their_report(run, address, source, expected, tmp_path):
    arguments = ("convert", source, tmp_path / "out", *SHARDS, "--ray", address, "--report", tmp_path / "report")
    code, _, err = run(*arguments)
    assert code == 1
    assert "23 converted, 1 failed" in err
    assert contents(tmp_path / "out") == expected
    assert statuses(tmp_path / "report") == {"done": 23, "failed": 1}
    code, _, err = run(*arguments)
    assert "23 kept, 1 failed" in err


def test_other_commands(run, address, source, tmp_path):
    code, _, err = run("verify", source, "--ray", address)
    assert code == 1
    assert "23 verified, 1 failed" in err
    assert "004.png" in err


def test_export(run, address, expected, whole, tmp_path, one_process):
    assert run("export", whole / "*.tar", tmp_path / "here", *SHARDS)[0] == 0
    code, _, err = run("export", whole / "*.tar", tmp_path / "there", *SHARDS, "--ray", address)
    assert (code, "23 exported, 0 failed" in err) == (0, True), err
    assert contents(tmp_path / "there") == contents(tmp_path / "here") != {}


def test_workers_are_not_for_a_cluster(run, address, source, tmp_path):
    for command in (("convert", source, tmp_path / "out"), ("verify", source)):
        code, _, err = run(*command, "--ray", address, "--workers", 2)
        assert code == 2
        assert "--workers counts processes of this machine" in err


def test_no_cluster(source, monkeypatch):
    with pytest.raises(ConversionError, match="no connection to a cluster at 127.0.0.1:1: .*refused"):
        next(run_on_cluster(str, [1], "127.0.0.1:1"))


def test_errors_and_losses_of_tasks(address, monkeypatch):
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        next(run_on_cluster(os.stat, ["/nowhere"], address))
    monkeypatch.setattr(cluster, "_TRIES_AGAIN", 0)
    ((item, result),) = run_on_cluster(os._exit, [1], address)
    assert item == 1
    assert isinstance(result, Lost)
    monkeypatch.setattr(cluster, "__version__", "0.0")
    with pytest.raises(ConversionError, match="a machine of the cluster has dali_l3"):
        next(run_on_cluster(str, [1], address))


def test_interrupted(run, address, source, expected, tmp_path):
    arguments = ("convert", source, tmp_path / "out", *SHARDS, "--ray", address)

    def interrupt():
        wait_until(lambda: records(tmp_path / "out"))
        os.kill(os.getpid(), signal.SIGTERM)  # for which Ray has an answer of its own

    with in_thread(interrupt):
        code, _, err = run(*arguments)
    assert code == 128 + signal.SIGTERM
    assert " left" in err
    assert not [*tmp_path.rglob("*.l3-partial")]
    assert run(*arguments)[0] == 1
    assert contents(tmp_path / "out") == expected


def test_a_node_is_killed(run, nodes, address, source, expected, tmp_path):
    """The last one: the cluster has a node less then."""
    arguments = ("convert", source, tmp_path / "out", *SHARDS, "--ray", address, "--report", tmp_path / "report")

    def kill():
        wait_until(lambda: is_at_work(nodes[1]))
        nodes[0].remove_node(nodes[1], allow_graceful=False)

    with in_thread(kill):
        code, _, err = run(*arguments)
    assert code == 1
    assert "23 converted, 1 failed" in err
    assert contents(tmp_path / "out") == expected
    lines = [json.loads(line)["source"] for line in (tmp_path / "report").read_text().splitlines()]
    assert sorted(lines) == sorted(map(str, source.rglob("*.png"))), "each once"


class in_thread:
    """Runs a function beside the block, and ends with it."""

    def __init__(self, function):
        self._thread = threading.Thread(target=function)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *exception):
        self._thread.join()


def records(target):
    return [*target.with_name(f"{target.name}.conversion").glob("records/*.jsonl")]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def statuses(report):
    counts = {}
    for line in report.read_text().splitlines():
        status = json.loads(line)["status"]
        counts[status] = counts.get(status, 0) + 1
    return counts
