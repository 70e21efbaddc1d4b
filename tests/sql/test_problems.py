"""A bad project starts nothing and says everything: all problems, of all files, at once."""

import contextlib
import re
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import DefinitionError
from headrace.sql import parse_project, read_project

SOUND = "CREATE STREAM s (a INT, t TIMESTAMP NOT NULL, WATERMARK FOR t AS t)"
WORDS = """CREATE STREAM MATERIALIZED VIEW v s ( ) , . ; AS SELECT FROM WHERE GROUP BY HAVING WITH
a t window start count sum * + - / = < > 'x' '1 minute' 1 1L NULL NOT AND CASE WHEN THEN END IN
BETWEEN LIKE IS DISTINCT TIMESTAMP INT WATERMARK FOR INTERVAL SECONDS :: -> [ ] { } ` ' " @ ? :
-- /* */ lower cast OVER FILTER DESC ORDER LIMIT UNION JOIN ON any
window( cumulate( window_time( count( k0 a0 _ $ % | first( IGNORE NULLS max_by( struct( extract(
trim( watermark( session_window( EXISTS( transform( timestampadd( HOUR LATERAL VIEW PIVOT QUALIFY
TABLESAMPLE
ROLLUP VALUES ALL DIV => <=> r'x' X'1F' EMIT CHANGES USING NATURAL EXCEPT ARRAY /*+ */ |>"""
FRAMES = [
    "{} AS x FROM s",
    "a FROM s WHERE {}",
    "count(*) AS n FROM s GROUP BY {}",
    "a, sum({}) AS n FROM s GROUP BY a HAVING {}",
    "a FROM {}",
    "a FROM s {}",
    "a FROM (SELECT {} FROM s) AS q (a)",
    "a FROM s UNION ALL SELECT {}",
    "a FROM (WITH c AS (SELECT a FROM s {}) SELECT a FROM c {})",
    "n FROM (SELECT a, count(*) AS n FROM s GROUP BY a) WHERE {}",
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


WHERE = f"{SOUND}; CREATE MATERIALIZED VIEW v AS SELECT a FROM s WHERE "
NESTS = [
    ("(", "a = 1", ")"),
    ("f(", "a", ")"),
    ("a[", "1", "]"),
    ("NOT (", "a = 1", ")"),
    ("NOT ", "a = 1", ""),
    ("- ", "a", " = 1"),
    ("CASE WHEN ", "a = 1", " THEN 1 END"),
    ("f(x -> ", "a", ")"),
    ("a IN (", "a", ")"),
    ("cast(", "a", " AS INT)"),
    ("INTERVAL ", "1", " DAY"),
]


@pytest.mark.parametrize(("before", "inside", "after"), NESTS)
def test_deep_nesting_is_refused_wherever_the_caller_stands(
    before: str, inside: str, after: str
) -> None:
    def nested(levels: int) -> dict[str, str]:
        return {"a.sql": WHERE + before * levels + inside + after * levels}

    def called_deep(levels: int, frames: int) -> str:
        if frames:
            return called_deep(levels, frames - 1)
        try:
            parse_project(nested(levels))
        except DefinitionError as error:
            return str(error)
        return ""

    for levels in (50, 3000):
        answers = {called_deep(levels, frames) for frames in (0, 300, 700)}
        assert len(answers) == 1
        assert ("nested too deeply" in answers.pop()) == (levels > 50)


def test_long_chains_are_not_nested() -> None:
    for chain in (" OR ".join(["a = -1"] * 500), " + ".join(["a"] * 500) + " = 1"):
        parse_project({"a.sql": WHERE + chain})
    parse_project({"a.sql": WHERE + "a IN (" + ", ".join(["-1"] * 500) + ")"})


def test_the_stack_for_parsing_leaves_the_settings_of_the_process_alone() -> None:
    before = sys.getrecursionlimit(), threading.stack_size()
    parse_project({"a.sql": WHERE + "a = 1"})
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


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


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(NESTS), max_size=80),
    st.sampled_from(FRAMES),
    st.integers(0, 30),
)
def test_any_nesting_raises_definition_errors_and_nothing_else(
    nests: list[tuple[str, str, str]], frame: str, lost: int
) -> None:
    before = "".join(nest[0] for nest in nests)
    after = "".join(nest[2] for nest in reversed(nests))
    query = frame.replace("{}", f"{before}a{after[: max(0, len(after) - lost)]}")
    check_only_definition_errors(f"CREATE MATERIALIZED VIEW v AS SELECT {query}")


@settings(max_examples=150, deadline=None)
@given(st.text("ab '\"`\\-/*\n(),.;", max_size=40), st.sampled_from(FRAMES))
def test_any_quotes_raise_definition_errors_and_nothing_else(text: str, frame: str) -> None:
    query = frame.replace("{}", text)
    check_only_definition_errors(f"CREATE MATERIALIZED VIEW v AS SELECT {query}")


def advice_of(query: str) -> tuple[list[str], list[str]]:
    sql = "CREATE STREAM s (a INT, b STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts);\n"
    reading = read_project({"f": f"{sql}CREATE MATERIALIZED VIEW v AS {query}"})
    assert not reading.problems
    return [str(each) for each in reading.warnings], [str(each) for each in reading.hints]


def test_a_text_in_double_quotes_that_spells_a_column_is_warned_about() -> None:
    warnings, hints = advice_of('SELECT "A" AS x, upper("b") AS y, \'a\' AS z FROM s WHERE b = "c"')
    assert [warning.split(": ", 1)[1] for warning in warnings] == [
        '"A" is a text, not the column; write a or `a`',
        '"b" is a text, not the column; write b or `b`',
    ]
    assert hints == []


def test_a_name_without_as_that_is_a_column_is_warned_about() -> None:
    [warning], hints = advice_of("SELECT a b FROM s")
    assert warning == (
        "f:2:40: b names a here, and is also a column of s; write a comma between them to select "
        "both, or a AS b"
    )
    assert not hints
    for sound in ("SELECT a AS b FROM s", "SELECT a c FROM s", "SELECT a + 1 b FROM s"):
        assert advice_of(sound) == ([], [])


def test_a_grouping_by_the_time_that_never_closes_is_noted() -> None:
    for key, size in (("date_trunc('minute', ts)", "1 minute"), ("to_date(ts)", "1 day")):
        _, [hint] = advice_of(f"SELECT {key} AS m, count(*) AS n FROM s GROUP BY {key}")
        assert f"GROUP BY window(ts, '{size}') has the same rows, which close" in hint
    for sound in (
        "SELECT date_trunc('minute', ts) AS m FROM s",
        "SELECT date_trunc('year', ts) AS m, count(*) AS n FROM s GROUP BY 1",
        "SELECT date_trunc('minute', window.start) AS m, count(*) AS n FROM s "
        "GROUP BY window(ts, '1 minute'), 1",
    ):
        assert advice_of(sound) == ([], [])


def test_rewrite_names_a_topic_by_the_version() -> None:
    def topic_of(query: str, stream: str = "a INT", rewrite: str = "new topic") -> str | None:
        sql = (
            f"CREATE STREAM s ({stream});\nCREATE STREAM t WITH (topic = 'out', rewrite = "
            f"'{rewrite}') AS {query}\n;CREATE MATERIALIZED VIEW v AS SELECT a FROM t"
        )
        project = parse_project({"f": sql})
        [query_] = project.queries
        assert project.view("t").topic == query_.topic
        return query_.topic

    topic = topic_of("SELECT a FROM s")
    assert topic is not None
    assert re.fullmatch(r"out\.[0-9a-f]{8}", topic)
    assert topic_of("select a  from s -- the same") == topic
    others = {topic_of("SELECT a FROM s WHERE a > 1"), topic_of("SELECT a FROM s", "a BIGINT")}
    assert len({*others, topic}) == 3
    assert topic_of("SELECT a FROM s", rewrite="never") == "out"
