"""The programs on pages of the guide run: all Python blocks of a page, one after the other."""

import re
from pathlib import Path

import numpy as np
import pytest

import dali_l3

DOCS = Path(__file__).parents[3] / "docs"
NEEDS = ("imageio", "nvidia.dali", "torch")


@pytest.mark.parametrize("page", ["python.md", "sixteen-bit.md"])
def test_blocks_run(page, tmp_path, run_python):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 3
    for name in ("cats", "dogs"):
        (tmp_path / "train" / name).mkdir(parents=True)
        dali_l3.imwrite(tmp_path / "train" / name / "1.l3", np.zeros((300, 400, 3), np.uint8))
    missing = [name for name in NEEDS if not is_installed(name)]
    program = [block for block in blocks if not any(re.search(rf"(from|import) {name}\b", block) for name in missing)]
    run_python("\n".join(program))
    if len(program) < len(blocks):
        pytest.skip(f"some blocks need {', '.join(missing)}")


def is_installed(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True
