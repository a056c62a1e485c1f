"""The environment of a process that reads from a slow and even disk, see pacer.c."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("pacer.c")


def paced(bytes_per_s: int, folder: Path) -> dict[str, str]:
    """Builds the pacer in the folder; the environment variables that a process needs for it.

    Raises:
        SystemExit: There is no C compiler, or it fails.
    """
    library = folder / "pacer.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{SOURCE}: cannot be compiled, which takes a C compiler: {error}") from error
    return {"LD_PRELOAD": str(library.resolve()), "PACER_BYTES_PER_S": str(bytes_per_s)}
