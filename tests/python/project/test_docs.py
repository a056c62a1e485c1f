"""The pages in Markdown: prose lines are short, and every example has its place in the gallery."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WIDTH = 120  # columns
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
]


def prose(text: str) -> list[tuple[int, str]]:
    """The lines of a page, numbered from 1, that are neither in a code block nor a table nor made by a program."""
    lines = []
    fence = ""
    generated = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        mark = re.match("`{3,}|:{3,}", stripped)
        if fence:
            fence = "" if stripped == fence else fence
        elif mark:
            fence = mark[0]
        elif stripped.startswith("<!--"):
            generated = stripped.startswith("<!-- table:")
        elif not generated and not stripped.startswith("|"):
            lines.append((number, line))
    return lines


def test_prose_leaves_out_code_tables_and_what_programs_write():
    code, table = "```c\ncode\n```\n", "| a | b |\n<!-- table: x -->\n- made\n<!-- end -->\n"
    assert prose(f"one\n{code}two\n{table}  ```\n  code\n  ```\nthree\n") == [(1, "one"), (5, "two"), (13, "three")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_are_short(page):
    long = [(number, len(line)) for number, line in prose(page.read_text(encoding="utf-8")) if len(line) > WIDTH]
    assert not long, f"{page}: (line, columns)"


def test_the_gallery_has_every_example_with_its_command_and_its_source():
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "examples").glob("*.py")):
        assert f"](../examples/{path.name})" in page
        assert re.search(rf"^python examples/{path.name}\b", page, re.MULTILINE)
        assert f"{{literalinclude}} ../examples/{path.name}\n" in page


def test_the_files_on_the_way_of_an_image_exist():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = re.findall(r"`([\w/]+\.(?:py|cc|cu|h))`", page[page.index("## One image") :])
    assert len(names) > 20
    missing = [name for name in names if not any((ROOT / base / name).is_file() for base in ("python/dali_l3", "csrc"))]
    assert not missing
