"""docs/format.md: what can be computed in it is right, and its examples are the files that it says they are."""

import json
import re
from pathlib import Path

import pytest

from oracle import decoder, writer

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
DATA = ROOT / "tests" / "data"


def table(first_header: str) -> list[list[str]]:
    """The cells of the rows of the only table whose header starts so."""
    (start,) = (match.end() for match in re.finditer(rf"^\| {re.escape(first_header)} \|.*\n\|[ |-]*\n", PAGE, re.M))
    rows = PAGE[start:].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def integer(text: str) -> int:
    return int(text.replace("−", "-"))


@pytest.mark.parametrize("name", ["annotated-fast", "annotated-label-map"])
def test_annotated_file(name):
    """Every line of hexadecimal bytes has a comment, but for a second line of the trailer; the picture shows G."""
    example = PAGE[PAGE.index(f"\n`{name}.l3`") :]
    picture, dump = re.findall(r"```text\n(.*?)```", example, re.S)[:2]
    lines = [re.fullmatch(r"((?:[0-9A-F]{2} )*[0-9A-F]{2})(?:  +(\S.*))?", line) for line in dump.splitlines()]
    shown = bytes.fromhex("".join(line.group(1) for line in lines))
    assert shown == (DATA / "golden" / f"{name}.l3").read_bytes()
    assert len(shown) < 200
    assert all(line.group(2) for line in lines[:-1])
    image = writer.as_pixels(decoder.decode(shown, verify=True))
    green = image[:, :, image.shape[2] // 2]
    assert [[int(value) for value in row.split()] for row in picture.splitlines()] == green.tolist()
    if image.shape[2] == 3:
        assert (image[:, :, 0] == green + 50).all()
        assert (image[:, :, 2] == green - 5).all()


def test_table_of_the_header():
    rows = table("offset")
    sizes = {"8 bytes": 8, "u8": 1, "u16": 2, "u32": 4}
    end = 0
    for offset, kind, *_ in rows:
        assert int(offset) == end
        end += sizes[kind]
    assert end == decoder.HEADER_SIZE


def test_table_of_codes():
    rows = table("code")
    codes = {int(row[i]): (int(row[i + 1]), integer(row[i + 2])) for row in rows for i in (0, 4)}
    assert codes == {code: writer.code_range(code) for code in range(32)}


def test_table_of_rank_bits():
    (start,) = (match.start() for match in re.finditer(r"^\| K \|", PAGE, re.M))
    counts, _, widths = ([cell.strip() for cell in row.split("|")[2:-1]] for row in PAGE[start:].splitlines()[:3])
    stated = {}
    for text, width in zip(counts, widths, strict=True):
        first, last = map(int, re.split(r", | … ", text)) if not text.isdigit() else (int(text), int(text))
        stated |= dict.fromkeys(range(first, last + 1), int(width))
    assert stated == {k: 0 if k <= 2 else next(m for m in range(9) if 2**m >= k - 1) for k in range(1, 257)}


def test_classes_are_those_of_the_broken_files():
    start = PAGE.index("## What a decoder must check")
    classes = set(re.findall(r"^\| \d+ \|[^|]*\| \*(\w+)\* \|", PAGE[start:], re.M))
    broken = json.loads((DATA / "broken.json").read_text(encoding="utf-8"))
    assert classes == {status for verdicts in broken.values() for status in verdicts.values()} - {"ok"}


def test_prose_lines_are_short():
    long = [line for line in PAGE.splitlines() if len(line) > 120 and not line.startswith("|")]
    assert not long
