"""Rules of docs/format.md, each with a way to get it wrong: changes to the source of the oracle's decoder.

`written_mutations` are chosen by hand. `removed_checks` and `changed_classes` derive two more from every check of the
decoder: to leave it out, and to refuse with another class.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from oracle import decoder

SOURCE = Path(decoder.__file__).read_text(encoding="utf-8")


class Mutation(NamedTuple):
    """A decoder that has one rule wrong."""

    rule: str
    source: str

    def module(self) -> ModuleType:
        """Makes a module of the decoder."""
        module = ModuleType("oracle.mutant")
        module.__package__ = "oracle"
        exec(compile(self.source, f"<{self.rule}>", "exec"), module.__dict__)
        return module


# -------------------------------------------------------------------------------------------------- derived from checks


def _checks() -> Iterator[ast.Call]:
    """The calls of `_require`."""
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_require":
            yield node


def _replaced(rule: str, node: ast.expr, text: str) -> Mutation:
    assert node.lineno == node.end_lineno, f"{ast.unparse(node)} takes several lines"
    lines = SOURCE.splitlines(keepends=True)
    line = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (line[: node.col_offset] + text.encode() + line[node.end_col_offset :]).decode()
    return Mutation(rule, "".join(lines))


def removed_checks() -> list[Mutation]:
    """Decoders without one of the checks."""
    return [_replaced(f"{ast.unparse(check)} is left out", check.args[0], "True") for check in _checks()]


def changed_classes() -> list[Mutation]:
    """Decoders that refuse for the right reason, with a class that does not exist."""
    return [_replaced(f"{ast.unparse(check)} has another class", check.args[1], "'another'") for check in _checks()]


# ------------------------------------------------------------------------------------------------------- ways to change


def _changed(rule: str, *changes: tuple[str, str], places: int = 1) -> Mutation:
    """Replaces old by new text; each old text must stand in exactly so many places."""
    source = SOURCE
    for old, new in changes:
        assert source.count(old) == places, f"{rule}: {source.count(old)} places with {old!r}"
        source = source.replace(old, new)
    return Mutation(rule, source)


def _line(start: str) -> str:
    """The only line that starts with a text, indentation aside."""
    lines = [line for line in SOURCE.splitlines(keepends=True) if line.lstrip().startswith(start)]
    assert len(lines) == 1, f"{len(lines)} lines start with {start!r}"
    return lines[0]


def _indented(text: str, line: str) -> str:
    """A text whose lines are indented as a line is."""
    indent = line[: len(line) - len(line.lstrip())]
    return "".join(f"{indent}{part}\n" for part in text.split("\n"))


def _inserted_after(rule: str, start: str, text: str) -> Mutation:
    """Inserts lines after the line that starts so."""
    line = _line(start)
    return _changed(rule, (line, line + _indented(text, line)))


def _inserted_before(rule: str, start: str, text: str) -> Mutation:
    line = _line(start)
    return _changed(rule, (line, _indented(text, line) + line))


def _moved(rule: str, start: str, after: str) -> Mutation:
    """Moves the line that starts so behind another."""
    line, place = _line(start), _line(after)
    return _changed(rule, (line, ""), (place, place + line))


# ------------------------------------------------------------------------------------------------------------ container


def _headers() -> Iterator[Mutation]:
    signature = "data[:8] != SIGNATURE[: len(data)]"
    yield _changed("signature: 7 bytes", (signature, "data[:7] != SIGNATURE[:7][: len(data)]"))
    yield _changed("signature: bit 7 is lost", (r'SIGNATURE = b"\x89L3I', r'SIGNATURE = b"\x09L3I'))
    yield _changed("signature: a prefix is no L3 file", (signature, "data[:8] != SIGNATURE"))
    prototype = "data[:4] == PROTOTYPE_SIGNATURE"
    yield _changed("signature: three bytes make a prototype file", (prototype, "data[:3] == b'LLL'"), places=2)

    fixed = '    _require(len(data) >= HEADER_SIZE, "truncated", "the file ends within the header")\n'
    version, size = _line("_require(major == 1"), _line("_require(header_size >=")
    early = "    _require(len(data) < 9 or data[8] == 1, 'unsupported', '')\n"
    yield _changed("header: the version before its 48 bytes", (fixed, early + fixed))
    yield _changed("header: later major versions", ("_require(major == 1,", "_require(major >= 1,"))
    yield _changed("header: earlier major versions", ("_require(major == 1,", "_require(major <= 1,"))
    yield _changed("header: minor version 0 alone", ("_require(major == 1,", "_require(major == 1 and _minor == 0,"))
    yield _changed("header: minor versions to 127", ("_require(major == 1,", "_require(major == 1 and _minor < 128,"))
    yield _changed("header: 44 bytes", ("_require(header_size >= HEADER_SIZE and", "_require(header_size >= 44 and"))
    yield _changed("header: size of any remainder", ("HEADER_SIZE and header_size % 4 == 0", "HEADER_SIZE"))
    yield _changed("header: tables at 48", ("Header(\n        header_size,", "Header(\n        HEADER_SIZE,"))
    yield _changed("header: its size before the version", (version + size, size + version))
    begin, end = SOURCE.index("    if len(data) >= header_size:"), SOURCE.index("    _require(bits in")
    checksum = SOURCE[begin:end]
    yield _changed("header: its checksum before the version", (checksum, ""), (version, checksum + version))
    yield _changed("header: its checksum before its size", (size + checksum, checksum + size))
    for start in ("_require(profile in", "_check_size(width, height, channels", "_require(reserved =="):
        line = _line(start)
        yield _changed(f"header: its checksum after {start}", (checksum, ""), (line, line + checksum))
    yield _changed(
        "header: truncated where it is not whole, whatever its fields",
        ("if len(data) >= header_size:", "_require(len(data) >= header_size, 'truncated', '')\n    if True:"),
    )
    yield _changed("header: checksum of 48 bytes", ("bytes(4) + data[HEADER_SIZE:header_size]", "bytes(4)"))
    yield _changed("header: checksum of itself", ("bytes(4) + data[HEADER_SIZE", "data[44:48] + data[HEADER_SIZE"))
    yield _changed("checksums: CRC-32 of zlib", ("from .crc32c import crc32c", "from zlib import crc32 as crc32c"))


def _fields() -> Iterator[Mutation]:
    yield _changed("bits: multiples of 8", ("bits in (8, 16)", "bits % 8 == 0 and bits"))
    yield _changed("bits: up to 16", ("bits in (8, 16)", "0 < bits <= 16"))
    yield _changed("profile: 3", ("profile in (RAW, PAPER, FAST)", "profile <= 3"))
    for bit in range(2, 8):
        yield _changed(f"flags: bit {bit}", ("flags & ~3 ==", f"flags & ~{3 | 1 << bit} =="))
    yield _changed("flags: unknown ones of later versions", ("_require(flags & ~3", "_require(_minor or flags & ~3"))
    yield _changed(
        "flags: two dimensions of two channels", ("flags & 1 or channels == 1", "flags & 1 or channels <= 2")
    )
    for axis in ("width", "height"):
        yield _changed(f"tile {axis}: exponents below 6", (f"tile_{axis} == 6", f"tile_{axis} <= 6"))
        yield _changed(f"tile {axis}: exponents above 6", (f"tile_{axis} == 6", f"tile_{axis} >= 6"))
        yield _changed(f"{axis}: 0", (f"1 <= {axis} <= MAX_SIDE", f"0 <= {axis} <= MAX_SIDE"))
        yield _changed(f"{axis}: 2^20 is too much", (f"{axis} <= MAX_SIDE", f"{axis} < MAX_SIDE"))
        yield _changed(f"{axis}: 2^20 + 64", (f"{axis} <= MAX_SIDE", f"{axis} <= MAX_SIDE + 64"))
    yield _changed("channels: 0", ("1 <= channels <= 4", "0 <= channels <= 4"))
    yield _changed("channels: 5", ("1 <= channels <= 4", "1 <= channels <= 5"))
    image_bytes = "width * height * channels * (bits // 8)"
    yield _changed("image size: without channels", (image_bytes, "width * height * (bits // 8)"))
    yield _changed("image size: in samples", (image_bytes, "width * height * channels"))
    yield _changed("image size: 2^31 is too much", ("image_bytes <= MAX_IMAGE_BYTES", "image_bytes < MAX_IMAGE_BYTES"))
    yield _changed("image size: 2^31 + 2", ("image_bytes <= MAX", "image_bytes - 2 <= MAX"))
    yield _changed("metadata size: 2^24 is too much", ("metadata_size <= MAX_METADATA", "metadata_size < MAX_METADATA"))
    yield _changed("metadata size: 2^24 + 4", ("metadata_size <= MAX_METADATA", "metadata_size - 4 <= MAX_METADATA"))
    yield _changed("reserved: one byte", ("_require(reserved == 0", "_require(reserved & 255 == 0"))
    yield _changed("reserved: the other byte", ("_require(reserved == 0", "_require(reserved >> 8 == 0"))

    last_limit, last_contradiction = "_require(metadata_size <= MAX_METADATA_BYTES", "_require(payload_size % 4"
    for start in ("profile in", "flags & ~3", "tile_width ==", "tile_height =="):
        yield _moved(f"order: limits before {start}", f"_require({start}", last_limit)
        yield _moved(f"order: contradictions before {start}", f"_require({start}", last_contradiction)
    size = "_check_size(width, height, channels, bits)"
    yield _moved("order: limits before bits in", "_require(bits in", size)
    yield _moved("order: contradictions before the size", size, last_contradiction)
    yield _moved("order: contradictions before the metadata's limit", last_limit, last_contradiction)
    whole = "Header(header_size, width, height, channels, bits, profile, flags, metadata_size, payload_size, 0, 0)"
    yield _inserted_before(
        "order: the file's size before the fields",
        "_require(bits in",
        f"_require(len(data) >= {whole}.file_size, 'truncated', '')",
    )


def _tables() -> Iterator[Mutation]:
    complete = "_require(len(data) >= header.file_size"
    yield _changed("trailer: none", ("+ TRAILER_SIZE", "+ 0"))
    yield _changed("trailer: 15 bytes", ("+ TRAILER_SIZE", "+ TRAILER_SIZE - 1"))
    yield _inserted_after(
        "trailer: must be zero",
        complete,
        "_require(not any(data[header.file_size - 16 : header.file_size]), 'corrupt', '')",
    )
    yield _changed("trailer: nothing after it", ("len(data) >= header.file_size", "len(data) == header.file_size"))
    tables, checksum = _line("tables = data"), _line("_require(crc32c(tables)")
    yield _changed("tables: checksum of the offsets", ("crc32c(tables)", "crc32c(tables[: 4 * header.tile_count + 4])"))
    yield _changed(
        "tables: checksum before the size",
        (tables + checksum, ""),
        (_line(complete), tables + checksum + _line(complete)),
    )
    yield _moved("tables: checksum after the offsets", "_require(crc32c(tables)", "_require(bool(np.all(offsets % 4")
    yield _changed("offsets: equal ones", ("np.diff(offsets) > 0", "np.diff(offsets) >= 0"))
    last = "offsets[-1] == header.payload_size"
    yield _changed("offsets: the payload may go on", (last, "offsets[-1] <= header.payload_size"))
    yield _changed("offsets: the payload may end early", (last, "offsets[-1] >= header.payload_size"))
    yield _changed("offsets: from the file's start", ("payload[begin:end] for", "data[begin:end] for"))

    tiles = "-(-self.width // TILE) * -(-self.height // TILE)"
    yield _changed("tiles: one more at whole ones", (tiles, "(self.width // TILE + 1) * (self.height // TILE + 1)"))
    yield _changed("tiles: none for the rest", (tiles, "max(1, self.width // TILE) * max(1, self.height // TILE)"))
    place = "TILE * (tile // tiles_across), TILE * (tile % tiles_across)"
    down = "-(-header.height // TILE)"
    yield _changed("tiles: column by column", (place, f"TILE * (tile % {down}), TILE * (tile // {down})"))
    table = "self.tile_count if self.has_checksums else 0"
    yield _changed("tile checksums: always there", (table, "self.tile_count"))
    yield _changed("tile checksums: never there", (table, "0"))
    yield _changed("flags: swapped", ("bool(self.flags & 1)", "bool(self.flags & 2)"))
    array = "image[:, :, 0] if header.two_dimensional else image"
    yield _changed("flags: one channel is two-dimensional", (array, "image[:, :, 0] if image.shape[2] == 1 else image"))
    yield _changed("flags: all arrays have channels", (array, "image"))

    condition, checked = (
        "if verify and checksums is not None",
        _line("if verify and") + _line("_require(crc32c(coded)"),
    )
    yield _changed("tile checksums: always looked at", (condition, "if checksums is not None"))
    yield _changed("tile checksums: of the bytes to padding", ("crc32c(coded)", "crc32c(coded.rstrip(bytes(1)))"))
    decoded = _line("target[...] = ")
    yield _changed("tile checksums: after the tile", (checked + decoded, decoded + checked))
    loop = _line("for tile, coded in enumerate(tiles):")
    first = (
        loop
        + "        if verify and checksums:\n            _require(crc32c(coded) == checksums[tile], 'checksum', '')\n"
    )
    yield _changed("tile checksums: all before the first tile", (checked, ""), (loop, first + loop))


def _metadata() -> Iterator[Mutation]:
    yield _inserted_before("metadata: pixels need it sound", "decode_tile =", "read_metadata(data)")
    yield _changed(
        "metadata: read without the tables", ("header, _, _ = _read_container(data)", "header = parse_header(data)")
    )
    yield _changed("metadata: nothing to sum", ("_require(crc32c(area)", "_require(not area or crc32c(area)"))
    yield _moved("metadata: checksum after the entries", "_require(crc32c(area)", "at = -(-end")
    yield _changed("metadata: empty keys", ("1 <= key_size <= 255", "0 <= key_size <= 255"))
    yield _changed("metadata: keys of 256 bytes", ("1 <= key_size <= 255", "1 <= key_size <= 256"))
    yield _changed("metadata: keys of 255 bytes are too long", ("1 <= key_size <= 255", "1 <= key_size <= 254"))
    yield _changed("metadata: no empty values", ("1 <= key_size <= 255", "1 <= key_size <= 255 and value_size"))
    end = "end = at + 8 + key_size + value_size"
    yield _changed("metadata: sizes modulo 2^32", (end, "end = at + 8 + (key_size + value_size) % 2**32"))
    yield _changed("metadata: a value ends with the area", ("_require(end <= len(area)", "_require(end < len(area)"))
    yield _changed("metadata: the last word is left over", ("while at < len(area)", "while at + 8 <= len(area)"))
    yield _changed("metadata: zeros are left over", ("while at < len(area)", "while any(area[at:])"))
    yield _changed("metadata: entries without padding", ("at = -(-end // 4) * 4", "at = end"))
    yield _inserted_after(
        "metadata: padding must be zero", "at = -(-end", "_require(not any(area[end:at]), 'corrupt', '')"
    )
    repeated = "key not in entries"
    yield _changed("metadata: neighbours differ", (repeated, "key not in list(entries)[-1:]"))
    yield _changed("metadata: only the first is compared", (repeated, "key not in list(entries)[:1]"))
    yield _changed("metadata: keys without case", (repeated, "key.lower() not in map(str.lower, entries)"))
    normal = "(lambda text: __import__('unicodedata').normalize('NFC', text))"
    yield _changed("metadata: normalised keys", (repeated, f"{normal}(key) not in map({normal}, entries)"))
    yield _changed("metadata: keys without byte 0", (repeated, "chr(0) not in key and key not in entries"))
    yield _changed("metadata: a mark of byte order", ('.decode("utf-8")', '.decode("utf-8-sig")'))
    key = 'area[at + 8 : at + 8 + key_size].decode("utf-8")'
    yield _changed("metadata: keys in Latin-1", (key, key.replace("utf-8", "latin-1")))
    continuation = r"[\x80-\xbf]"
    for rule, old, new in (
        ("over-long characters of two bytes", r"\xc2-\xdf", r"\xc0-\xdf"),
        ("over-long characters of three bytes", r"\xe0[\xa0-\xbf]", r"\xe0[\x80-\xbf]"),
        ("surrogates", r"\xed[\x80-\x9f]", r"\xed[\x80-\xbf]"),
        ("over-long characters of four bytes", r"\xf0[\x90-\xbf]", r"\xf0[\x80-\xbf]"),
        ("characters past U+10FFFF", r"\xf4[\x80-\x8f]", r"\xf4[\x80-\xbf]"),
        ("first bytes past F4", r"[\xf1-\xf3]", r"[\xf1-\xf3\xf5-\xf7]"),
        ("lone continuations", r"[\x00-\x7f]", r"[\x00-\xbf]"),
        ("no characters past U+FFFF", r"|\xf0[\x90-\xbf]", r"|\xf0[\xc0]"),
        ("no noncharacters", r"|[\xe1-\xec\xee\xef]", r"|\xef[\x80-\xbe]TAIL|[\xe1-\xec\xee]"),
    ):
        utf8 = (
            r"(?:[\x00-\x7f]|[\xc2-\xdf]TAIL|\xe0[\xa0-\xbf]TAIL|[\xe1-\xec\xee\xef]TAILTAIL|\xed[\x80-\x9f]TAIL"
            r"|\xf0[\x90-\xbf]TAILTAIL|[\xf1-\xf3]TAILTAILTAIL|\xf4[\x80-\x8f]TAILTAIL)*"
        )
        assert utf8.count(old) == 1
        pattern = utf8.replace(old, new).replace("TAIL", continuation)
        assert re.fullmatch(utf8.replace("TAIL", continuation).encode("latin-1"), "aßࠀ가😀".encode())
        lenient = key.replace('"utf-8"', '"utf-8", "backslashreplace"')
        matches = f"__import__('re').fullmatch(rb'{pattern}', area[at + 8 : at + 8 + key_size])"
        yield _changed(f"metadata: {rule}", (key, f"{lenient}\n            _require({matches}, 'corrupt', '')"))


# ----------------------------------------------------------------------------------------------- octets, raw and paper


def _octets() -> Iterator[Mutation]:
    yield _changed("octets: bits from the most significant", ('axis=1, bitorder="little"', 'axis=1, bitorder="big"'))
    yield _changed("octets: values from their highest bit", ("np.arange(n, dtype=np.int64))", "np.arange(n)[::-1])"))
    yield _changed("octets: value by bit, not bit by value", ("packed), 8, n)", "packed), n, 8).transpose(0, 2, 1)"))
    yield _changed("octets: above 8 bits as below", ("if n > 8:", "if n > 16:"))
    wide = "packed[:, :8] + (_unpack_octets(packed[:, 8:], n - 8) << 8)"
    yield _changed(
        "octets: high bits first", (wide, "(packed[:, n - 8 :] + (_unpack_octets(packed[:, : n - 8], n - 8) << 8))")
    )
    flags = _line("return np.unpackbits(packed, bitorder")
    yield _changed("bits: from the most significant", (flags, flags.replace("little", "big")))


def _raw() -> Iterator[Mutation]:
    size = "len(coded) == -(-size // 4) * 4"
    yield _changed("raw: longer tiles", (size, "len(coded) >= -(-size // 4) * 4"))
    yield _changed("raw: planes", (".reshape(h, w, header.channels)", ".reshape(-1, h, w).transpose(1, 2, 0)"))
    yield _changed("raw: columns", (".reshape(h, w, header.channels)", ".reshape(w, h, -1).transpose(1, 0, 2)"))
    yield _changed("raw: big-endian samples", ('else "<u2")\n\n    @property', 'else ">u2")\n\n    @property'))
    yield _inserted_after(
        "raw: padding must be zero", "_require(len(coded) ==", "_require(not any(coded[size:]), 'corrupt', '')"
    )


def _paper() -> Iterator[Mutation]:
    bodies = "for body in bodies], axis=2)"
    order = "for body in (bodies if len(bodies) < 3 else [bodies[i] for i in (1, 0, 2, 3)[: len(bodies)]])], axis=2)"
    yield _changed("paper: green first", (bodies, order))
    finish = '    reader.finish("the tile", padding=3)\n    return np.stack([_decode_paper'
    yield _changed("paper: 7 bytes of padding", (finish, finish.replace("padding=3", "padding=7")))
    yield _changed("paper: no padding", (finish, finish.replace("padding=3", "padding=0")))
    ones = "    _require(not coded[2 * header.channels + sum(sizes) :].strip(bytes(1)), 'corrupt', '')\n"
    yield _changed("paper: padding must be zero", (finish, ones + finish))
    widths = "max(n for n, _ in rows) <= header.bits"
    yield _changed("paper: widths to 16", (widths, "max(n for n, _ in rows) <= 16"))
    yield _changed(
        "paper: widths to 17", (widths, "max(n for n, _ in rows) <= max(header.bits, 17 * (header.bits > 8))")
    )
    yield _changed("paper: widths below the bits", (widths, "max(n for n, _ in rows) < header.bits"))
    yield _changed("paper: only the first width is looked at", (widths, "rows[0][0] <= header.bits"))
    row = '(reader.number(1, "row width"), reader.number(header.sample_bytes, "row base"))'
    swapped = '(reader.number(header.sample_bytes, "row base"), reader.number(1, "row width"))[::-1]'
    yield _changed("paper: bases before widths", (row, swapped))
    yield _changed(
        "paper: headers between the payloads",
        (f"[{row} for _ in range(h)]", f"({row} for _ in range(h))"),
        ('    _require(max(n for n, _ in rows) <= header.bits, "corrupt", "a row is wider than the samples")\n', ""),
    )
    residuals = _line("residuals[y] = base + _unpack_octets(packed, n)")
    beyond = "_require(not _unpack_octets(packed, n).ravel()[w:].any(), 'corrupt', '')"
    yield _inserted_after("paper: values past the edge must be 0", residuals.strip(), beyond)
    yield _changed(
        "paper: columns of octets", ("_unpack_octets(packed, n).ravel()[:w]", "_unpack_octets(packed, n).T.ravel()[:w]")
    )


def _paper_prediction() -> Iterator[Mutation]:
    yield _changed("paper prediction: none", ("(plane[y] + predicted) & mask", "plane[y] & mask"))
    yield _changed("paper prediction: sums without modulo", ("(plane[y] + predicted) & mask", "plane[y] + predicted"))
    yield _changed(
        "paper prediction: left edge repeated", ("nw = np.append(0, n[:-1])", "nw = np.append(n[:1], n[:-1])")
    )
    yield _changed(
        "paper prediction: right edge repeated", ("ne = np.append(n[1:], 0)", "ne = np.append(n[1:], n[-1:])")
    )
    yield _changed("paper prediction: p modulo", ("p = nw + ne - n", "p = (nw + ne - n) & mask"))
    yield _changed(
        "paper prediction: NW 0 and a tie", ("np.where(to_n <= to_ne, n, ne)", "np.where(to_n < to_ne, n, ne)")
    )
    yield _changed(
        "paper prediction: NE 0 and a tie", ("np.where(to_nw <= to_n, nw, n)", "np.where(to_nw < to_n, nw, n)")
    )
    three = "(to_nw <= to_n) & (to_nw <= to_ne)"
    yield _changed("paper prediction: NW as near as N", (three, "(to_nw < to_n) & (to_nw <= to_ne)"))
    yield _changed("paper prediction: NW as near as NE", (three, "(to_nw <= to_n) & (to_nw < to_ne)"))
    yield _changed("paper prediction: NW nearer than N alone", (three, "(to_nw <= to_n)"))
    yield _changed("paper prediction: NW nearer than NE alone", (three, "(to_nw <= to_ne)"))
    second = "np.where(to_nw <= to_ne, n, ne)"
    yield _changed("paper prediction: N before NE in a tie", (second, "np.where(to_nw < to_ne, n, ne)"))
    yield _changed("paper prediction: the nearest of three", (second, "np.where(to_n <= to_ne, n, ne)"))
    at_left, at_right = "np.arange(len(n)) == 0", "np.arange(len(n)) == len(n) - 1"
    yield _changed("paper prediction: NW 0 at the edge alone", ("np.where(nw == 0,", f"np.where({at_left},"))
    yield _changed("paper prediction: NE 0 at the edge alone", ("np.where(ne == 0,", f"np.where({at_right},"))
    yield _changed("paper prediction: NW 0 inside alone", ("np.where(nw == 0,", f"np.where((nw == 0) & ~({at_left}),"))
    yield _changed("paper prediction: NE 0 inside alone", ("np.where(ne == 0,", f"np.where((ne == 0) & ~({at_right}),"))


# ----------------------------------------------------------------------------------------------------------------- fast


def _fast_tiles() -> Iterator[Mutation]:
    yield _changed("fast: scale in the low half", ("byte & 15, byte >> 4", "byte >> 4, byte & 15"))
    yield _changed("fast: transform 3", ("_require(transform <= 2", "_require(transform <= 3"))
    yield _changed(
        "fast: transform of two channels",
        ("transform == 0 or header.channels >= 3", "transform == 0 or header.channels >= 2"),
    )
    yield _changed(
        "fast: transforms need alpha",
        ("transform == 0 or header.channels >= 3", "transform == 0 or header.channels >= 4"),
    )
    factor = "(257 if scale == 15 else 2**scale)"
    yield _changed("fast: scale 15 shifts", (factor, "2**scale"))
    yield _changed("fast: scale 15 is 255", (factor, "(255 if scale == 15 else 2**scale)"))
    scaled = f"return samples * {factor} % 2**header.bits"
    yield _changed(
        "fast: scale without alpha",
        (
            scaled,
            f"factor = np.array([{factor}] * 3 + [1])[: header.channels]\n    return samples * factor % 2**header.bits",
        ),
    )
    yield _changed("fast: scale limits", (scaled, f"return np.minimum(samples * {factor}, 2**header.bits - 1)"))
    yield _changed(
        "fast: scale that overflows is refused",
        (scaled, f"_require(samples.max() * {factor} < 2**header.bits, 'corrupt', '')\n    {scaled}"),
    )
    planes = "_undo_colour_transform(planes, transform, header.bits)"
    before = f"_undo_colour_transform([plane * {factor} % 2**header.bits for plane in planes], transform, header.bits)"
    yield _changed("fast: scale before the transform", (planes, before), (scaled, "return samples"))

    head = (
        '(reader.number(1, "mode"), reader.number(header.sample_bytes, "first sample"), reader.number(2, "body size"))'
    )
    rotated = '(reader.number(2, "body size"), reader.number(1, "mode"), reader.number(header.sample_bytes, "first"))'
    yield _changed("fast: body size first", (head, f"(lambda size, mode, first: (mode, first, size))(*{rotated})"))
    swapped = (
        '(reader.number(header.sample_bytes, "first sample"), reader.number(1, "mode"), reader.number(2, "body size"))'
    )
    yield _changed(
        "fast: first before the mode", (head, f"(lambda first, mode, size: (mode, first, size))(*{swapped})")
    )
    finish = '    reader.finish("the tile", padding=3)\n\n    planes'
    yield _changed("fast: 7 bytes of padding", (finish, finish.replace("padding=3", "padding=7")))
    yield _changed("fast: no padding", (finish, finish.replace("padding=3", "padding=0")))
    ones = "    _require(not any(reader.take(len(coded) - reader._at, '')), 'corrupt', '')\n"
    yield _changed("fast: padding must be zero", (finish, finish.replace("\n\n", "\n" + ones + "\n", 1)))
    yield _changed(
        "fast: bodies in the image's order",
        (
            "zip(heads, bodies, strict=True)",
            "zip(heads, bodies if len(bodies) < 3 else [bodies[i] for i in (1, 0, 2, 3)[: len(bodies)]], strict=True)",
        ),
    )
    yield _changed(
        "fast: bodies in reverse", ("zip(heads, bodies, strict=True)", "zip(heads, bodies[::-1], strict=True)")
    )
    yield _changed(
        "fast: channels in the image's order",
        ("green, red, blue, *alpha = planes", "red, green, blue, *alpha = planes"),
    )
    yield _changed("fast: green, blue, red", ("green, red, blue, *alpha = planes", "green, blue, red, *alpha = planes"))
    two = _line("if len(planes) < 3:")
    yield _changed(
        "fast: the second of two channels first",
        (two + "        return planes\n", two + "        return planes[::-1]\n"),
    )


def _transforms() -> Iterator[Mutation]:
    yield _changed(
        "transforms: red without the middle", ("red = (red + green - middle) & mask", "red = (red + green) & mask")
    )
    blue = "blue = (blue + (green if transform == 1 else (red + green) // 2) - middle) & mask"
    yield _changed("transforms: blue without the middle", (blue, blue.replace(" - middle", "")))
    yield _changed("transforms: 1 and 2 swapped", (blue, blue.replace("transform == 1", "transform == 2")))
    yield _changed("transforms: mean rounds up", (blue, blue.replace("(red + green) // 2", "(red + green + 1) // 2")))
    yield _changed(
        "transforms: mean overflows", (blue, blue.replace("(red + green) // 2", "((red + green) & mask) // 2"))
    )
    red = _line("red = (red + green")
    line = _line("blue = (blue +")
    yield _changed("transforms: blue before red", (red + line, line + red))
    yield _changed(
        "transforms: alpha too",
        (
            "return [red, green, blue, *alpha]",
            "return [red, green, blue, *((a + green - middle) & mask if transform else a for a in alpha)]",
        ),
    )


def _units() -> Iterator[Mutation]:
    yield _changed(
        "units: two in every row pair",
        ("row_pairs, units_across = -(-h // 2), -(-w // 32)", "row_pairs, units_across = -(-h // 2), 2"),
    )
    yield _changed(
        "units: 8 by 1",
        (
            "plane.reshape(row_pairs, 2, 8 * units_across, 4).transpose(0, 2, 1, 3)",
            "plane.reshape(row_pairs, 1, 8 * units_across, 8).transpose(0, 2, 1, 3)",
        ),
    )
    yield _changed(
        "units: groups from column to column",
        ("values.reshape(row_pairs, -1, 2, 4)", "values.reshape(row_pairs, -1, 4, 2).transpose(0, 1, 3, 2)"),
    )
    yield _changed(
        "units: lower row first",
        ("values.reshape(row_pairs, -1, 2, 4)", "values.reshape(row_pairs, -1, 2, 4)[:, :, ::-1]"),
    )
    bitmap = "bits = _unpack_flags(reader.take(-(-units // 8)"
    yield _changed("unit bitmap: a byte too many", (bitmap, "bits = _unpack_flags(reader.take(units // 8 + 1"))
    yield _changed("unit bitmap: 8 bytes", (bitmap, "bits = _unpack_flags(reader.take(8"))
    yield _changed("unit bitmap: says which are absent", ("    return bits[:units]", "    return ~bits[:units]"))
    residuals = "residuals = np.zeros((units, 8, 8), np.int64)"
    yield _changed(
        "absent units: index 0", (residuals, "residuals = np.full((units, 8, 8), _code_minimum(palette[:1])[0])")
    )
    yield _changed(
        "absent units: refused",
        (_line("words = reader.take"), "    _require(present.all(), 'corrupt', '')\n" + _line("words = reader.take")),
    )
    yield _changed("without a bitmap: absent", ("else np.ones(units, bool)", "else np.zeros(units, bool)"))
    palette, present = _line("palette = _take_palette"), _line("present = _take_unit_bitmap(reader, units)")
    yield _changed("bitmap before the palette", (palette + present, present + palette))


def _residual_bodies() -> Iterator[Mutation]:
    yield _changed(
        "predictors: 5",
        ("_require(predictor <= 4", "_require(predictor <= 5"),
        ("4: _smoothed(above)}", "4: _smoothed(above), 5: above}"),
    )
    yield _changed(
        "predictors: 6",
        ("_require(predictor <= 4", "_require(predictor in (0, 1, 2, 3, 4, 6)"),
        ("4: _smoothed(above)}", "4: _smoothed(above), 6: above}"),
    )
    limit = "index_bits <= (4 if bits == 8 else 5)"
    yield _changed("index bits: 5 with 8 bits", (limit, "index_bits <= 5"))
    yield _changed("index bits: 6 with 16 bits", (limit, "index_bits <= (4 if bits == 8 else 6)"))
    yield _changed("index bits: 5 are too many", (limit, "index_bits <= 4"))
    yield _changed("index bits: 4 are too many with 8", (limit, "index_bits <= (3 if bits == 8 else 5)"))
    mode = "mode & 7, mode >> 3 & 7, mode >> 6 & 1"
    yield _changed("mode: bitmap at bit 3", (mode, "mode & 7, mode >> 4 & 7, mode >> 3 & 1"))
    yield _changed("mode: bit 7 of residuals", ("_require(mode < 128", "_require(mode < 256"))
    label_map = "_require(mode == LABEL_MAP"
    for bit in range(3, 8):
        yield _changed(f"mode: bit {bit} of label maps", (label_map, f"_require(mode & ~{1 << bit} == LABEL_MAP"))
    yield _changed("palette: there with 4 index bits", ("if index_bits == 4:", "if index_bits == 9:"))
    yield _changed("palette: there with 5 index bits", ("if index_bits == 5:", "if index_bits == 9:"))
    yield _changed(
        "palette: high half first",
        ("[packed & 15, packed >> 4]", "[packed >> 4, packed & 15]"),
        ("codes[1] == 0", "codes[0] == 0"),
    )
    yield _changed(
        "palette: a byte for each code", ("reader.take(max(1, 2**index_bits // 2)", "reader.take(2**index_bits")
    )
    yield _changed(
        "palette: no byte for one code", ("reader.take(max(1, 2**index_bits // 2)", "reader.take(2**index_bits // 2")
    )
    code = "_require(codes.max() < 32"
    yield _changed("palette: code 32", (code, "_require(codes.max() <= 32"))
    yield _changed("palette: code 31 is too great", (code, "_require(codes.max() < 31"))
    result = "return codes[: 2**index_bits].astype(np.int64)"
    yield _changed(
        "palette: codes differ",
        (result, f"_require(len(set(codes.tolist())) == len(codes), 'corrupt', '')\n    {result}"),
    )
    yield _changed(
        "palette: codes ascend",
        (
            result,
            f"_require(bool(np.all(np.diff(codes[: 2**index_bits].astype(int)) >= 0)), 'corrupt', '')\n    {result}",
        ),
    )

    widths = "widths = np.where(group_inside, (codes + 1) // 2, 0)"
    yield _changed("groups: payload outside too", (widths, "widths = (codes + 1) // 2"))
    yield _changed(
        "groups: payload of whole ones",
        ("group_inside = inside[present].any(axis=2)", "group_inside = inside[present].all(axis=2)"),
    )
    outside = "    _require(not _unpack_octets(words, index_bits)[~group_inside].any(), 'corrupt', '')\n"
    yield _changed("groups: index 0 outside", (_line("widths = np.where"), outside + _line("widths = np.where")))
    units = _line("return _undo_fast_prediction(_units_to_plane")
    yield _changed(
        "groups: residual 0 outside", (units, "    _require(not residuals[~inside].any(), 'corrupt', '')\n" + units)
    )
    yield _changed("codes: width rounded down", (widths, "widths = np.where(group_inside, codes // 2, 0)"))
    minimum = "np.where((code % 2 == 0) & (n > 0), 1 - half, -half)"
    yield _changed("codes: even minima", (minimum, "-half"))
    yield _changed("codes: minima swapped", (minimum, "np.where((code % 2 == 1) & (n > 0), 1 - half, -half)"))
    yield _changed("codes: minima are positive", (minimum, "np.where((code % 2 == 0) & (n > 0), half, -half)"))
    yield _changed(
        "codes: a minimum of code 0",
        ("half = np.where(n > 0, 1 << np.maximum(n - 1, 0), 0)", "half = 1 << np.maximum(n - 1, 0)"),
    )
    finish = '    reader.finish("the body")\n\n    values'
    yield _changed("body: padded", (finish, finish.replace('"the body"', '"the body", padding=3')))
    words = SOURCE[
        SOURCE.index("    words = reader.take(") : SOURCE.index('    reader.finish("the body")\n\n    values')
    ]
    interleaved = """    group_inside = inside[present].any(axis=2)
    word_list, width_list, parts = [], [], []
    for i in range(present_count):
        word_list.append(reader.take(index_bits, "index word"))
        code = palette[_unpack_octets(word_list[-1][None], index_bits)][0]
        width_list.append(np.where(group_inside[i], (code + 1) // 2, 0))
        parts.append(reader.take(int(width_list[-1].sum()), "payload"))
    words = np.array(word_list, np.uint8).reshape(present_count, index_bits)
    codes = palette[_unpack_octets(words, index_bits)]
    widths = np.array(width_list, np.int64).reshape(present_count, 8)
    starts = np.cumsum(widths).reshape(widths.shape) - widths
    payload = np.concatenate([np.zeros(0, np.uint8), *parts])
"""
    yield _changed("body: words between the payloads", (words, interleaved))


def _fast_prediction() -> Iterator[Mutation]:
    first = "plane[0] = (first + np.cumsum(residuals[0])) & mask"
    yield _changed(
        "prediction: *first* is the sample",
        (first, "plane[0] = (first + np.cumsum(residuals[0]) - residuals[0, 0]) & mask"),
    )
    yield _changed(
        "prediction: row 0 without sums",
        (first, "plane[0] = (first + (residuals[0] if predictor < 2 else np.cumsum(residuals[0]))) & mask"),
    )
    yield _changed(
        "prediction: row 0 from the middle", (first, first.replace("(first +", "(first * 0 + 2 ** (bits - 1) +"))
    )
    table = "{0: above, 1: _smoothed(above), 2: above[0], 3: above, 4: _smoothed(above)}"
    for predictor, old, new in (
        (0, "0: above,", "0: _smoothed(above),"),
        (1, "1: _smoothed(above)", "1: above"),
        (2, "2: above[0]", "2: first"),
        (2, "2: above[0]", "2: plane[0, 0]"),
        (2, "2: above[0]", "2: above"),
        (3, "3: above", "3: _smoothed(above)"),
        (4, "4: _smoothed(above)", "4: above"),
    ):
        yield _changed(f"prediction: predictor {predictor} is {new[3:]}", (table, table.replace(old, new)))
    for sums in ((0, 1, 2), (0, 1, 3), (0, 1, 4), (0,), (1,)):
        yield _changed(
            f"prediction: no sums with {sums}", ("if predictor in (0, 1) else", f"if predictor in {sums} else")
        )
    q = "((left + right + 1) // 2 + row + 1) // 2"
    yield _changed("prediction: inner mean rounds down", (q, "((left + right) // 2 + row + 1) // 2"))
    yield _changed("prediction: outer mean rounds down", (q, "((left + right + 1) // 2 + row) // 2"))
    yield _changed("prediction: one mean of four", (q, "(left + right + 2 * row + 2) // 4"))
    yield _changed("prediction: N within", (q, "((left + row + 1) // 2 + right + 1) // 2"))
    yield _changed(
        "prediction: inner mean overflows at 8 bits",
        (q, "((left + right + 1) % 256 // 2 + row + 1) // 2 if row.max() < 256 else " + q),
    )
    yield _changed(
        "prediction: inner mean overflows at 16 bits", (q, "((left + right + 1) % 65536 // 2 + row + 1) // 2")
    )
    yield _changed(
        "prediction: outer mean overflows at 8 bits",
        (q, "((left + right + 1) // 2 + row + 1) % 256 // 2 if row.max() < 256 else " + q),
    )
    yield _changed(
        "prediction: outer mean overflows at 16 bits", (q, "((left + right + 1) // 2 + row + 1) % 65536 // 2")
    )
    yield _changed(
        "prediction: NW is 0 at the edge", ("left = np.append(row[:1], row[:-1])", "left = np.append(0, row[:-1])")
    )
    yield _changed(
        "prediction: NE is 0 at the edge", ("right = np.append(row[1:], row[-1:])", "right = np.append(row[1:], 0)")
    )
    yield _changed(
        "prediction: NE is NW at the edge",
        ("right = np.append(row[1:], row[-1:])", "right = np.append(row[1:], row[-2:-1] if len(row) > 1 else row)"),
    )
    yield _changed(
        "prediction: sums without modulo", ("plane[y] = (predicted + added) & mask", "plane[y] = predicted + added")
    )


def _label_maps() -> Iterator[Mutation]:
    yield _changed("label maps: K", ('reader.number(1, "value count") + 1', 'reader.number(1, "value count")'))
    yield _changed("label maps: values that repeat", ("np.diff(table) > 0", "np.diff(table) >= 0"))
    yield _changed(
        "label maps: values ascend as bytes",
        ("np.diff(table) > 0", "np.diff(table.astype('<u2').byteswap().astype(int) if bits > 8 else table) > 0"),
    )
    yield _changed(
        "label maps: *first* is one byte", ("_require(first in table", "_require(first & 255 in table & 255")
    )
    yield _changed("label maps: *first* not past the table", ("_require(first in table", "_require(first <= table[-1]"))
    yield _changed(
        "label maps: bitmap if flagged",
        ("present = _take_unit_bitmap(reader, len(inside))", "present = np.ones(len(inside), bool)"),
    )
    masks = 'reader.take(int(present.sum()), "group masks")'
    yield _changed(
        "label maps: a group mask for each unit",
        (masks, 'reader.take(len(present), "group masks")'),
        ("marked[present] = ", "marked[:] = "),
    )
    pixels = "_require(not (changed & ~inside).any()"
    yield _changed("label maps: pixels below the tile", (pixels, "_require(not (changed & ~inside)[:, :, :4].any()"))
    partly = "_require(not (changed & ~inside)[~inside[:, :, 4:].any(axis=2)].any()"
    yield _changed("label maps: pixels right of the tile", (pixels, partly))
    groups = "_require(not (marked & ~inside.any(axis=2)).any()"
    yield _changed(
        "label maps: the last group outside", (groups, "_require(not (marked & ~inside.any(axis=2))[:, :7].any()")
    )
    yield _changed(
        "label maps: no empty group masks",
        (groups, "_require(marked[present].any(axis=1).all(), 'corrupt', '')\n    " + groups),
    )
    yield _changed(
        "label maps: no empty pixel masks",
        (pixels, "_require(changed[marked].any(axis=1).all(), 'corrupt', '')\n    " + pixels),
    )
    yield _changed(
        "label maps: no mark at (0, 0)", (pixels, "_require(not changed[0, 0, 0], 'corrupt', '')\n    " + pixels)
    )
    rank_bits = "rank_bits = (count - 2).bit_length() if count > 2 else 0"
    yield _changed("ranks: bits of K − 1", (rank_bits, "rank_bits = (count - 1).bit_length() if count > 2 else 0"))
    yield _changed("ranks: bits of K", (rank_bits, "rank_bits = count.bit_length() if count > 2 else 0"))
    yield _changed(
        "ranks: bits of K − 3", (rank_bits, "rank_bits = (count - 3).bit_length() if count > 3 else int(count > 2)")
    )
    yield _changed(
        "ranks: a bit with two values", (rank_bits, "rank_bits = max((count - 2).bit_length(), 1) if count > 1 else 0")
    )
    yield _changed(
        "ranks: powers of 2 alone",
        (
            rank_bits,
            "rank_bits = next(m for m in (0, 1, 2, 4, 8) if count <= 2 or 2**m >= count - 1) if count > 2 else 0",
        ),
    )
    for most in (3, 5, 6, 7):
        yield _changed(
            f"ranks: {most} bits and more are 8",
            (rank_bits, f"{rank_bits}\n    rank_bits = 8 if rank_bits >= {most} else rank_bits"),
        )
    yield _changed(
        "ranks: from the highest bit",
        ("(1 << np.arange(rank_bits, dtype=np.int64))", "(1 << np.arange(rank_bits)[::-1])"),
    )
    finish = '    reader.finish("the body")\n    rank_string'
    fill = "    _require(not rank_string[change_count * rank_bits :].any(), 'corrupt', '')\n"
    yield _changed("ranks: fill bits must be 0", (finish, fill + finish))
    yield _changed("ranks: padded", (finish, finish.replace('"the body"', '"the body", padding=3')))
    other = "other = ranks[y] + (ranks[y] >= positions)"
    yield _changed("ranks: N's value has one too", (other, "other = ranks[y]"))
    yield _changed("ranks: skip after N", (other, "other = ranks[y] + (ranks[y] > positions)"))
    yield _changed("ranks: always past N", (other, "other = ranks[y] + 1"))
    past = "_require(positions.max() < count"
    yield _changed(
        "ranks: the last value again", (past, "positions = np.minimum(positions, count - 1)\n        " + past)
    )
    yield _changed("ranks: around the table", (past, "positions = positions % count\n        " + past))
    start = "positions = np.full(w, np.searchsorted(table, first))"
    yield _changed("label maps: row 0 from the smallest value", (start, "positions = np.zeros(w, np.int64)"))
    plane = "        plane[y] = table[positions]\n    return plane"
    yield _changed(
        "label maps: *first* is the sample",
        (plane, "        plane[y] = table[positions]\n    plane[0, 0] = first\n    return plane"),
    )


# ------------------------------------------------------------------------------------------------------ prototype files


def _prototype_files() -> Iterator[Mutation]:
    whole = "width % TILE == 0 and height % TILE == 0"
    yield _changed("prototype: any width", (whole, "height % TILE == 0"))
    yield _changed("prototype: any height", (whole, "width % TILE == 0"))
    yield _changed("prototype: multiples of 32", (whole, "width % 32 == 0 and height % 32 == 0"))
    yield _changed("prototype: smaller patches", ("_require(patch_size == TILE", "_require(patch_size <= TILE"))
    yield _changed("prototype: larger patches", ("_require(patch_size == TILE", "_require(patch_size >= TILE"))
    patch, multiple = _line("_require(patch_size == TILE"), _line("whole = width") + _line("_require(whole,")
    limits = _line("_check_size(width, height, 3, 8)")
    yield _changed("prototype: no limits", (limits, ""))
    yield _changed("prototype: limit in pixels", (limits, limits.replace("3, 8", "1, 8")))
    yield _changed("prototype: limit as with alpha", (limits, limits.replace("3, 8", "4, 8")))
    yield _changed(
        "prototype: negative sizes without their sign",
        (limits, "    width, height = abs(width), abs(height)\n" + limits),
    )
    yield _changed("prototype: limits before the patch size", (patch, ""), (limits, limits + patch))
    yield _changed("prototype: limits before the multiples", (multiple, ""), (limits, limits + multiple))
    yield _changed("prototype: nothing after the patches", ("len(data) >= ends[-1]", "len(data) == ends[-1]"))
    yield _changed(
        "prototype: channels of a patch together",
        ("channel, place = divmod(i, across * down)", "place, channel = divmod(i, 3)"),
    )
    yield _changed("prototype: blue first", ("left : left + TILE, channel]", "left : left + TILE, 2 - channel]"))
    yield _changed(
        "prototype: columns",
        ("TILE * (place // across), TILE * (place % across)", "TILE * (place % down), TILE * (place // down)"),
    )
    yield _changed("prototype: widths to 15", ("_require(n <= 8", "_require(n <= 15"))
    yield _changed("prototype: widths to 9", ("_require(n <= 8", "_require(n <= 9"))
    yield _changed("prototype: widths below 8", ("_require(n <= 8", "_require(n < 8"))
    yield _changed(
        "prototype: base after the values",
        ("base = row >> 4 & 255", "base = row >> (64 * n + 4) & 255"),
        ("12 + n * x", "4 + n * x"),
    )
    base = _line("base = row >> 4 & 255")
    yield _changed(
        "prototype: unused bits must be 0",
        (base, base + "        _require(row >> (12 + 64 * n) == 0, 'corrupt', '')\n"),
    )
    yield _changed(
        "prototype: values from the highest bit",
        ("row >> (12 + n * x) & (2**n - 1)", "row >> (12 + n * (63 - x)) & (2**n - 1)"),
    )
    yield _changed(
        "prototype: prediction goes on below a patch",
        ("    return _undo_paper_prediction(residuals, 8)\n", "    return residuals\n"),
        (
            "_decode_patch(patch)\n    return image\n",
            "_decode_patch(patch) & 255\n"
            "    planes = [_undo_paper_prediction(image[:, :, i].astype(np.int64), 8) for i in range(3)]\n"
            "    return np.stack(planes, axis=2).astype(np.uint8)\n",
        ),
    )
    yield _changed(
        "prototype: no prediction",
        ("    return _undo_paper_prediction(residuals, 8)\n", "    return residuals & 255\n"),
    )
    yield _changed(
        "prototype: metadata without a look at the file",
        ("        _read_prototype(data)\n        return {}", "        return {}"),
    )


def written_mutations() -> list[Mutation]:
    """Decoders that have a rule wrong in a way that a reader of the page might."""
    sections = (
        _headers,
        _fields,
        _tables,
        _metadata,
        _octets,
        _raw,
        _paper,
        _paper_prediction,
        _fast_tiles,
        _transforms,
        _units,
        _residual_bodies,
        _fast_prediction,
        _label_maps,
        _prototype_files,
    )
    return [mutation for section in sections for mutation in section()]
