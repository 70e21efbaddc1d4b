"""Tables fit the terminal: numbers and times stay whole, long texts end with …, nothing else goes.

Method: tables of values as golden text at 80 columns, and random columns against what is promised.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.text.layout import GAP, TEXT_FLOOR, Column, fit_widths
from headrace.cli.text.output import make_answer, make_records, make_table, show_renderable, wrap

COLUMNS = st.builds(Column, st.integers(1, 40), st.integers(0, 400), st.booleans())


@given(columns=st.lists(COLUMNS, min_size=1, max_size=12), room=st.integers(40, 200))
def test_columns_fit_and_rigid_ones_are_whole(columns: list[Column], room: int) -> None:
    widths = fit_widths(columns, room)
    gaps = GAP * (len(columns) - 1)
    if widths is None:
        assert sum(column.least for column in columns) + gaps > room
        return
    assert sum(widths) + gaps <= room
    for width, column in zip(widths, columns, strict=True):
        assert column.least <= width <= column.wanted
        assert not column.rigid or width >= column.value_width
        assert width >= min(column.value_width, TEXT_FLOOR)
    if sum(widths) + gaps < room:  # there was room for more: nothing was cut
        assert widths == [column.wanted for column in columns]


PRODUCTS = [
    ["85123A", "WHITE HANGING HEART T-LIGHT HOLDER", 8466, "3.07", "2011-01-25T12:52:00Z", True],
    ["21212", None, -12345678, None, "2011-01-25T11:57:00.000500Z", False],
    ["22086", "PAPER CHAIN KIT 50'S CHRISTMAS 漢字\n\x1b[31m", 0, "2.95", None, None],
]
NAMES = ["code", "description", "sold", "price", "last_sold", "_closed"]
NUMBERS = [False, False, True, True, False, False]
RIGID = [False, False, False, False, True, True]


def shown(capsys: pytest.CaptureFixture[str], renderable: object) -> str:
    show_renderable(renderable)
    return capsys.readouterr().out


def test_an_answer_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    table = make_answer(NAMES, PRODUCTS, right=NUMBERS, rigid=RIGID, width=80)
    assert shown(capsys, table) == (
        "code    description            sold  price  last_sold                    _closed\n"
        "────────────────────────────────────────────────────────────────────────────────\n"
        "85123A  WHITE HANGING H…       8466   3.07  2011-01-25T12:52:00Z         true\n"
        "21212   NULL              -12345678   NULL  2011-01-25T11:57:00.000500Z  false\n"
        "22086   PAPER CHAIN KIT…          0   2.95  NULL                         NULL\n"
    )


def test_columns_that_do_not_fit_become_lines_and_nothing_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [*NAMES, "first_sold"]
    rows = [[*row, "2010-12-01T08:26:00Z"] for row in PRODUCTS[1:]]
    right, rigid = [*NUMBERS, False], [*RIGID, True]
    table = make_answer(names, rows, right=right, rigid=rigid, width=80)
    assert shown(capsys, table) == (
        "── row 1 ───────────────────────────────\n"
        "code         21212\n"
        "description  NULL\n"
        "sold         -12345678\n"
        "price        NULL\n"
        "last_sold    2011-01-25T11:57:00.000500Z\n"
        "_closed      false\n"
        "first_sold   2010-12-01T08:26:00Z\n"
        "── row 2 ───────────────────────────────\n"
        "code         22086\n"
        "description  PAPER CHAIN KIT 50'S CHRISTMAS 漢字\\n\\x1b[31m\n"
        "sold         0\n"
        "price        2.95\n"
        "last_sold    NULL\n"
        "_closed      NULL\n"
        "first_sold   2010-12-01T08:26:00Z\n"
    )
    folded = shown(capsys, make_records(["text"], [["x" * 100]], width=60))
    assert folded.splitlines()[1:] == [f"text  {'x' * 54}", f"      {'x' * 46}"]


def test_numbers_that_are_too_many_are_whole_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [[10**18 + at for at in range(6)]]
    table = shown(capsys, make_table("", [f"number_{at}" for at in range(6)], rows, width=80))
    assert table.splitlines()[2].split() == [str(value) for value in rows[0]]


def test_sentences_are_broken_between_words_and_drawings_are_not() -> None:
    text = "error: the column total_of_all is not there\n  7 | SELECT total_of_all FROM somewhere"
    assert wrap(text, 30) == (
        "error: the column total_of_all\nis not there\n  7 | SELECT total_of_all FROM somewhere"
    )
    command = f"see {'/long' * 10}: it is there"
    assert wrap(command, 20) == f"see\n{'/long' * 10}:\nit is there"
