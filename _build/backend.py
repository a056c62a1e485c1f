"""PEP 517 build backend: scikit-build-core, and the build requirements that pyproject.toml cannot express.

The package is built for the DALI that is installed, and only where there is none the newest comes with the build; and
where there is no CUDA toolkit, NVIDIA's wheels bring one. Run as a script, this prints all build requirements, for
`pip install --no-build-isolation`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from scikit_build_core import build as scikit_build
from scikit_build_core.build import *  # noqa: F403  (the hooks that are not redefined below)

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where scikit-build-core brings tomli
    import tomli as tomllib

PYPROJECT = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text(encoding="utf-8"))

CUDA_TOOLKIT = [f"nvidia-{part}==13.0.*" for part in ("cuda-nvcc", "nvvm", "cuda-crt", "cuda-runtime", "cuda-cccl")]


def has_nvcc() -> bool:
    """Whether there is a CUDA toolkit in one of the places where CMake looks for it."""
    toolkits = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    candidates = ["nvcc", os.environ.get("CUDACXX"), *(f"{toolkit}/bin/nvcc" for toolkit in toolkits if toolkit)]
    return any(candidate and shutil.which(candidate) for candidate in candidates)


def has_dali() -> bool:
    """Whether the environment that the package is for has DALI: the interpreter's, not that of an isolated build."""
    program = "from importlib.util import find_spec; find_spec('nvidia.dali').origin"
    return subprocess.run([sys.executable, "-I", "-c", program], capture_output=True).returncode == 0


def extra_requirements() -> list[str]:
    newest = PYPROJECT["tool"]["dali-l3"]["dali"][-1]
    dali = [] if has_dali() else [f"nvidia-dali-cuda120=={newest}"]
    return dali + ([] if has_nvcc() else CUDA_TOOLKIT)


def get_requires_for_build_wheel(config_settings=None):
    return scikit_build.get_requires_for_build_wheel(config_settings) + extra_requirements()


def get_requires_for_build_editable(config_settings=None):
    return scikit_build.get_requires_for_build_editable(config_settings) + extra_requirements()


if __name__ == "__main__":
    print(*PYPROJECT["build-system"]["requires"], *get_requires_for_build_editable(), sep="\n")
