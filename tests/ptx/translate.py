"""Translates PTX, as nvcc leaves it, to C++ that machine.h runs.

    python tests/ptx/translate.py [--count] OUT.cc IN.ptx [IN.ptx ...]

With --count the functions also tell the machine which basic blocks they come to, and what they access (counts.h).
The inputs are one source file compiled for several targets. Those that are equal but for the target become one set of
functions. An instruction or a variant that is not in INSTRUCTIONS ends the translation with its name: what a new
compiler may emit must be added here, and to the reference in instruction_cases.py. Needs the standard library only.
"""

from __future__ import annotations

import argparse
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from basic_blocks import EXIT, ControlFlow, Instruction, kind_of

BITS = {"pred": 1, "f32": 32, "f64": 64} | {f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)}


class PtxError(ValueError):
    """PTX that this translator does not know."""


def cpp_type(ptx_type: str) -> str:
    names = {"pred": "bool", "f32": "float", "f64": "double"}
    return names.get(ptx_type) or f"{'int' if ptx_type[0] == 's' else 'uint'}{BITS[ptx_type]}_t"


# ---- Instructions that compute a value from values


@dataclass(frozen=True)
class Value:
    """The types of the result and of the operands, and a C++ expression of the operands a, b, c and d."""

    result: str
    operands: tuple[str, ...]
    expression: str


def value_instructions() -> Iterator[tuple[str, Value]]:
    signed, unsigned = ("s16", "s32", "s64"), ("u16", "u32", "u64")
    integers, bits = signed + unsigned, ("b16", "b32", "b64")
    for t in integers:
        yield f"add.{t}", Value(t, (t, t), "a + b")
        yield f"sub.{t}", Value(t, (t, t), "a - b")
        yield f"mul.lo.{t}", Value(t, (t, t), "a * b")
        yield f"mad.lo.{t}", Value(t, (t, t, t), "a * b + c")
        yield f"min.{t}", Value(t, (t, t), "a < b ? a : b")
        yield f"max.{t}", Value(t, (t, t), "a < b ? b : a")
        yield f"shr.{t}", Value(t, (t, "u32"), "shift_right(a, b)")
    for t in ("s16", "s32", "u16", "u32"):
        wide = f"{t[0]}{2 * BITS[t]}"
        yield f"mul.wide.{t}", Value(wide, (t, t), f"{cpp_type(wide)}(a) * b")
        yield f"mad.wide.{t}", Value(wide, (t, t, wide), f"{cpp_type(wide)}(a) * b + c")
    for t in signed:
        yield f"neg.{t}", Value(t, (t,), "-a")
    for t in ("u32", "u64"):
        yield f"div.{t}", Value(t, (t, t), "t.divide(a, b, LINE)")
    for t in ("pred", *bits):
        yield f"and.{t}", Value(t, (t, t), "a & b")
        yield f"or.{t}", Value(t, (t, t), "a | b")
        yield f"xor.{t}", Value(t, (t, t), "a ^ b")
        yield f"not.{t}", Value(t, (t,), "!a" if t == "pred" else "~a")
    for t in bits:
        yield f"shl.{t}", Value(t, (t, "u32"), "shift_left(a, b)")
    for t in ("b32", "b64"):
        yield f"popc.{t}", Value("u32", (t,), "std::popcount(a)")
        yield f"bfi.{t}", Value(t, (t, t, "u32", "u32"), "insert_field(a, b, c, d)")
    for t in (*bits, *integers, "f32", "f64"):
        yield f"selp.{t}", Value(t, (t, t, "pred"), "c ? a : b")
    for t in (*bits, *integers, "f32", "f64", "pred"):
        yield f"mov.{t}", Value(t, (t,), "a")
    for name, sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
        for t in integers + (bits if name in ("eq", "ne") else ()):
            yield f"setp.{name}.{t}", Value("pred", (t, t), f"a {sign} b")
    # Without ".rn", a product and a sum may become one instruction that rounds once. There is no mul.f64 here.
    yield "add.f64", Value("f64", ("f64", "f64"), "a + b")
    yield "add.rn.f32", Value("f32", ("f32", "f32"), "a + b")
    yield "mul.rn.f32", Value("f32", ("f32", "f32"), "a * b")
    for source in ("s8", "u8", *integers):
        for t in integers:
            if t != source:
                yield f"cvt.{t}.{source}", Value(t, (source,), "a")
    for source in ("u8", "u16", "s16", "u32", "s32"):
        yield f"cvt.rn.f32.{source}", Value("f32", (source,), "float(a)")
    yield "cvt.f64.f32", Value("f64", ("f32",), "a")
    for t, source in (("s32", "f32"), ("u32", "f32"), ("s64", "f64")):
        yield f"cvt.rzi.{t}.{source}", Value(t, (source,), f"truncate<{cpp_type(t)}>(a)")
    yield "cvta.global.u64", Value("u64", ("u64",), "a")
    yield "cvta.to.global.u64", Value("u64", ("u64",), "a")
    yield "cvta.shared.u64", Value("u64", ("u64",), "t.generic_of_shared(a)")
    yield "prmt.b32", Value("b32", ("b32", "b32", "b32"), "permute_bytes(a, b, c)")
    for mode in ("wrap", "clamp"):
        yield f"shf.l.{mode}.b32", Value("b32", ("b32", "b32", "u32"), f"funnel_left(a, b, {mode}_shift(c))")
        yield f"shf.r.{mode}.b32", Value("b32", ("b32", "b32", "u32"), f"funnel_right(a, b, {mode}_shift(c))")
    yield "fma.rn.f16x2", Value("b32", ("b32", "b32", "b32"), "multiply_add_halves(a, b, c)")
    yield "dp4a.u32.u32", Value("u32", ("u32", "u32", "u32"), "dot_4(a, b, c)")
    yield "dp2a.lo.u32.u32", Value("u32", ("u32", "u32", "u32"), "dot_2(a, b, c)")


VALUES = dict(value_instructions())

# ---- Instructions that do something else: memory, other threads, control flow

LOAD_TYPES = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
VECTORS = {"": 1, "v2.": 2, "v4.": 4}
MEMORY = {
    f"{op}.{space}{vector}{t}": (op, space.partition(".")[0] or "generic", count, t)
    for op, spaces in (("ld", ("", "global.", "global.nc.", "shared.")), ("st", ("", "global.", "shared.")))
    for space in spaces
    for vector, count in VECTORS.items()
    for t in LOAD_TYPES
    if count * BITS[t] <= 128
}
PARAMETERS = {f"ld.param.{t}": t for t in ("u8", "u16", "u32", "u64")}
SHUFFLES = {f"shfl.sync.{mode}.b32": mode for mode in ("up", "down", "bfly", "idx")}
VOTES = {f"vote.sync.{mode}.pred": mode for mode in ("any", "all")}
OTHERS = ("bra", "bra.uni", "ret", "bar.sync", "bar.warp.sync")

INSTRUCTIONS = (*VALUES, *MEMORY, *PARAMETERS, *SHUFFLES, *VOTES, *OTHERS)

# ---- The text of PTX


def split_list(text: str) -> list[str]:
    """The parts of a list that commas separate, where braces and brackets hold parts together."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


def align(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment


ENTRY = re.compile(
    r"(?:\.(?:visible|weak)\s+)?\.entry\s+(?P<name>[\w$]+)\s*\((?P<parameters>[^)]*)\)(?P<directives>[^{]*)\{"
)
VARIABLE = re.compile(r"(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s+(?P<name>[\w$]+)(?:\[(?P<count>\d+)\])?")
# Text that nothing reads, such as the reasons why a tile is refused, which only the host reports.
CONSTANT = re.compile(r"^\.global\s+\.align\s+\d+\s+\.b8\s+(?P<name>[\w$]+)\[\d+\]\s*=\s*\{[^}]*\};", re.M)
STATEMENT = re.compile(r"\s*(?:(?P<label>[\w$]+):|(?P<brace>[{}])|(?P<text>(?:[^;{}]|\{[^{};]*\})+);)")
INSTRUCTION = re.compile(r"(?:@(?P<negation>!?)(?P<guard>[%\w]+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>.*)", re.S)


@dataclass
class Layout:
    """Where variables stand, one after the other: offset and bytes of each by its name."""

    size: int = 0
    variables: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, declaration: str) -> None:
        variable = VARIABLE.fullmatch(declaration)
        if not variable:
            raise PtxError(f"declaration {declaration!r}")
        element = BITS[variable["type"]] // 8
        size = element * int(variable["count"] or 1)
        offset = align(self.size, int(variable["align"] or element))
        self.variables[variable["name"]] = (offset, size)
        self.size = offset + size


class Entry:
    """Translates an .entry, statement by statement."""

    def __init__(
        self, match: re.Match[str], text: str, line_of: Callable[[int], int], constants: set[str], counts: bool
    ) -> None:
        self.name = match["name"]
        limit = re.search(r"\.maxntid\s+(\d+)", match["directives"])
        self.max_threads = int(limit[1]) if limit else 1024
        self.parameters, self.shared = Layout(), Layout()
        for declaration in split_list(match["parameters"]):
            self.parameters.add(declaration.removeprefix(".param").strip())
        self.constants = constants
        self.flow = ControlFlow() if counts else None
        self.scopes: list[dict[str, int]] = [{}]  # bits of registers
        self.line = 0
        self.code: list[str] = []
        self.translate(text, match.end(), line_of)

    def translate(self, text: str, position: int, line_of: Callable[[int], int]) -> None:
        while True:
            statement = STATEMENT.match(text, position)
            if not statement:
                raise PtxError(f"text {text[position : position + 60]!r}")
            position = statement.end()
            self.line = line_of(statement.start(statement.lastgroup or 0))
            if statement["label"]:
                self.code.append(f"{c_name(statement['label'])}:;")
                if self.flow:
                    self.flow.label(statement["label"])
            elif statement["brace"] == "{":
                self.scopes.append({})
                self.code.append("{")
            elif statement["brace"] == "}":
                if len(self.scopes) == 1:
                    return
                self.scopes.pop()
                self.code.append("}")
            else:
                self.code += self.statement(" ".join(statement["text"].split()))

    def statement(self, text: str) -> list[str]:
        directive, _, rest = text.partition(" ")
        if directive == ".reg":
            return self.registers(rest)
        if directive == ".shared":
            self.shared.add(rest)
            return []
        if directive == ".pragma":
            return []
        instruction = INSTRUCTION.fullmatch(text)
        if not instruction:
            raise PtxError(f"statement {text!r}")
        opcode, operands = instruction["opcode"], split_list(instruction["operands"])
        entering = self.entering(opcode, operands, guarded=bool(instruction["guard"]))
        code = self.instruction(opcode, operands)
        if instruction["guard"]:
            code = f"if ({instruction['negation']}{self.read(instruction['guard'], 'pred')}) {{ {code} }}"
        return [*entering, code]

    def entering(self, opcode: str, operands: list[str], guarded: bool) -> list[str]:
        """Where a basic block begins with this instruction, and threads are to say that they come to it."""
        if not self.flow:
            return []
        target = {"bra": operands[0] if operands else None, "ret": EXIT}.get(opcode.partition(".")[0])
        begins = self.flow.add(opcode, self.line, target, guarded)
        return [f"t.enter({len(self.flow.blocks) - 1});"] if begins else []

    def registers(self, declaration: str) -> list[str]:
        ptx_type, _, names = declaration.removeprefix(".").partition(" ")
        code = []
        for name in split_list(names):
            many = re.fullmatch(r"(%?\w+)<(\d+)>", name)
            for register in [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name]:
                self.scopes[-1][register] = BITS[ptx_type]
                storage = "bool" if ptx_type == "pred" else f"uint{BITS[ptx_type]}_t"
                code.append(f"{storage} {c_name(register)} = {storage}(kUnwritten);")
        return code

    def bits_of(self, register: str) -> int | None:
        return next((scope[register] for scope in reversed(self.scopes) if register in scope), None)

    def read(self, operand: str, ptx_type: str) -> str:
        """A C++ expression of the type."""
        cpp = cpp_type(ptx_type)
        if operand.startswith("!") and ptx_type == "pred":
            return f"!{self.read(operand[1:], ptx_type)}"
        bits = self.bits_of(operand)
        if bits is not None:
            if (bits < BITS[ptx_type]) or ((bits == 1) != (ptx_type == "pred")):
                raise PtxError(f"register {operand} as .{ptx_type}")
            name = c_name(operand)
            return f"std::bit_cast<{cpp}>({name})" if ptx_type in ("f32", "f64") else f"{cpp}({name})"
        if special := re.fullmatch(r"%(tid|ntid|ctaid|nctaid)\.x", operand):
            return f"{cpp}(t.{special[1]}())"
        if number := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", operand):
            return f"std::bit_cast<{cpp}>(uint{BITS[ptx_type]}_t(0x{number[1] or number[2]}u))"
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", operand) and ptx_type not in ("f32", "f64"):
            value = int(operand.rstrip("U"), 0)
            if ptx_type == "pred":
                return "true" if value else "false"
            return f"{cpp}({value & (1 << 64) - 1:#x}u)"
        if operand in self.shared.variables:
            return f"{cpp}({self.shared.variables[operand][0]})"
        if operand in self.constants:
            return f"{cpp}(kConstantText)"
        raise PtxError(f"operand {operand!r}")

    def write(self, operand: str, ptx_type: str, expression: str) -> str:
        if operand == "_":
            return f"(void)({expression});"
        bits, name = self.bits_of(operand), c_name(operand)
        if bits is None or bits < BITS[ptx_type] or (bits == 1) != (ptx_type == "pred"):
            raise PtxError(f"register {operand} as .{ptx_type}")
        if ptx_type == "pred":
            return f"{name} = {expression};"
        if ptx_type in ("f32", "f64"):
            return f"{name} = std::bit_cast<uint{bits}_t>({cpp_type(ptx_type)}({expression}));"
        return f"{name} = uint{bits}_t({cpp_type(ptx_type)}({expression}));"

    def instruction(self, opcode: str, operands: list[str]) -> str:
        if value := VALUES.get(opcode):
            result, *sources = self.operands(opcode, operands, 1 + len(value.operands))
            values = [self.read(*pair) for pair in zip(sources, value.operands, strict=True)]
            expression = re.sub(r"\b[abcd]\b", lambda m: f"({values['abcd'.index(m[0])]})", value.expression)
            return self.write(result, value.result, expression.replace("LINE", str(self.line)))
        if opcode in PARAMETERS:
            result, place = self.operands(opcode, operands, 2)
            name, offset = address(place)
            at = self.parameters.variables[name][0] + offset
            return self.write(result, PARAMETERS[opcode], f"t.parameter<{cpp_type(PARAMETERS[opcode])}>({at})")
        if opcode in MEMORY:
            return self.memory(*MEMORY[opcode], self.operands(opcode, operands, 2))
        if opcode in SHUFFLES:
            result, *sources = self.operands(opcode, operands, 5)
            register, _, valid = result.partition("|")
            arguments = ", ".join(self.read(source, "u32") for source in sources)
            shuffle = f"const auto s = t.shuffle(Operation::shuffle_{SHUFFLES[opcode]}, {arguments}, {self.line});"
            results = self.write(register, "u32", "s.value") + self.write(valid or "_", "pred", "s.valid")
            return f"{{ {shuffle} {results} }}"
        if opcode in VOTES:
            result, condition, mask = self.operands(opcode, operands, 3)
            arguments = f"{self.read(condition, 'pred')}, {self.read(mask, 'u32')}, {self.line}"
            return self.write(result, "pred", f"t.vote(Operation::vote_{VOTES[opcode]}, {arguments})")
        if opcode in ("bra", "bra.uni"):
            return f"goto {c_name(*self.operands(opcode, operands, 1))};"
        if opcode == "ret":
            return "return;"
        if opcode == "bar.sync" and operands == ["0"]:
            return f"t.synchronize_block({self.line});"
        if opcode == "bar.warp.sync":
            return f"t.synchronize_warp({self.read(*self.operands(opcode, operands, 1), 'u32')}, {self.line});"
        raise PtxError(f"instruction {opcode} {', '.join(operands)}")

    def operands(self, opcode: str, operands: list[str], count: int) -> list[str]:
        if len(operands) != count:
            raise PtxError(f"instruction {opcode} with {len(operands)} operands")
        return operands

    def memory(self, op: str, space: str, count: int, ptx_type: str, operands: list[str]) -> str:
        data, place = operands if op == "ld" else reversed(operands)
        items = split_list(data[1:-1]) if data.startswith("{") else [data]
        if len(items) != count:
            raise PtxError(f"{count} values {data}")
        name, offset = address(place)
        at = f"{self.read(name, 'u32' if space == 'shared' else 'u64')} + ({offset})"
        arguments = f"<{cpp_type(ptx_type)}, {count}>({at}, "
        accessing = ""
        if self.flow:
            generic = f"t.generic_of_shared({at})" if space == "shared" else at
            accessing = f"t.access({len(self.flow.blocks[-1].instructions) - 1}, {generic}); "
        if op == "ld":
            load = f"const auto m = t.load_{space}{arguments}{self.line});"
            results = " ".join(self.write(item, ptx_type, f"m[{i}]") for i, item in enumerate(items))
            return f"{accessing}{{ {load} {results} }}"
        values = ", ".join(self.read(item, ptx_type) for item in items)
        return f"{accessing}t.store_{space}{arguments}{{{values}}}, {self.line});"


def address(operand: str) -> tuple[str, int]:
    match = re.fullmatch(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\d+))?\s*\]", operand)
    if not match:
        raise PtxError(f"address {operand!r}")
    return match[1], int(match[2] or 0)


def c_name(name: str) -> str:
    return re.sub(r"\W", "_", name)


# ---- Files


def target_of(text: str) -> str:
    return re.search(r"^\.target\s+(\w+)", text, re.M)[1]  # type: ignore[index]


def entries_of(text: str, counts: bool) -> list[Entry]:
    text = without_comments(text)
    starts = [match.end() for match in re.finditer("^", text, re.M)]
    constants = {match["name"] for match in CONSTANT.finditer(text)}
    return [Entry(m, text, lambda at: bisect_right(starts, at), constants, counts) for m in ENTRY.finditer(text)]


def cpp_list(items: Iterable[str]) -> str:
    return f"{{{', '.join(items)}}}"


def cpp_code(flow: ControlFlow) -> str:
    """A kernel as counts.h has it."""

    def instruction(one: Instruction) -> str:
        op, _, count, ptx_type = MEMORY.get(one.opcode, ("", "", 0, "u8"))
        fields = [f"{one.line}", f"Kind::{kind_of(one.opcode)}", f"{count * BITS[ptx_type] // 8}"]
        return cpp_list([*fields, "true" if op == "st" else "false"])

    instructions: list[str] = []
    blocks = []
    for block, meeting in zip(flow.blocks, flow.meeting_points(), strict=True):
        begin = len(instructions)
        instructions += map(instruction, block.instructions)
        blocks.append(f"{{{begin}, {len(instructions)}, {'true' if block.branches else 'false'}, {meeting}}}")
    return cpp_list([cpp_list(instructions), cpp_list(blocks)])


def translate(texts: list[str], counts: bool = False) -> str:
    by_code: dict[str, list[str]] = {}  # targets
    for text in texts:
        by_code.setdefault(text.replace(f".target {target_of(text)}", ".target"), []).append(target_of(text))
    code = ['#include "machine.h"', "", "using namespace ptx;", "", "namespace {", ""]
    for variant, (text, targets) in enumerate(by_code.items()):
        for number, entry in enumerate(entries_of(text, counts)):
            function = f"run_{variant}_{number}"
            code += [f"void {function}([[maybe_unused]] Thread &t) {{", *(f"  {line}" for line in entry.code), "}", ""]
            parameters = cpp_list(f"{{{at}, {size}}}" for at, size in entry.parameters.variables.values())
            shared = cpp_list(f'{{"{name}", {at}, {size}}}' for name, (at, size) in entry.shared.variables.items())
            fields = [f'"{entry.name}"', cpp_list(f'"{target}"' for target in targets), function]
            fields += [str(entry.max_threads), parameters, shared]
            if entry.flow:
                fields.append(cpp_code(entry.flow))
            code += [f"const Registration {function}_registration({{{', '.join(fields)}}});", ""]
    return "\n".join([*code, "}  // namespace", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="Translate PTX to C++.")
    parser.add_argument("--count", action="store_true", help="also say what is executed")
    parser.add_argument("target", type=Path, metavar="OUT.cc")
    parser.add_argument("sources", type=Path, nargs="+", metavar="IN.ptx")
    arguments = parser.parse_args()
    target: Path = arguments.target
    try:
        code = translate([source.read_text(encoding="utf-8") for source in arguments.sources], arguments.count)
    except PtxError as error:
        names = " ".join(map(str, arguments.sources))
        sys.exit(f"{names}: unknown {error}; tests/ptx/translate.py says what is known")
    if not target.exists() or target.read_text(encoding="utf-8") != code:  # so that it is compiled if it must
        target.write_text(code, encoding="utf-8")


if __name__ == "__main__":
    main()
