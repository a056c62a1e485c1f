"""What workers may take, and what becomes of those that take more."""

from __future__ import annotations

import pytest

import worker_functions
from dali_l3.errors import TargetError
from dali_l3.jobs.outcomes import Task
from dali_l3.jobs.planning import Plan
from dali_l3.jobs.running import run_plan
from dali_l3.jobs.workers import Limits, run_tasks
from dali_l3.memory import available_memory, total_memory

WORKER = 128 << 20  # bytes that every worker may take


def outcomes_of(*sources, target=None, **limits):
    tasks = [Task(source, target) for source in sources]
    outcomes = list(run_tasks(worker_functions.run, tasks, 2, limits=Limits(**limits)))
    assert sorted(outcome.source for outcome in outcomes) == sorted(sources)
    return {outcome.source: outcome for outcome in outcomes}


@pytest.mark.parametrize("source", ["endless", "stuck"])
def test_a_file_that_takes_too_long_is_given_up_and_its_worker_replaced(source):
    outcomes = outcomes_of(source, f"{source} too", "slow 1", "slow 2", "slow 3", timeout=1.5)
    for name in (source, f"{source} too"):
        assert (outcomes[name].status, outcomes[name].reason) == (
            "failed",
            "gave up after 1.5 s; use --timeout to allow more",
        )
    assert all(outcomes[f"slow {number}"].status == "done" for number in (1, 2, 3))


def test_the_time_that_a_storage_takes_is_none_of_the_file():
    outcomes = outcomes_of("far away", "far away and endless", timeout=1)
    assert outcomes["far away"].status == "done"
    assert outcomes["far away and endless"].reason.startswith("gave up after 1 s")


def test_a_file_that_takes_more_memory_than_its_pixels_explain_is_given_up():
    outcomes = outcomes_of("greedy", "slow 1", "slow 2")
    assert outcomes["greedy"].status == "failed"
    assert outcomes["greedy"].reason.startswith("gave up: took ")
    assert outcomes["greedy"].reason.endswith(" MB of memory, more than its pixels need")
    assert outcomes["slow 1"].status == outcomes["slow 2"].status == "done"


def test_images_wait_until_they_fit_into_memory_beside_the_others(tmp_path):
    """Each needs 200 MiB, and fails if another one is at work."""
    sources = [f"large {number}" for number in range(6)]
    outcomes = outcomes_of(*sources, target=str(tmp_path / "busy"), memory=2 * WORKER + (300 << 20))
    assert {outcome.status for outcome in outcomes.values()} == {"done"}
    outcomes = outcomes_of("large", target=str(tmp_path / "busy"), memory=1)
    assert outcomes["large"].status == "done", "one alone is not kept waiting"


def test_a_stopped_run_waits_only_for_a_while():
    done = []
    tasks = [Task("slow 1"), Task("endless 1"), Task("endless 2"), Task("slow 2")]
    for outcome in run_tasks(worker_functions.run, tasks, 2, stopped=lambda: bool(done), limits=Limits(grace=0.5)):
        done.append(outcome.source)
    assert done == ["slow 1"]


def test_targets_that_cannot_be_written_stop_the_run(tmp_path):
    plan = Plan([Task(f"unwritable {number}", str(tmp_path / f"{number}.l3")) for number in range(50)])
    outcomes = []
    with pytest.raises(TargetError) as caught:
        outcomes.extend(run_plan(plan, worker_functions.run, 2))
    assert 3 <= len(outcomes) <= 5, "and those at hand"
    assert outcomes[0].reason.startswith(f"cannot write {tmp_path}/")
    assert caught.value.filename == str(tmp_path)
    assert "No space left on device: the run was stopped after" in caught.value.strerror
    assert "free some space and run it again" in caught.value.strerror


def test_memory_is_limited_by_control_groups(tmp_path):
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    for path, text in {
        proc / "meminfo": "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n",
        proc / "self" / "cgroup": "0::/job\n",
        groups / "job" / "memory.max": "5000000\n",
        groups / "job" / "memory.current": "4000000\n",
        groups / "job" / "memory.stat": "anon 1\ninactive_file 500000\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert available_memory(str(proc), str(groups)) == 1_500_000
    assert total_memory(str(proc), str(groups)) == 5_000_000
    (groups / "job" / "memory.max").write_text("max\n")
    assert total_memory(str(proc), str(groups)) == 9000 * 1024
    assert available_memory(str(proc), str(groups)) == 8000 * 1024
