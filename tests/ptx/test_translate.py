"""What the translator refuses, and how it names it; what it takes for the same code."""

from __future__ import annotations

import pytest
from translate import PtxError, translate

HEAD = ".version 9.0\n.target {target}\n.address_size 64\n"
KERNEL = (
    ".visible .entry kernel(.param .u64 p)\n{{\n.reg .pred %p0; .reg .b32 %r<3>; .reg .b64 %rd0;\n{code}\nret;\n}}\n"
)


def ptx(code: str, target: str = "sm_75") -> str:
    return HEAD.format(target=target) + KERNEL.format(code=code)


UNKNOWN = {
    "mul.hi.u32 %r0, %r1, %r2;": "instruction mul.hi.u32",
    "add.sat.s32 %r0, %r1, %r2;": "instruction add.sat.s32",
    "add.cc.u32 %r0, %r1, %r2;": "instruction add.cc.u32",
    "fence.acq_rel.gpu;": "instruction fence.acq_rel.gpu",
    "ld.global.L1::no_allocate.u32 %r0, [%rd0];": "instruction ld.global.L1::no_allocate.u32",
    "ld.volatile.global.u32 %r0, [%rd0];": "instruction ld.volatile.global.u32",
    "atom.global.add.u32 %r0, [%rd0], 1;": "instruction atom.global.add.u32",
    "bar.sync 1;": "instruction bar.sync 1",
    "bar.sync 0, 64;": "instruction bar.sync 0, 64",
    "vote.sync.ballot.b32 %r0, %p0, -1;": "instruction vote.sync.ballot.b32",
    "setp.lt.and.u32 %p0, %r0, %r1, %p0;": "instruction setp.lt.and.u32",
    "mov.u32 %r0, %tid.y;": "operand '%tid.y'",
    "mov.u32 %r0, %clock;": "operand '%clock'",
    "mov.u32 %r0, %r7;": "operand '%r7'",
    "mov.u64 %rd0, %r0;": "register %r0 as .u64",
    "add.s32 %rd1, %r0, %r1;": "register %rd1 as .s32",
    "add.s32 %r0, %r1;": "instruction add.s32 with 2 operands",
    ".local .b8 stack[16];": "statement",
    "@%p0 call f;": "instruction call",
}


@pytest.mark.parametrize("code", UNKNOWN)
def test_what_is_unknown_is_named(code: str) -> None:
    with pytest.raises(PtxError) as caught:
        translate([ptx(code)])
    assert UNKNOWN[code] in str(caught.value)


def test_equal_code_is_translated_once() -> None:
    code = translate([ptx("", "sm_75"), ptx("", "sm_90")])
    assert code.count("Registration") == 1
    assert '{"sm_75", "sm_90"}' in code


def test_different_code_is_translated_for_each() -> None:
    code = translate([ptx("", "sm_75"), ptx("mov.u32 %r0, 1;", "sm_90")])
    assert code.count("Registration") == 2
