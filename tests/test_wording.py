"""Counts with their nouns, in the texts of all rooms.

Method: examples; and every text of the package is searched for a number that is followed by a
plural, because the number may be one.
"""

import re
from pathlib import Path

import pytest

from headrace.wording import counted

PACKAGE = Path(__file__).parent.parent / "headrace"
#: A value within a text, and a noun that goes with one record as well as with many.
PLURAL = re.compile(
    r"(?:\{[^{}]*\}|%d) (?:records|rows|offsets|partitions|members|segments|files|duplicates)\b"
)
#: What can never be one.
LARGE = re.compile(
    r"MAX_|raise RuntimeError|cannot have|cannot poll|what = f|it has \{old\.partitions\}"
)


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(0, "row", "0 rows"), (1, "row", "1 row"), (2, "row", "2 rows"), (2000, "row", "2,000 rows")],
)
def test_a_noun_goes_with_its_count(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text


def test_a_plural_of_its_own_is_used() -> None:
    assert (counted(1, "index", "indexes"), counted(3, "index", "indexes")) == (
        "1 index",
        "3 indexes",
    )


def test_no_text_has_a_plural_behind_a_number_that_may_be_one() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PLURAL.search(line) and not LARGE.search(line)
    ]
    assert found == []
