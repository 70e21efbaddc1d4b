"""The caret stands under the place, whatever stands before it."""

import pytest

from headrace.cli.excerpts import excerpt
from headrace.errors import Location


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [
        ("SELECT idd", 8, ["    SELECT idd", "           ^"]),
        ("\tSELECT x", 9, ["    \tSELECT x", "    \t       ^"]),
        ("'日本' x", 6, ["    '日本' x", "           ^"]),
        ("e\u0301 x", 4, ["    e\u0301 x", "      ^"]),
        ("ends here", 10, ["    ends here", "             ^"]),
        ("with a return\r", 6, ["    with a return", "         ^"]),
    ],
)
def test_the_caret_stands_under_the_place(line: str, column: int, expected: list[str]) -> None:
    assert list(excerpt(f"first\n{line}\nlast", Location("f", 2, column))) == expected


def test_of_a_long_line_only_what_is_around_the_place_is_shown() -> None:
    line = "x" * 500 + "!" + "y" * 500
    shown, caret = excerpt(line, Location("f", 1, 501))
    assert len(shown) < 120
    assert shown[caret.index("^")] == "!"
    assert shown.strip().startswith("...x")
    assert shown.endswith("y...")


def test_a_place_that_is_not_there_is_not_shown() -> None:
    assert excerpt("one line", Location("f", 2, 1)) == ()
    assert excerpt("one line", Location("f", 1, 50)) == ()
