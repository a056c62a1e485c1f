"""Numbers and nouns agree."""

from dali_l3.wording import counted


def test_counted():
    assert [counted(number, "file") for number in (0, 1, 2, 11, 21)] == [
        "0 files",
        "1 file",
        "2 files",
        "11 files",
        "21 files",
    ]
    assert [counted(number, "reduced copy", "reduced copies") for number in (1, 2)] == [
        "1 reduced copy",
        "2 reduced copies",
    ]
