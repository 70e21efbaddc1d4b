"""Fingerprints change with the answer alone; validation holds for any front door."""

import dataclasses
import json
from typing import Any

import pytest

from headrace.errors import Location
from headrace.model import (
    Project,
    Stream,
    View,
    stream_fingerprint,
    validate_project,
    validate_stream,
    validate_view,
    view_fingerprint,
)
from headrace.model.canonical import from_canonical, to_canonical
from headrace.model.nodes import Aggregate, Call, Filter, Named, Node, Scan, Window, call_column
from headrace.model.nodes import Project as Select
from headrace.model.scalars import Scalar
from headrace.schema.types import Column, parse_type
from headrace.sql import parse_project

STREAM = """CREATE STREAM s (a INT, b STRING, t TIMESTAMP NOT NULL,
WATERMARK FOR t AS t - INTERVAL 1 SECOND) WITH (topic = 'x')"""
VIEW = """CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS w, b, sum(a + 1) AS total FROM s WHERE a > 1
GROUP BY window(t, '1 minute'), b HAVING sum(a + 1) > 2"""


def fingerprints(stream_sql: str, view_sql: str) -> tuple[str, str]:
    project = parse_project({"a.sql": f"{stream_sql};{view_sql}"})
    stream, view = project.streams[0], project.views[0]
    return stream_fingerprint(stream), view_fingerprint(view, stream)


BASE = fingerprints(STREAM, VIEW)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a INT", "a   INT /* why */"),
        ("topic = 'x'", "key = 'b', topic = 'x'"),
        ("topic = 'x'", "topic = 'x', format = 'json'"),
        ("STREAM s", "STREAM -- name\n s"),
        ("INTERVAL 1 SECOND", "INTERVAL '1000 milliseconds'"),
        ("sum(a + 1) AS", "sum( a+1 ) AS"),
        ("SELECT window", "SELECT /* x */ window"),
        ("'1 minute')", "'60 seconds')"),
        ("VIEW v", "VIEW other"),
    ],
)
def test_what_does_not_change_the_answer_does_not_change_the_fingerprint(
    old: str, new: str
) -> None:
    assert fingerprints(STREAM.replace(old, new), VIEW.replace(old, new)) == BASE


ONE_WAY = """SELECT window.start AS w, upper(b) AS name, sum(a + 1) AS total FROM s
WHERE a > 1 AND b <> 'X' GROUP BY window(t, '1 minute'), upper(b) HAVING sum(a + 1) > 2"""
OTHER_WAYS = {
    "case": """select WINDOW.Start as w, UPPER(B) as name, Sum(A + 1) as total from S
where A > 1 and b <> 'X' group by Window(T, '1 minute'), Upper(b) having SUM(a + 1) > 2""",
    "white space and comments": """SELECT window . start AS w, -- when
upper( b )AS name,/* who */sum(a+1)   AS total FROM s
WHERE a>1 AND b<>'X' GROUP BY window( t,'1 minute' ),upper (b) HAVING sum(a+1)>2""",
    "aliases of the stream": """SELECT window.start AS w, upper(`e`.b) AS name, sum(e.a + 1) total
FROM s AS e WHERE e.a > 1 AND `b` <> 'X' GROUP BY window(e.t, '1 minute'), upper(e.`b`)
HAVING sum(e.`a` + 1) > 2""",
    "names of outputs": """SELECT window.start AS w, upper(b) AS name, sum(a + 1) AS total FROM s
WHERE a > 1 AND b <> 'X' GROUP BY window(t, '60 seconds'), name HAVING total > 2""",
    "places of outputs": """SELECT window.start w, upper(b) name, sum(a + 1) total FROM s
WHERE a > 1 AND b <> 'X' GROUP BY window(t, '1 minute', '1 minute'), 2 HAVING (sum(a + 1) > 2)""",
}


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_the_same_query_has_one_fingerprint_however_it_is_written(way: str) -> None:
    head = "CREATE MATERIALIZED VIEW v AS"
    expected = fingerprints(STREAM, f"{head} {ONE_WAY}")
    assert fingerprints(STREAM, f"{head} {OTHER_WAYS[way]}") == expected


def test_the_order_of_files_and_statements_does_not_change_a_fingerprint() -> None:
    project = parse_project({"a.sql": VIEW, "z.sql": f"{STREAM}; CREATE STREAM r (c INT)"})
    assert view_fingerprint(project.views[0], project.stream("s")) == BASE[1]


def test_a_definition_goes_on_from_its_canonical_form_alone() -> None:
    project = parse_project({"a.sql": f"{STREAM};{VIEW}"})
    for definition in (*project.streams, *project.views):
        kept = from_canonical(json.loads(json.dumps(to_canonical(definition))))
        assert kept == dataclasses.replace(definition, sql="")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a INT", "a BIGINT"),
        ("a INT", "a INT NOT NULL"),
        ("b STRING", "b STRING, c STRING"),
        ("topic = 'x'", "topic = 'y'"),
        ("topic = 'x'", "topic = 'x', timestamp_format = 'millis'"),
        ("INTERVAL 1 SECOND", "INTERVAL 2 SECONDS"),
    ],
)
def test_what_changes_a_stream_changes_its_views_too(old: str, new: str) -> None:
    changed = fingerprints(STREAM.replace(old, new), VIEW)
    assert changed[0] != BASE[0]
    assert changed[1] != BASE[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'1 minute') AS", "'2 minutes') AS"),
        ("WHERE a > 1", "WHERE a > 2"),
        ("window(t, '1 minute')", "window(t, '2 minutes')"),
        ("window(t, '1 minute')", "session_window(t, '1 minute')"),
        ("AS total", "AS sum_of_a"),
        ("sum(a + 1) AS", "max(a + 1) AS"),
        ("> 2", "> 3"),
    ],
)
def test_what_changes_a_view_changes_its_fingerprint_alone(old: str, new: str) -> None:
    changed = fingerprints(STREAM, VIEW.replace(old, new))
    assert changed[0] == BASE[0]
    assert changed[1] != BASE[1]


def test_a_stream_built_by_hand_is_checked_like_one_from_sql() -> None:
    column = Column("a", parse_type("INT"))
    wrong = Stream(
        "_s", (column, Column("A", parse_type("INT"))), "a b", format="avro", event_time="a",
        delay_us=-1, key="z", timestamp_format="nanos", location=Location("f.py", 3, 1),
    )  # fmt: skip
    problems = validate_stream(wrong)
    assert len(problems) == 8
    assert {problem.location for problem in problems} == {Location("f.py", 3, 1)}
    assert validate_stream(Stream("s", (), "s"))
    assert not validate_stream(Stream("s", (column,), "s"))


N = Named("n", Scalar.column(call_column(0)))


def counted(window: Window | None, *outputs: Named, stream: str = "s") -> Select:
    return Select(Aggregate(Scan(stream), window, (), (Call("count"),)), outputs or (N,))


def messages(view: View, stream: Stream) -> list[str]:
    return [problem.message for problem in validate_view(view, {stream.name: stream})]


def test_a_view_built_by_hand_is_checked_like_one_from_sql() -> None:
    stream = Stream("s", (Column("window", parse_type("INT")),), "s")
    query = counted(
        Window(0), N, dataclasses.replace(N, name="N"), dataclasses.replace(N, name="_x")
    )
    assert len(messages(View("headrace_v", query, -1), stream)) == 7
    unwindowed = Select(counted(None).input, ())
    assert len(messages(View("v", unwindowed, 5), stream)) == 2


def test_a_column_that_is_not_there_is_found_whichever_node_reads_it() -> None:
    stream = Stream("s", (Column("amount", parse_type("INT")),), "s")
    node: Node = Filter(Scan("s"), Scalar("{0} > 1", ("amuont",)))
    node = Select(node, (Named("a", Scalar.column("amount")),))
    node = Select(node, (Named("b", Scalar("{0} + {1}", ("a", "amount"))),))
    assert messages(View("v", node), stream) == [
        "view v: Project reads the column amount, which its input does not have; its columns are a",
        "view v: Filter reads the column amuont, which its input does not have (did you mean "
        "amount?); "
        "its columns are amount",
    ]


@pytest.mark.parametrize(
    ("window", "options", "subjects"),
    [
        (Window(60, "hopping", 0), {}, 1),
        (Window(60, "hopping", 90), {}, 1),
        (Window(60, "cumulative", 25), {}, 1),
        (Window(60, offset_us=-60), {}, 1),
        (Window(60, zone="Europe/Berlin"), {}, 1),
        (Window(60, zone="Mars/Olympus"), {}, 2),
        (Window(60), {"late": "ignore"}, 1),
        (Window(60), {"allowed_lateness_us": 5, "late": "fold"}, 1),
        (Window(60), {"allowed_lateness_us": 5, "retention_us": 4}, 1),
        (None, {"late": "drop", "retention_us": 4}, 2),
    ],
)
def test_windows_built_by_hand_are_checked_like_those_from_sql(
    window: Window | None, options: dict[str, Any], subjects: int
) -> None:
    column = Column("t", parse_type("TIMESTAMP"), nullable=False)
    stream = Stream("s", (column,), "s", event_time="t")
    assert len(messages(View("v", counted(window), **options), stream)) == subjects


def test_definitions_may_not_collide() -> None:
    stream = Stream("s", (Column("a", parse_type("INT")),), "v.late")
    query = Select(Scan("nowhere"), (Named("a", Scalar.column("a")),))
    project = Project((stream,), (View("S", query), View("v", query)))
    assert len(validate_project(project)) == 4  # S is taken, v.late is a side topic, nowhere twice


def test_definitions_are_found_by_name() -> None:
    project = parse_project({"a.sql": f"{STREAM};{VIEW}"})
    assert project.views_over("s") == (project.view("v"),)
    assert project.stream("s").topic == "x"


def test_sessions_built_by_hand_are_checked_like_those_from_sql() -> None:
    stream = parse_project({"a.sql": STREAM}).streams[0]
    minute_us = 60_000_000
    session = Window(5 * minute_us, "session")

    def problems(window: Window, **options: object) -> list[str]:
        view = dataclasses.replace(View("v", counted(window)), **options)  # type: ignore[arg-type]
        return messages(view, stream)

    assert problems(session) == []
    assert "gap must be positive" in problems(Window(0, "session"))[0]
    assert "neither slide nor offset" in problems(Window(5, "session", slide_us=5))[0]
    assert "neither slide nor offset" in problems(Window(5, "session", offset_us=1))[0]
    assert "remove time_zone" in problems(Window(5, "session", zone="UTC"))[0]
    # A row leaves when no record that takes part can reach it any more, not a microsecond before.
    lateness = {"allowed_lateness_us": minute_us}
    assert problems(session, **lateness, retention_us=6 * minute_us) == []
    assert "together" in problems(session, **lateness, retention_us=6 * minute_us - 1)[0]
    assert problems(session, late="fold", retention_us=5 * minute_us) == []
    assert "at least the gap" in problems(session, late="fold", retention_us=5 * minute_us - 1)[0]


def test_a_record_of_sessions_is_folded_for_as_long_as_it_can_reach_a_row_that_is_kept() -> None:
    text = """CREATE MATERIALIZED VIEW v WITH (late = 'fold'{retention}) AS
    SELECT window.start AS w, count(*) AS n FROM s GROUP BY {window}"""

    def lateness_us(window: str, retention: str = ", retention = '7 seconds'") -> int | None:
        view = text.format(window=window, retention=retention)
        return parse_project({"a.sql": f"{STREAM};{view}"}).views[0].lateness_us

    assert lateness_us("window(t, '5 seconds')") == 7_000_000
    assert lateness_us("session_window(t, '5 seconds')") == 2_000_000
    assert lateness_us("session_window(t, '5 seconds')", "") is None
