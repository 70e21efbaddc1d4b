"""A bad project starts nothing and says everything: all problems, of all files, at once."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import DefinitionError
from headrace.sql import parse_project

SOUND = "CREATE STREAM s (a INT, t TIMESTAMP NOT NULL, WATERMARK FOR t AS t)"
WORDS = """CREATE STREAM MATERIALIZED VIEW v s ( ) , . ; AS SELECT FROM WHERE GROUP BY HAVING WITH
a t window start count sum * + - / = < > 'x' '1 minute' 1 1L NULL NOT AND CASE WHEN THEN END IN
BETWEEN LIKE IS DISTINCT TIMESTAMP INT WATERMARK FOR INTERVAL SECONDS :: -> [ ] { } ` ' " @ ? :
-- /* */ lower cast OVER FILTER DESC ORDER LIMIT UNION JOIN ON any
window( cumulate( window_time( count( k0 a0 _ $ % |"""
FRAMES = [
    "{} AS x FROM s",
    "a FROM s WHERE {}",
    "count(*) AS n FROM s GROUP BY {}",
    "a, sum({}) AS n FROM s GROUP BY a HAVING {}",
    "first({}) AS w, max_by({}) AS x, approx_percentile({}) AS y, collect_list({}) AS z FROM s",
]
TOKENS = [*WORDS.split(), "\n"]


def test_all_problems_of_all_files_are_reported_at_once() -> None:
    sources = {
        "b.sql": "CREATE MATERIALIZED VIEW v AS SELECT b, a + AS c FROM s WHERE now() > t;\n"
        "DROP x; CREATE MATERIALIZED VIEW of_u AS SELECT y FROM u",
        "a.sql": f"{SOUND} WITH (topc = 'x', key = 'b');\nCREATE STREAM u (x INTT, _y INT)",
        "c.sql": "CREATE STREAM w (t TIMESTAMP, WATERMARK FOR t AS t); 'no end",
        "d.sql": "CREATE STREAM e (a INT);\n"
        "CREATE MATERIALIZED VIEW of_e AS SELECT b FROM e ORDER BY 1",
    }
    with pytest.raises(DefinitionError) as caught:
        parse_project(sources)
    places = [str(problem.location) for problem in caught.value.problems]
    assert places == [
        "a.sql:1:75",  # topc
        "a.sql:1:93",  # key = 'b'
        "a.sql:2:20",  # INTT
        "a.sql:2:26",  # _y
        "b.sql:1:38",  # b
        "b.sql:1:45",  # a +
        "b.sql:1:63",  # now()
        "b.sql:2:1",  # DROP; nothing is said of a view over u, whose columns are in doubt
        "c.sql:1:54",  # the quote: a file that cannot be cut into tokens has no other problems
        "d.sql:2:41",  # b
        "d.sql:2:50",  # ORDER BY
    ]


def test_an_error_prints_one_line_per_problem() -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_project({"a.sql": "DROP a;\nDROP b"})
    assert str(caught.value).count("\n") == 1


def test_no_files_are_an_empty_project() -> None:
    project = parse_project({"a.sql": " -- nothing\n;"})
    assert (project.streams, project.views) == ((), ())


def test_deep_nesting_is_refused_and_long_chains_are_not() -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT a FROM s WHERE "
    with pytest.raises(DefinitionError, match="nested too deeply"):
        parse_project({"a.sql": f"{SOUND}; {view}{'(' * 3000}a = 1{')' * 3000}"})
    parse_project({"a.sql": f"{SOUND}; {view}{' OR '.join(['a = 1'] * 200)}"})


def check_only_definition_errors(text: str) -> None:
    with contextlib.suppress(DefinitionError):
        parse_project({"s.sql": SOUND, "fuzz.sql": text})


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_raises_definition_errors_and_nothing_else(text: str) -> None:
    check_only_definition_errors(text)


@settings(max_examples=250, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=25))
def test_any_soup_of_tokens_raises_definition_errors_and_nothing_else(words: list[str]) -> None:
    check_only_definition_errors(" ".join(words))


@settings(max_examples=250, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=12), st.sampled_from(FRAMES))
def test_any_soup_within_a_view_raises_definition_errors_and_nothing_else(
    words: list[str], frame: str
) -> None:
    query = frame.replace("{}", " ".join(words))
    check_only_definition_errors(f"CREATE MATERIALIZED VIEW v AS SELECT {query}")
