"""The GPU decoder's model: counts of machine code, and what follows from them, against sums done by hand."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from gpu import machine_code, model

# A loop whose body, lines 11 and 12 of the PTX, ptxas has unrolled: three copies, and one for what is left over.
DISASSEMBLY = """kernel:
.text.kernel:
\t//## File ".nv_debug_ptx_txt", line 10
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
        /*0010*/                   ISETP.NE.AND P0, PT, R1, RZ, PT ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
.L_x_1:
\t//## File ".nv_debug_ptx_txt", line 11
        /*0030*/                   LDG.E R2, [R4.64] ;
        /*0040*/                   LDG.E R3, [R4.64+0x4] ;
        /*0050*/                   LDG.E R5, [R4.64+0x8] ;
\t//## File ".nv_debug_ptx_txt", line 12
        /*0060*/                   IADD3 R6, R2, R3, R5 ;
\t//## File ".nv_debug_ptx_txt", line 13
        /*0070*/                   SHF.L.U32 R7, R6, 0x1, RZ ;
\t//## File ".nv_debug_ptx_txt", line 12
        /*0080*/               @P1 BRA `(.L_x_1) ;
.L_x_2:
\t//## File ".nv_debug_ptx_txt", line 11
        /*0090*/                   LDG.E R2, [R4.64] ;
\t//## File ".nv_debug_ptx_txt", line 12
        /*00a0*/                   IADD3 R6, R2, R6, RZ ;
\t//## File ".nv_debug_ptx_txt", line 13
        /*00b0*/                   EXIT ;
.L_x_3:
        /*00c0*/                   BRA `(.L_x_3);
        /*00d0*/                   NOP;
"""
PTX_BLOCKS = [
    {"lines": [10], "warps": 4, "lanes": 100},
    {"lines": [11, 12], "warps": 80, "lanes": 2400},
    {"lines": [13], "warps": 4, "lanes": 100},
]


def test_machine_code():
    blocks = machine_code.basic_blocks(DISASSEMBLY)
    assert [[one.name for one in block] for block in blocks] == [
        ["IMAD", "ISETP", "BRA"],
        ["LDG", "LDG", "LDG", "IADD3", "SHF", "BRA"],
        ["LDG", "IADD3", "EXIT"],
    ]
    kernel = machine_code.Kernel(blocks, Counter({11: 1}))
    executed = machine_code.executed(kernel, PTX_BLOCKS)
    by_name = Counter()
    for one in executed:
        by_name[one.instruction.name] += one.warps
    # Each copy of the body is executed 20 times, and so is the shift, which was moved there from line 13.
    assert by_name == {"IMAD": 4, "ISETP": 4, "BRA": 4 + 20, "LDG": 4 * 20, "IADD3": 2 * 20, "SHF": 20, "EXIT": 20}
    assert sum(one.lanes for one in executed if one.instruction.name == "LDG") == 2400


@pytest.mark.parametrize(
    ("operation", "unit"),
    [
        ("IMAD.WIDE.U32", "FMA"),
        ("SHFL.UP", "shuffle"),
        ("LDS.128", "memory"),
        ("UIADD3", "uniform"),
        ("LOP3.LUT", "ALU"),
    ],
)
def test_units(operation, unit):
    assert machine_code.Instruction(operation, 1).unit == unit


def counted(kernel: str, tiles: int, **units: int) -> dict:
    """A kernel that writes 1000 bytes, with 64 blocks of 128 threads."""
    warps = {unit: {"warps": units.get(unit, 0), "lanes": 32 * units.get(unit, 0)} for unit in machine_code.UNITS}
    return {
        "kernel": kernel,
        "launched": {"tiles": tiles, "blocks": 64, "threads": 128},
        "machine": {"90": warps},
        "resources": {"90": {"registers": 70, "shared": 9000}},
        "read": {"lines": 40},
        "written": {"lines": 8, "bytes": 1000},
        "shared": {"wavefronts": 100},
    }


CARD = model.Card("card", "90", multiprocessors=10, clock=2.0, bandwidth=1000, shared=100 << 10, share_wanted=0.5)


def test_prediction():
    images = {"images": 4, "file_bytes": 250, "kernels": [counted("decode_fast8<3>", 5, ALU=300, FMA=100, shuffle=20)]}
    assert model.cycles(images["kernels"][0], "90") == {"issue": 420, "ALU": 600, "FMA": 200, "memory": 4 * 168}
    assert model.slots_a_byte(images) == pytest.approx(32 * 420 / 1000)
    assert model.blocks_that_fit(CARD, images["kernels"][0]) == 7  # by registers: 72 for each of 128 threads
    prediction = model.predict(CARD, images, batch=8)
    assert prediction.unit == "memory"
    assert prediction.arithmetic == pytest.approx(1000 / 672 * 10 * 4 * 2)
    assert prediction.memory == pytest.approx(900 / 1.25)
    # Twice the images are 128 blocks, of which 70 run at once, for as long as a warp alone takes.
    alone = 420 / (64 * 4) * model.ALONE_PER_INSTRUCTION + model.ALONE_WAITS
    assert prediction.at_rest == pytest.approx(2 * 1000 / (128 / 70 * alone) * 2)
    assert prediction.expected == prediction.at_rest
    assert prediction.share == pytest.approx(prediction.at_rest / prediction.memory)


def test_targets():
    def images(kernel: str, tiles: int, instructions: int, **facts) -> dict:
        kernels = [counted(kernel, tiles, ALU=instructions)]
        kernels[0]["machine"]["80"] = kernels[0]["machine"]["90"]
        kernels[0]["resources"]["80"] = kernels[0]["resources"]["90"]
        return {"images": 1, "file_bytes": 1, "profile": "fast", "converts": False, "kernels": kernels, **facts}

    sets = {
        "photographs": images("decode_fast8<3>", 30, 100),
        "16-bit gray": images("decode_general<unsigned short>", 10, 120),
        "16-bit RGB": images("decode_fast8<3>", 0, 140),
        "labels of pixels": images("decode_fast8<1>", 0, 90),
        "binary masks": images("decode_fast8<1>", 0, 50),
        "224x224": images("decode_fast8<3>", 0, 130),
        "photographs to gray": images("decode_general<unsigned char>", 99, 1, converts=True),
        "photographs, paper": images("decode_general<unsigned char>", 99, 1, profile="paper"),
    }
    *shares, deep, labels, small, general = model.targets(sets)
    assert len(shares) == len(model.CARDS)
    assert [deep.measured, labels.measured, small.measured, general.measured] == pytest.approx([1.4, 0.9, 1.3, 0.25])
    assert [deep.met, labels.met, small.met, general.met] == [False, True, True, False]
