"""compute-sanitizer finds nothing wrong with the kernels on a small set of images."""

import shutil
import subprocess
import sys

import pytest

from devices import needs_gpu, needs_plugin

PROGRAM = """
import numpy as np
import dali_l3
from nvidia.dali import fn, pipeline_def, types

generator = np.random.default_rng(0)
files = [
    np.frombuffer(dali_l3.encode(generator.integers(0, 200, (70, 131, channels), dtype), profile=profile), np.uint8)
    for profile in ("raw", "paper", "fast")
    for dtype in (np.uint8, np.uint16)
    for channels in (1, 2, 3, 4)
]

@pipeline_def(batch_size=len(files), num_threads=2, device_id=0)
def pipeline():
    encoded = fn.external_source(source=lambda: files, batch=True)
    kept = fn.decoders.l3(encoded, device="mixed", output_type=types.ANY_DATA, dtype=types.UINT16)
    return kept, fn.decoders.l3(encoded, device="mixed", crop=(33, 77))

pipe = pipeline()
for _ in range(2):
    for output in pipe.run():
        output.as_cpu()
"""


@needs_plugin
@needs_gpu
@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="there is no compute-sanitizer")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_nothing_is_found(tool):
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "99", "--kernel-regex", "kns=decode_"]
    result = subprocess.run([*command, sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
