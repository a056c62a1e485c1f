"""The command that measures the GPU decoder goes on where a part fails, and keeps what the others measured.

No GPU is needed: the program that the command builds is replaced by one that only pretends.
"""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"

PROGRAM = f"""#!{sys.executable}
import json, os, sys, time

def line(what, **figures):
    print(json.dumps({{"what": what, **figures}}), flush=True)

part, *arguments = sys.argv[1:]
if part == "device":
    line("device", card="Some GPU", cuda_runtime=13000)
elif part == "check":
    line("check", images=7)
elif part == "copies":
    line("device copy", seconds=1, bytes_per_s=100)
elif part == "decode":
    folder, profile = arguments
    line("kernel", size=os.path.basename(folder), profile=profile, batch=32, bytes_in=20, bytes_out=40, seconds=1)
    if profile == "raw":
        print("gpu_decode: 3 bytes differ from the CPU's", file=sys.stderr)
        sys.exit(1)
elif part == "published":
    time.sleep(60)
"""


@pytest.fixture
def benchmark(monkeypatch, tmp_path):
    """benchmarks/gpu_decode.py, with another program, and neither card nor optional packages."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu_decode

    program = tmp_path / "program"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(gpu_decode, "prepare", lambda work, nvcomp: (program, False))
    monkeypatch.setattr(gpu_decode, "query_card", lambda field: "580.0")
    monkeypatch.setattr(gpu_decode, "importable", lambda name: False)
    monkeypatch.setattr(gpu_decode.shutil, "which", lambda name: None)
    run_part = gpu_decode.run_part
    monkeypatch.setattr(  # only what hangs is stopped, however slow this machine is
        gpu_decode, "run_part", lambda part, seconds: run_part(part, 1 if "published" in part.name else seconds)
    )
    return gpu_decode


def run(benchmark, monkeypatch, folder, *arguments):
    """The results file, and the message with which the command fails, if it does."""
    monkeypatch.setattr(sys, "argv", ["gpu_decode.py", "--work", str(folder), "--out", str(folder), *arguments])
    message = ""
    try:
        benchmark.main()
    except SystemExit as error:
        message = str(error)
    return json.loads((folder / "gpu_decode-some-gpu.json").read_text(encoding="utf-8")), message


def test_failing_and_hanging_parts_leave_the_others_alone(benchmark, monkeypatch, tmp_path):
    monkeypatch.setattr(benchmark.make_images, "SIZES", {"HD": (720, 1280), "FHD": (1080, 1920)})
    results, message = run(benchmark, monkeypatch, tmp_path)
    records = results["records"]
    assert [r["part"] for r in records if r["what"] == "failure"] == [
        part for size in ("FHD", "HD") for part in (f"{size}, raw", f"{size}, published mapping")
    ]
    reasons = {r["part"]: r["reason"] for r in records if r["what"] == "failure"}
    assert reasons["FHD, raw"] == "gpu_decode: 3 bytes differ from the CPU's"
    assert reasons["FHD, published mapping"] == "stopped after 1 s"
    assert "FHD, raw" in message
    assert records[1] == {"what": "check", "images": 7}  # before anything is measured
    kernels = [(r["size"], r["profile"]) for r in records if r["what"] == "kernel"]
    assert kernels == [(size, profile) for size in ("FHD", "HD") for profile in ("fast", "raw", "paper")]
    left_out = {r["part"] for r in records if r["what"] == "left out"}
    assert {"FHD, DALI", "FHD, PNG on the CPU", "FHD, nvCOMP", "check under memcheck"} <= left_out
    (target,) = results["targets"]
    assert target["measured"] == pytest.approx(0.6)
    assert target["met"]


def test_no_part_begins_after_the_time_is_over(benchmark, monkeypatch, tmp_path):
    results, message = run(benchmark, monkeypatch, tmp_path, "--minutes", "0")
    assert message == ""
    records = results["records"]
    assert {r["what"] for r in records} == {"device", "left out"}
    assert {"check", "copies", "UHD, fast"} <= {r["part"] for r in records if r["what"] == "left out"}
