"""The machine code that ptxas makes of PTX: which units its instructions need, and how often they are executed.

How often the lines of the PTX are executed is known (tests/ptx/counts.h), and the disassembly says of which line each
machine instruction is. All instructions of a basic block of machine code are executed equally often, so what most of
them say counts for all: a few have been moved there from other blocks. Needs nvcc and nvdisasm (the PyPI package
nvidia-cuda-nvdisasm has it).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

UNITS = {
    "FMA": {"IMAD", "IDP", "FFMA", "FADD", "FMUL", "HFMA2", "HADD2", "HMUL2"},
    "shuffle": {"SHFL"},
    "memory": {"LDG", "LD", "STG", "ST", "LDS", "STS", "LDC", "LDL", "STL"},
    "control": {"BRA", "BSSY", "BSYNC", "EXIT", "NOP", "WARPSYNC", "CALL", "RET", "BAR", "VOTE", "S2R", "S2UR", "CS2R"},
    "uniform": {"R2UR", "REDUX"},
    "ALU": set(),  # all others: integer arithmetic and logic
}


@dataclass(frozen=True)
class Instruction:
    operation: str  # such as "SHFL.UP"
    line: int  # of the PTX

    @property
    def name(self) -> str:
        return self.operation.partition(".")[0]

    @property
    def unit(self) -> str:
        """The unit that executes it, of UNITS."""
        if self.name.startswith("U"):
            return "uniform"
        return next((unit for unit, names in UNITS.items() if self.name in names), "ALU")


Blocks = list[list[Instruction]]


def compile_ptx(nvcc: str, nvdisasm: str, ptx: Path, architecture: str) -> tuple[dict[str, Blocks], str]:
    """The basic blocks of all kernels in a PTX file, by symbol, compiled for an architecture such as "90", and what the
    compiler reports of them."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernels.ptx", Path(folder) / "kernels.cubin"
        text = re.sub(r"(?m)^\.target sm_\w+", f".target sm_{architecture}", ptx.read_text(encoding="utf-8"))
        source.write_text(text, encoding="utf-8")
        command = [nvcc, "-cubin", "-lineinfo", "-Xptxas", "-v", f"-arch=sm_{architecture}", source, "-o", cubin]
        report = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr
        code = subprocess.run([nvdisasm, "-c", "-gp", cubin], check=True, capture_output=True, text=True).stdout
    sections = re.split(r"(?m)^\.text\.", code)[1:]
    return {section[: section.index(":")]: basic_blocks(section) for section in sections}, report


def basic_blocks(disassembly: str) -> Blocks:
    blocks: Blocks = [[]]
    number = 0
    for line in disassembly.splitlines():
        if re.match(r"\.L_x_\w+:", line):
            blocks.append([])
        elif place := re.search(r'File "\.nv_debug_ptx_txt", line (\d+)', line):
            number = int(place[1])
        elif parts := re.search(r"\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)[^;]*;", line):
            blocks[-1].append(Instruction(parts[1], number))
            if blocks[-1][-1].name in ("BRA", "EXIT"):
                blocks.append([])
    # What fills up the section is never executed: a branch to itself, and instructions that do nothing.
    while blocks and all(instruction.name in ("NOP", "BRA") for instruction in blocks[-1]):
        blocks.pop()
    return [block for block in blocks if block]


@dataclass(frozen=True)
class Executed:
    """Of a machine instruction: by how many warps, and by how many lanes of them."""

    instruction: Instruction
    warps: int
    lanes: int


def executed(blocks: Blocks, lines: dict[int, tuple[int, int]]) -> list[Executed]:
    """How often each instruction is executed. `lines`: how often warps and lanes execute the lines of the PTX."""
    result = []
    for block in blocks:
        votes = Counter(lines[instruction.line] for instruction in block if instruction.line in lines)
        if votes:
            warps, lanes = max(votes, key=lambda times: (votes[times], times))
            result += [Executed(instruction, warps, lanes) for instruction in block]
    return result
