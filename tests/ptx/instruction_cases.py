"""Writes a kernel for every instruction that translate.py knows, inputs for it, and what must come out.

    python tests/ptx/instruction_cases.py OUT.ptx OUT.txt

The results are computed here in plain integers, after the PTX ISA, without a look at the translator.
instruction_test.cc runs the kernels. OUT.txt has a line for each kernel, "kernel NAME INSTRUCTION", and after it one
for each of its threads: 32 bytes of input and 32 bytes that the kernel must write, in hexadecimal. Bytes "..": it
writes none there.
"""

from __future__ import annotations

import random
import struct
import sys
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from math import copysign
from pathlib import Path

from translate import BITS, MEMORY, OTHERS, PARAMETERS, SHUFFLES, VALUES, VOTES

THREADS = 128
SLOT = 8  # bytes of an operand
IN, OUT = 32, 32  # bytes of a thread


# ---- What instructions mean. Operands and results are bit patterns, as integers that are not negative.


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def number(value: int, ptx_type: str) -> int:
    """The integer that the low bits of a register are as a type."""
    value &= (1 << BITS[ptx_type]) - 1
    return signed(value, BITS[ptx_type]) if ptx_type[0] == "s" else value


def float_of(value: int, ptx_type: str) -> float:
    bits = BITS[ptx_type]
    return struct.unpack("<f" if bits == 32 else "<d", (value & (1 << bits) - 1).to_bytes(bits // 8, "little"))[0]


def bits_of(value: float, ptx_type: str) -> int:
    # Packing rounds to nearest even. Sums and products of two floats are rounded once to double before, which is
    # harmless: a double has more than twice a float's digits.
    try:
        return int.from_bytes(struct.pack("<f" if ptx_type == "f32" else "<d", value), "little")
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def nearest_float(value: int) -> int:
    """The bits of the float that is nearest to an integer, of two as near the even one."""
    below = struct.unpack("<I", struct.pack("<f", float(Fraction(abs(value)))))[0]
    candidates = [max(0, below - 1), below, below + 1]
    distance = lambda bits: (abs(Fraction(float_of(bits, "f32")) - abs(value)), bits & 1)  # noqa: E731
    return min(candidates, key=distance) | (0x80000000 if value < 0 else 0)


# The half-precision numbers that are finite and not negative, in the order of their bits.
HALVES = [n / 2**24 for n in range(2048)] + [n * 2.0 ** (e - 24) for e in range(1, 30) for n in range(1024, 2048)]


def half_multiply_add(a: int, b: int, c: int) -> int:
    """The bits of the half-precision number nearest to a * b + c, of two as near the even one."""
    x, y, z = (struct.unpack("<e", half.to_bytes(2, "little"))[0] for half in (a, b, c))
    try:
        exact = Fraction(x) * Fraction(y) + Fraction(z)
    except (OverflowError, ValueError):  # not finite
        result = x * y + z
        return 0x7FFF if result != result else 0x7C00 if result > 0 else 0xFC00
    negative = exact < 0 or exact == 0 and copysign(1, x) * copysign(1, y) == copysign(1, z) == -1
    size = abs(exact)
    if size >= 65520:  # half-way to the number that would follow the last
        nearest = 0x7C00
    else:
        above = bisect_left(HALVES, size)
        candidates = [n for n in (above - 1, above) if 0 <= n < len(HALVES)]
        nearest = min(candidates, key=lambda n: (abs(Fraction(HALVES[n]) - size), n & 1))
    return nearest | negative << 15


def bytes_of(value: int, count: int) -> list[int]:
    return [value >> 8 * i & 255 for i in range(count)]


def permuted(a: int, b: int, selectors: int) -> int:
    source = bytes_of(a, 4) + bytes_of(b, 4)
    result = 0
    for i in range(4):
        selector = selectors >> 4 * i & 15
        byte = source[selector % 8]
        if selector > 7:
            byte = 255 if byte > 127 else 0
        result += byte * 256**i
    return result


def with_field(a: int, b: int, position: int, length: int, bits: int) -> int:
    target = list(f"{b:0{bits}b}"[::-1])
    source = f"{a:0{bits}b}"[::-1]
    for i in range(length & 255):
        if (position & 255) + i < bits:
            target[(position & 255) + i] = source[i]
    return int("".join(target)[::-1], 2)


def funnel(direction: str, mode: str, a: int, b: int, count: int) -> int:
    count = count % 32 if mode == "wrap" else min(count, 32)
    both = b * 2**32 + a
    return both // 2**count % 2**32 if direction == "r" else both * 2**count // 2**32 % 2**32


def truncated(value: float, ptx_type: str) -> int:
    bits = BITS[ptx_type]
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if ptx_type[0] == "s" else (0, (1 << bits) - 1)
    if value != value:
        return 0
    if abs(value) == float("inf"):
        return most if value > 0 else least
    return min(max(int(value), least), most)


def shifted_right(value: int, count: int) -> int:
    return value >> min(count, 64)


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def expected(opcode: str, operands: list[int]) -> int:
    """The result, of which the low bits count."""
    base, *modifiers = opcode.split(".")
    ptx_type = modifiers[-1]
    a, b, c, d = (*operands, 0, 0, 0)[:4]
    if base in ("add", "mul") and ptx_type[0] == "f":
        x, y = float_of(a, ptx_type), float_of(b, ptx_type)
        return bits_of(x + y if base == "add" else x * y, ptx_type)
    if opcode == "fma.rn.f16x2":
        low, high = (half_multiply_add(*(value >> shift & 0xFFFF for value in (a, b, c))) for shift in (0, 16))
        return high << 16 | low
    if base == "cvt":
        target, source = modifiers[-2:]
        if "rzi" in modifiers:
            return truncated(float_of(a, source), target)
        if target == "f32":
            return nearest_float(number(a, source))
        return bits_of(float_of(a, source), target) if source[0] == "f" else number(a, source)
    if base in ("mov", "selp") and ptx_type[0] == "f" or base == "cvta":
        return b if base == "selp" and not c & 1 else a
    x, y, z = (number(value, ptx_type) for value in (a, b, c))
    if base in ("mul", "mad"):
        addend = 0 if base == "mul" else z if "lo" in modifiers else c
        return x * y + addend
    simple: dict[str, Callable[[], int]] = {
        "add": lambda: x + y,
        "sub": lambda: x - y,
        "neg": lambda: -x,
        "min": lambda: min(x, y),
        "max": lambda: max(x, y),
        "div": lambda: x // y,
        "and": lambda: x & y,
        "or": lambda: x | y,
        "xor": lambda: x ^ y,
        "not": lambda: ~x,
        "mov": lambda: x,
        "selp": lambda: x if c & 1 else y,
        "shl": lambda: x << min(number(b, "u32"), 64),
        "shr": lambda: shifted_right(x, number(b, "u32")),
        "popc": lambda: f"{x:b}".count("1"),
        "bfi": lambda: with_field(x, y, number(c, "u32"), number(d, "u32"), BITS[ptx_type]),
        "prmt": lambda: permuted(x, y, z),
        "shf": lambda: funnel(modifiers[0], modifiers[1], x, y, z),
        "dp4a": lambda: z + sum(p * q for p, q in zip(bytes_of(x, 4), bytes_of(y, 4), strict=True)),
        "dp2a": lambda: z + x % 65536 * bytes_of(y, 4)[0] + x // 65536 * bytes_of(y, 4)[1],
        "setp": lambda: COMPARISONS[modifiers[0]](x, y),
    }
    return simple[base]()


# ---- Kernels


class Cases:
    """Kernels with inputs and outputs."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        self.ptx = [".version 9.0", ".target sm_75", ".address_size 64"]
        self.lines: list[str] = []
        self.covered: set[str] = set()

    def add(self, opcode: str, body: list[str], threads: list[tuple[bytes, bytes]], shared: int = 0) -> None:
        """A kernel; threads have inputs, and outputs as far as they are written.

        %in and %out are the addresses of the thread's, %t is its number.
        """
        name = f"case_{len(self.covered)}"
        self.covered.add(opcode)
        self.ptx += [
            f".visible .entry {name}(.param .u64 in, .param .u64 out)",
            "{",
            f".shared .align 16 .b8 memory_{name}[{shared}];" if shared else "",
            ".reg .pred %p<5>; .reg .b16 %h<5>; .reg .b32 %t, %w<9>; .reg .b64 %in, %out, %o, %x<9>;",
            ".reg .f32 %f<5>; .reg .f64 %g<5>;",
            f"ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, {IN};",
            "add.s64 %in, %in, %o; add.s64 %out, %out, %o;",
            *body,
            "ret;",
            "}",
        ]
        self.lines.append(f"kernel {name} {opcode}")
        for given, wanted in threads:
            self.lines.append(f"{given.ljust(IN, bytes(1)).hex()} {wanted.hex().ljust(2 * OUT, '.')}")

    def value(self, ptx_type: str) -> int:
        bits = max(16, BITS[ptx_type])
        if ptx_type[0] == "f":
            return self.float_value(ptx_type)
        edges = [0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 255, 1 << bits - 1, (1 << bits - 1) - 1, (1 << bits) - 1]
        if self.random.random() < 0.5:
            return self.random.choice(edges) & (1 << bits) - 1
        return self.random.getrandbits(bits)

    def float_value(self, ptx_type: str) -> int:
        powers = [float(1 << n) for n in (15, 16, 24, 31, 32, 52, 62, 63)]
        edges = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.0, 255.5, 1 / 3, 1e-3, float("inf"), float("-inf"), *powers]
        value = self.random.choice([*edges, *(-p for p in powers), *(p - 0.5 for p in powers)])
        if self.random.random() < 0.6:
            value = self.random.uniform(-1, 1) * 2.0 ** self.random.randrange(-8, 40)
        return bits_of(value, ptx_type)


def register(ptx_type: str, i: int) -> str:
    kinds = {"pred": "%p", "f32": "%f", "f64": "%g"}
    return f"{kinds.get(ptx_type) or {8: '%h', 16: '%h', 32: '%w', 64: '%x'}[BITS[ptx_type]]}{i}"


def load_operand(ptx_type: str, i: int) -> list[str]:
    if ptx_type == "pred":
        return [f"ld.global.u32 %w8, [%in+{SLOT * i}]; and.b32 %w8, %w8, 1; setp.ne.u32 %p{i}, %w8, 0;"]
    width = {"f32": "f32", "f64": "f64"}.get(ptx_type) or f"u{max(16, BITS[ptx_type])}"
    return [f"ld.global.{width} {register(ptx_type, i)}, [%in+{SLOT * i}];"]


def add_values(cases: Cases) -> None:
    for opcode, value in VALUES.items():
        if opcode == "cvta.shared.u64":
            continue  # the address says nothing; add_memory() uses it
        threads = []
        for _ in range(THREADS):
            operands = [cases.value(t) for t in value.operands]
            if opcode.startswith(("setp", "div")) and cases.random.random() < 0.3:
                operands[1] = operands[0]
            if opcode.startswith("div") and operands[1] == 0:
                operands[1] = 3
            if opcode.startswith(("add.", "mul.")) and ".f" in opcode:  # no NaN: its bits are not defined
                operands = [
                    o if abs(float_of(o, value.result)) < 1e30 else bits_of(7.0, value.result) for o in operands
                ]
            size = BITS[value.result] // 8 or 4
            result = expected(opcode, operands) % 2 ** BITS[value.result]
            threads.append((b"".join(o.to_bytes(SLOT, "little") for o in operands), result.to_bytes(size, "little")))
        body = [line for i, t in enumerate(value.operands) for line in load_operand(t, i)]
        out = register(value.result, 4)
        body.append(f"{opcode} {', '.join([out, *(register(t, i) for i, t in enumerate(value.operands))])};")
        if value.result == "pred":
            body.append("selp.u32 %w4, 1, 0, %p4; st.global.u32 [%out], %w4;")
        else:
            width = {"f32": "f32", "f64": "f64"}.get(value.result) or f"u{BITS[value.result]}"
            body.append(f"st.global.{width} [%out], {out};")
        cases.add(opcode, body, threads)


def add_memory(cases: Cases) -> None:
    for opcode, (op, space, count, ptx_type) in MEMORY.items():
        size = BITS[ptx_type] // 8
        wide = 8 if size == 8 else 4  # bytes of the registers
        name = {4: "%w", 8: "%x"}[wide] if ptx_type[0] != "f" else {4: "%f", 8: "%g"}[wide]
        registers = [f"{name}{i}" for i in range(count)]
        items = f"{{{', '.join(registers)}}}" if count > 1 else registers[0]
        stored = ptx_type if ptx_type[0] == "f" else f"u{8 * wide}"
        shared = f"memory_case_{len(cases.covered)}"
        offset = f"mov.u32 %w8, {shared}; mul.lo.s32 %w7, %t, 16; add.s32 %w8, %w8, %w7;"
        threads = []
        for _ in range(THREADS):
            given = cases.random.randbytes(IN)
            values = [int.from_bytes(given[i * size : (i + 1) * size], "little") for i in range(count)]
            if op == "ld":
                extended = [number(v, ptx_type) % 256**wide if ptx_type[0] != "f" else v for v in values]
                threads.append((given, b"".join(v.to_bytes(wide, "little") for v in extended)))
            else:
                threads.append((given, given[: size * count]))
        # Generic addresses are of shared memory where the instruction names no space.
        generic = f"{offset} cvt.u64.u32 %x8, %w8; cvta.shared.u64 %x8, %x8;" if space == "generic" else ""
        is_shared = space in ("generic", "shared")
        place = {"generic": "%x8", "shared": "%w8", "global": "%in" if op == "ld" else "%out"}[space]
        body = [generic or offset if is_shared else ""]
        if op == "ld":
            if is_shared:
                body += [f"ld.global.u8 %h0, [%in+{i}]; st.shared.u8 [%w8+{i}], %h0;" for i in range(16)]
            body.append(f"{opcode} {items}, [{place}];")
            body += [f"st.global.{stored} [%out+{wide * i}], {r};" for i, r in enumerate(registers)]
        else:
            body += [f"ld.global.{ptx_type} {r}, [%in+{size * i}];" for i, r in enumerate(registers)]
            body.append(f"{opcode} [{place}], {items};")
            if is_shared:
                body += [f"ld.shared.u8 %h0, [%w8+{i}]; st.global.u8 [%out+{i}], %h0;" for i in range(size * count)]
        cases.add(opcode, body, threads, 16 * THREADS if is_shared else 0)
    cases.covered.add("cvta.shared.u64")


def shuffled(mode: str, width: int, lane: int, argument: int) -> tuple[int, bool]:
    """The lane that is read in a segment of `width` lanes, and whether there is one, after the CUDA C++ guide."""
    first = lane // width * width
    source = {"up": lane - argument, "down": lane + argument, "bfly": lane ^ argument, "idx": first + argument % width}
    inside = {"up": source["up"] >= first}.get(mode, source[mode] < first + width)
    return (source[mode], True) if inside else (lane, False)


def add_shuffles(cases: Cases) -> None:
    for opcode, mode in SHUFFLES.items():
        threads = []
        for warp in range(THREADS // 32):
            width = (32, 16, 8, 4)[warp]
            values = [cases.random.getrandbits(32) for _ in range(32)]
            argument = cases.random.randrange(1, width)
            clamp = (32 - width) << 8 | (0 if mode == "up" else 31)
            for lane in range(32):
                source, valid = shuffled(mode, width, lane, argument)
                given = struct.pack("<IIII", values[lane], argument, clamp, 0)
                threads.append((given, struct.pack("<II", values[source], valid)))
        body = ["ld.global.u32 %w0, [%in]; ld.global.u32 %w1, [%in+4]; ld.global.u32 %w2, [%in+8];"]
        body += [f"{opcode} %w3|%p0, %w0, %w1, %w2, -1;", "selp.u32 %w4, 1, 0, %p0;"]
        cases.add(opcode, [*body, "st.global.v2.u32 [%out], {%w3, %w4};"], threads)


def add_votes(cases: Cases) -> None:
    """By the two halves of a warp, each for itself."""
    for opcode, mode in VOTES.items():
        threads = []
        for half, ones in enumerate((0, 1, 8, 16, 15, 16, 0, 2)):
            votes = [1] * ones + [0] * (16 - ones)
            cases.random.shuffle(votes)
            result = any(votes) if mode == "any" else all(votes)
            mask = (0xFFFF, 0xFFFF0000)[half % 2]
            threads += [(struct.pack("<II", vote, mask), struct.pack("<I", result)) for vote in votes]
        body = ["ld.global.u32 %w0, [%in]; ld.global.u32 %w1, [%in+4]; setp.ne.u32 %p0, %w0, 0;"]
        body += [f"{opcode} %p1, %p0, %w1;", "selp.u32 %w2, 1, 0, %p1; st.global.u32 [%out], %w2;"]
        cases.add(opcode, body, threads)


def main() -> None:
    cases = Cases()
    for add in (add_values, add_memory, add_shuffles, add_votes):
        add(cases)
    # kernels.ptx has those of the rest.
    missing = {*VALUES, *MEMORY, *SHUFFLES, *VOTES} - cases.covered
    if missing or set(OTHERS) & cases.covered or set(PARAMETERS) & cases.covered:
        sys.exit(f"no case for {', '.join(sorted(missing))}")
    Path(sys.argv[1]).write_text("\n".join(cases.ptx) + "\n", encoding="utf-8")
    Path(sys.argv[2]).write_text("\n".join(cases.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
