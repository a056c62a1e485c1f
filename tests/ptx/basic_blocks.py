"""What counting needs to know of a kernel: its basic blocks, the kinds of instructions, where diverged lanes meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

# Of opcodes, by Kind of counts.h.
PREFIXES = {
    "move": ("mov.", "cvta.", "ld.param."),
    "fma": ("mul.", "mad.", "fma.", "dp2a.", "dp4a.", "add.rn.f32", "add.f64"),
    "load_store": ("ld.", "st."),
    "shuffle": ("shfl.",),
    "control": ("bra", "ret", "bar.", "vote."),
}


def kind_of(opcode: str) -> str:
    """By the unit that executes it; what is not listed is integer arithmetic or logic."""
    return next((kind for kind, prefixes in PREFIXES.items() if opcode.startswith(prefixes)), "alu")


@dataclass(frozen=True)
class Instruction:
    opcode: str
    line: int


@dataclass
class BasicBlock:
    """Instructions that are executed one after the other. Successors by number; the kernel's end comes after all."""

    instructions: list[Instruction] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    target: str | None = None  # a label, or EXIT
    falls_through: bool = True

    @property
    def branches(self) -> bool:
        return self.falls_through and self.target is not None


EXIT = "%exit"  # no label of PTX


class ControlFlow:
    """Takes a kernel's statements in order, and cuts them into basic blocks."""

    def __init__(self) -> None:
        self.blocks: list[BasicBlock] = []
        self._open = False  # whether the last block may take another instruction

    def label(self, name: str) -> None:
        if not self._open or self.blocks[-1].instructions:
            self._begin()
        self.blocks[-1].labels.append(name)

    def add(self, opcode: str, line: int, target: str | None, guarded: bool) -> bool:
        """Whether a basic block begins with it. `target` is a label, EXIT, or None for all but branches."""
        if not self._open:
            self._begin()
        block = self.blocks[-1]
        block.instructions.append(Instruction(opcode, line))
        if target:
            block.target, block.falls_through, self._open = target, guarded, False
        return len(block.instructions) == 1

    def _begin(self) -> None:
        self.blocks.append(BasicBlock())
        self._open = True

    def successors(self) -> list[list[int]]:
        """Of each block, the one behind it first; len(blocks) is the kernel's end."""
        numbers = {label: number for number, block in enumerate(self.blocks) for label in block.labels}
        numbers[EXIT] = len(self.blocks)
        return [
            [number + 1] * block.falls_through + ([numbers[block.target]] if block.target else [])
            for number, block in enumerate(self.blocks)
        ]

    def meeting_points(self) -> list[int]:
        """For each block the first that all ways from it to the end pass: its immediate post-dominator."""
        return immediate_post_dominators(self.successors())


def immediate_post_dominators(successors: list[list[int]]) -> list[int]:
    """Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, on the graph with its edges turned round."""
    end = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(end + 1)]
    for number, following in enumerate(successors):
        for successor in following:
            predecessors[successor].append(number)
    order = list(_postorder(end, predecessors))
    rank = {number: place for place, number in enumerate(order)}
    dominator: dict[int, int] = {end: end}

    def common(a: int, b: int) -> int:
        while a != b:
            if rank[a] < rank[b]:
                a = dominator[a]
            else:
                b = dominator[b]
        return a

    changed = True
    while changed:
        changed = False
        for number in reversed(order[:-1]):
            known = [successor for successor in successors[number] if successor in dominator]
            new = known[0]
            for successor in known[1:]:
                new = common(new, successor)
            changed |= dominator.get(number) != new
            dominator[number] = new
    return [dominator.get(number, end) for number in range(end)]  # from an endless loop nothing leads to the end


def _postorder(start: int, following: list[list[int]]) -> Iterator[int]:
    seen = {start}
    stack = [(start, iter(following[start]))]
    while stack:
        number, rest = stack[-1]
        successor = next((s for s in rest if s not in seen), None)
        if successor is None:
            stack.pop()
            yield number
        else:
            seen.add(successor)
            stack.append((successor, iter(following[successor])))
