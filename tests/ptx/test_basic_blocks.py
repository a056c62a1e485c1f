"""How a kernel is cut into basic blocks, and where diverged lanes meet."""

from __future__ import annotations

import random

import pytest
from basic_blocks import EXIT, ControlFlow, immediate_post_dominators, kind_of


def reaches_end(start: int, successors: list[list[int]], without: int) -> bool:
    end, seen, left = len(successors), {without}, [start]
    while left:
        number = left.pop()
        if number == end:
            return True
        if number not in seen:
            seen.add(number)
            left += successors[number]
    return False


def nearest_that_all_ways_pass(start: int, successors: list[list[int]]) -> int:
    """By taking blocks away: those that cut the way to the end, and of these the one that the others come behind."""
    end = len(successors)
    passed = [n for n in range(end) if n != start and not reaches_end(start, successors, without=n)]
    first = [n for n in passed if all(m == n or not reaches_end(n, successors, without=m) for m in passed)]
    return first[0] if first else end


def test_lanes_meet_where_all_ways_pass() -> None:
    for seed in range(300):
        generator = random.Random(seed)
        count = generator.randint(1, 9)
        successors = [generator.choices(range(count + 1), k=generator.randint(1, 2)) for _ in range(count)]
        meeting = immediate_post_dominators(successors)
        for number in range(count):
            if reaches_end(number, successors, without=-1):
                assert meeting[number] == nearest_that_all_ways_pass(number, successors), (seed, number)


def test_basic_blocks() -> None:
    flow = ControlFlow()
    begins = [flow.add("mov.u32", 1, None, guarded=False)]
    flow.label("loop")
    begins += [flow.add("setp.eq.u32", 2, None, guarded=False), flow.add("bra", 3, "loop", guarded=True)]
    begins += [flow.add("st.global.u32", 4, None, guarded=True), flow.add("ret", 5, EXIT, guarded=True)]
    begins.append(flow.add("bra.uni", 6, "last", guarded=False))
    flow.label("unused")
    flow.label("last")
    begins.append(flow.add("ret", 7, EXIT, guarded=False))
    assert begins == [True, True, False, True, False, True, True]
    assert [[one.line for one in block.instructions] for block in flow.blocks] == [[1], [2, 3], [4, 5], [6], [7]]
    assert flow.successors() == [[1], [2, 1], [3, 5], [4], [5]]
    assert [block.branches for block in flow.blocks] == [False, True, True, False, False]
    assert flow.meeting_points() == [1, 2, 5, 4, 5]


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("mov.u32", "move"),
        ("ld.param.u64", "move"),
        ("ld.global.nc.v4.u32", "load_store"),
        ("st.u8", "load_store"),
        ("mad.lo.s32", "fma"),
        ("dp4a.u32.u32", "fma"),
        ("shfl.sync.up.b32", "shuffle"),
        ("vote.sync.any.pred", "control"),
        ("bra.uni", "control"),
        ("add.s32", "alu"),
        ("prmt.b32", "alu"),
        ("cvt.rn.f32.u32", "alu"),
    ],
)
def test_kinds(opcode: str, kind: str) -> None:
    assert kind_of(opcode) == kind
