"""The machine code that ptxas makes of PTX: which units its instructions need, and how often they are executed.

How often basic blocks of the PTX are executed is known (tests/ptx/counts.h), and the disassembly says of which line
each machine instruction is. Where ptxas has made copies of a block, as when it unrolls a loop, each copy gets its part.
All instructions of a basic block of machine code are executed equally often, so what most of them say counts for all: a
few have been moved there from other blocks. Needs nvcc and nvdisasm (the PyPI package nvidia-cuda-nvdisasm has it).
"""

from __future__ import annotations

import re
import statistics
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

    @property
    def accesses(self) -> bool:
        """Whether it is a load, a store or a shuffle, which ptxas makes of one of the PTX."""
        return self.unit in ("memory", "shuffle") and self.name != "LDC"


@dataclass(frozen=True)
class Kernel:
    """A kernel's machine code, as basic blocks, and how many loads, stores and shuffles the lines of its PTX have."""

    blocks: list[list[Instruction]]
    accesses: Counter[int]


def compile_ptx(nvcc: str, nvdisasm: str, ptx: Path, architecture: str) -> tuple[dict[str, Kernel], str]:
    """All kernels in a PTX file, by symbol, compiled for an architecture such as "90"; what the compiler reports."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernels.ptx", Path(folder) / "kernels.cubin"
        text = re.sub(r"(?m)^\.target sm_\w+", f".target sm_{architecture}", ptx.read_text(encoding="utf-8"))
        source.write_text(text, encoding="utf-8")
        command = [nvcc, "-cubin", "-lineinfo", "-Xptxas", "-v", f"-arch=sm_{architecture}", source, "-o", cubin]
        report = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr
        code = subprocess.run([nvdisasm, "-c", "-gp", cubin], check=True, capture_output=True, text=True).stdout
    sections = re.split(r"(?m)^\.text\.", code)[1:]
    lines = enumerate(text.splitlines(), 1)
    accesses = Counter({number: len(re.findall(r"\b(?:ld|st|shfl)\.(?!param)", line)) for number, line in lines})
    return {section[: section.index(":")]: Kernel(basic_blocks(section), accesses) for section in sections}, report


def basic_blocks(disassembly: str) -> list[list[Instruction]]:
    blocks: list[list[Instruction]] = [[]]
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
    warps: float
    lanes: float


def executed(kernel: Kernel, ptx_blocks: list[dict]) -> list[Executed]:
    """How often each instruction is executed. ptx_blocks: "warps" and "lanes" that come to them, and their "lines"."""
    times: dict[int, tuple[float, float]] = {}
    copies_of = Copies(kernel)
    for block in ptx_blocks:
        copies = copies_of.block(block["lines"])
        times |= dict.fromkeys(block["lines"], (block["warps"] / copies, block["lanes"] / copies))
    result = []
    for instructions in kernel.blocks:
        votes = Counter(times[instruction.line] for instruction in instructions if instruction.line in times)
        if votes:
            warps, lanes = max(votes, key=lambda pair: (votes[pair], pair))
            result += [Executed(instruction, warps, lanes) for instruction in instructions]
    return result


class Copies:
    """How many copies of a basic block of the PTX the machine code has."""

    def __init__(self, kernel: Kernel) -> None:
        self._ptx = kernel.accesses
        self._machine = Counter(one.line for block in kernel.blocks for one in block if one.accesses)
        self._blocks = Counter(line for block in kernel.blocks for line in {one.line for one in block})

    def block(self, lines: list[int]) -> float:
        """As many as most of its loads, stores and shuffles have counterparts; where there are none, as basic blocks
        have something of most of its lines."""
        copies = [self._machine[line] / self._ptx[line] for line in lines if self._ptx[line] and self._machine[line]]
        copies = copies or [self._blocks[line] for line in lines if self._blocks[line]]
        return statistics.median(copies) if copies else 1
