"""Who reads a definition: by its name, or through named queries."""

import pytest

from headrace.model.graph import named_readers_of, passed_on, readers_of
from headrace.model.sinks import key_parts
from headrace.sql import parse_project

PROJECT = parse_project(
    {
        "a.sql": """
        CREATE STREAM s (a INT, b STRING);
        CREATE STREAM t (b STRING);
        CREATE STREAM both AS SELECT b FROM s UNION ALL SELECT b FROM t;
        CREATE VIEW counts AS SELECT b, count(*) AS n FROM both GROUP BY b;
        CREATE MATERIALIZED VIEW kept AS SELECT n, b AS what FROM counts WHERE n > 1;
        CREATE MATERIALIZED VIEW plain AS SELECT a FROM s;
        CREATE VIEW unread AS SELECT a FROM s;
        CREATE SINK told FROM kept WITH (topic = 'told');
        """
    }
)


@pytest.mark.parametrize(
    ("name", "views", "named"),
    [
        ("s", ["kept", "plain"], ["both", "unread", "plain"]),
        ("t", ["kept"], ["both"]),
        ("both", ["kept"], ["counts"]),
        ("counts", ["kept"], ["kept"]),
        ("unread", [], []),
        ("kept", [], ["told"]),
    ],
)
def test_readers(name: str, views: list[str], named: list[str]) -> None:
    assert [view.name for view in readers_of(PROJECT, name)] == views
    assert [each.name for each in named_readers_of(PROJECT, name)] == named


def test_the_key_of_a_sink_is_known_through_queries_over_groups() -> None:
    view = PROJECT.view("kept")
    assert passed_on(view.query) == {"n": "call_0", "what": "key_0"}
    assert key_parts(view) == {"key_0": "what"}


def test_named_queries_carry_their_text_and_their_kind() -> None:
    found = {query.name: (query.kind, query.reads) for query in PROJECT.queries}
    assert found == {
        "both": ("stream", ("s", "t")),
        "counts": ("view", ("both",)),
        "unread": ("view", ("s",)),
    }
    assert PROJECT.queries[0].sql.startswith("CREATE STREAM both AS SELECT")
    assert PROJECT.queries[0].location.line == 4
