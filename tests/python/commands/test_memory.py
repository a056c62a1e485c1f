"""How much memory it takes to convert an image, beside its pixels."""

from __future__ import annotations

import io
import subprocess
import sys

import imagecodecs
import numpy as np
import pytest
import tifffile

import dali_l3
from image_files import noise

CONVERT = """
import sys
from dali_l3.conversion.converting import convert_file
from dali_l3.conversion.exporting import export_file
from dali_l3.jobs.outcomes import Task

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # sets the peak back
before = peak()
function, *task = sys.argv[1:]
outcome = globals()[function](Task(*task))
assert outcome.status == "done", outcome.reason
print(peak() - before)
"""


def npy(pixels):
    file = io.BytesIO()
    np.save(file, pixels)
    return file.getvalue()


def tiff(pixels, **options):
    file = io.BytesIO()
    tifffile.imwrite(file, pixels, photometric="rgb", **options)
    return file.getvalue()


SOURCES = {
    "PNG": lambda pixels: imagecodecs.png_encode(pixels, level=1),
    "NPY": npy,
    "BMP": imagecodecs.bmp_encode,
    "TIFF": tiff,
    "TIFF, Deflate": lambda pixels: tiff(pixels, compression="adobe_deflate", rowsperstrip=64),
    "JPEG": lambda pixels: imagecodecs.jpeg8_encode(pixels, level=95),
    "L3": dali_l3.encode,
}


@pytest.mark.parametrize(
    ("source", "format", "times"),
    [(name, "l3-fast", 2) for name in SOURCES if name != "L3"]
    + [("BMP", "tiff", 2), ("BMP", "bmp", 2), ("BMP", "png", 3), ("L3", "png", 3)],
)
def test_memory_grows_with_the_pixels_no_more_than_promised(source, format, times, tmp_path):
    """From one size of incompressible image to another, so that what does not depend on it does not count."""
    peaks, sizes = [], []
    for side in (2000, 3200):
        pixels = noise((side, side, 3))
        (tmp_path / "source").write_bytes(SOURCES[source](pixels))
        function = "export_file" if source == "L3" else "convert_file"
        command = [sys.executable, "-c", CONVERT, function, str(tmp_path / "source"), str(tmp_path / "target"), format]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
        peaks.append(int(result.stdout) * 1024)
        sizes.append(pixels.nbytes)
    assert (peaks[1] - peaks[0]) / (sizes[1] - sizes[0]) < times + 0.15
