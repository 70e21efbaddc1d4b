"""SQL set for people is the same SQL: only white space between tokens changes.

Method: the queries of the golden plans, and texts with quotes in them, are set at several widths;
their tokens are compared with those before, by a reader that knows quotes and nothing else.
"""

import re
from pathlib import Path

import pytest

from headrace.plan.explain_text import explanation_text
from headrace.plan.layout import lay_out

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.txt"))
TOKEN = re.compile(r"'(?:\\.|[^'\\])*'|`[^`]*`|\"[^\"]*\"|\w+|[^\w\s]")


def queries() -> list[str]:
    found = []
    for file in GOLDEN:
        for label in ("spark", "final"):
            block = re.search(rf"^    {label} +(.*\n(?: {{15}}.*\n)*)", file.read_text(), re.M)
            assert block is not None
            found.append(" ".join(block[1].split()))
    return found


@pytest.mark.parametrize("width", [40, 85, 200])
def test_only_white_space_changes(width: int) -> None:
    given = queries()
    assert len(given) == 2 * len(GOLDEN)
    for sql in given:
        lines = lay_out(sql, width)
        assert TOKEN.findall("\n".join(lines)) == TOKEN.findall(sql)
        # At 40 some texts in quotes alone are longer.
        assert width == 40 or max(map(len, lines)) <= width


def test_clauses_begin_lines_and_nesting_indents() -> None:
    sql = (
        "SELECT a, count(*) AS window FROM (SELECT *, CASE WHEN a > 1 AND b BETWEEN 2 AND 3 THEN "
        "'x  FROM (y' WHEN c THEN d END AS `GROUP BY` FROM t) WHERE a = 'it\\'s' GROUP BY a"
    )
    assert lay_out(sql, 40) == [
        "SELECT a, count(*) AS window",
        "FROM (",
        "  SELECT",
        "    *,",
        "    CASE",
        "      WHEN a > 1 AND b BETWEEN 2 AND 3",
        "        THEN 'x  FROM (y'",
        "      WHEN c THEN d",
        "    END AS `GROUP BY`",
        "  FROM t",
        ")",
        "WHERE a = 'it\\'s'",
        "GROUP BY a",
    ]
    assert lay_out("SELECT 1", 40) == ["SELECT 1"]
    assert lay_out("", 40) == []


def test_a_backslash_ends_no_text_where_it_is_itself() -> None:
    sql = "SELECT 'a\\' AS x, 'b  c' AS yyyyyyyyyyyyyyyyyyyyyyyy FROM t"
    assert lay_out(sql, 40, backslashes=False)[1:] == [
        "  'a\\' AS x,",
        "  'b  c' AS yyyyyyyyyyyyyyyyyyyyyyyy",
        "FROM t",
    ]


def test_deep_nesting_is_filled_not_indented_for_ever() -> None:
    sql = "f(x + " * 300 + "1" + ")" * 300
    lines = lay_out(sql, 80)
    assert TOKEN.findall("\n".join(lines)) == TOKEN.findall(sql)
    assert max(len(line) - len(line.lstrip()) for line in lines) <= 60


def test_the_branches_of_a_view_stand_under_their_own_headings() -> None:
    def fold(query: str) -> dict[str, object]:
        return {
            "stage": "fold",
            "keys": {"k0": "a"},
            "aggregates": [],
            "outputs": [{"name": "a", "expression": "k0", "evaluator": "store"}],
            "having": None,
            "having_evaluator": None,
            "evaluated": {},
            "retention_us": None,
            "spark_query": query,
            "prepared": True,
            "folded_by": {"short": "spark", "long": "spark"},
            "table": "v__1",
            "columns": {"k0": "INT"},
            "public_select": "SELECT k0",
        }

    def read(name: str) -> dict[str, object]:
        return {"stage": "read", "stream": name, "topic": name, "format": "json", "columns": ["a"]}

    narrow = {"stage": "narrow", "expansions": [], "where": None, "window": None}
    publish = {"stage": "publish", "dead": "v.dead", "late": None}
    stages = [read("s"), narrow, fold("SELECT 1"), read("t"), narrow, fold("SELECT 2"), publish]
    text = explanation_text({"view": "v", "version": "1", "stages": stages})
    assert [line for line in text.splitlines() if not line.startswith("      ")] == [
        "view v @1",
        "  branch 1 of 2: stream s",
        "    read",
        "    narrow",
        "    fold",
        "  branch 2 of 2: stream t",
        "    read",
        "    narrow",
        "    fold",
        "  table",
        "    name       headrace.v__1",
        "    columns    k0 INT",
        "    kept       for good",
        "    evaluator  store, when they are read: a",
        "    final      SELECT k0",
        "  publish",
        "    dead       v.dead",
    ]
