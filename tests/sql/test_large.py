"""Large, deep and self-multiplying text is read in time or refused; it never crashes.

Method: text made by repetition, one way of growing at a time. What is accepted must also survive
the canonical form, which the ledger keeps and a later release reads with less stack.
"""

import json
import time
from itertools import pairwise

import pytest

from headrace.errors import DefinitionError
from headrace.model import Project, view_fingerprint
from headrace.model.canonical import from_canonical, to_canonical
from headrace.sql import parse_project

STREAM = "CREATE STREAM s (a INT, b STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts);\n"
VIEW = "CREATE MATERIALIZED VIEW v AS "


def read(sql: str) -> Project:
    return parse_project({"a.sql": STREAM + sql})


def chain(count: int, step: str) -> str:
    """Return a query over `count` CTEs, each over the one before; `step` names that `{0}`."""
    steps = [f"c{at} AS ({step.format(f'c{at - 1}')})" for at in range(1, count)]
    return f"{VIEW}WITH {', '.join(['c0 AS (SELECT a FROM s)', *steps])} SELECT a FROM c{count - 1}"


@pytest.mark.parametrize(
    "sql",
    [
        VIEW + " UNION ALL ".join(["SELECT a, b FROM s WHERE a > 1"] * 300),
        VIEW + "(SELECT a FROM s UNION ALL " * 60 + "SELECT a FROM s" + ")" * 60,
        VIEW + "SELECT a FROM (" * 60 + "SELECT a FROM s" + ")" * 60,
        VIEW + "WITH c AS (" * 60 + "SELECT a FROM s" + ") SELECT a FROM c" * 60,
        VIEW + "(" * 60 + "SELECT a FROM s" + ")" * 60,
        chain(60, "SELECT a FROM {0} WHERE a > 0"),
        VIEW + f"SELECT a FROM s WHERE a IN ({', '.join(map(str, range(20_000)))})",
    ],
    ids=["union", "nested union", "subqueries", "CTEs", "parentheses", "CTE chain", "long"],
)
def test_what_is_large_but_sound_is_read(sql: str) -> None:
    project = read(sql)
    view = project.view("v")
    form = json.loads(json.dumps(to_canonical(view)))
    again = from_canonical(form)
    assert view_fingerprint(view, *project.streams) == view_fingerprint(again, *project.streams)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (VIEW + "SELECT a FROM (" * 500 + "SELECT a FROM s" + ")" * 500, "nested too deeply"),
        (VIEW + "(" * 500 + "SELECT a FROM s" + ")" * 500, "nested too deeply"),
        (
            VIEW + "WITH c AS (" * 500 + "SELECT a FROM s" + ") SELECT a FROM c" * 500,
            "nested too deeply",
        ),
        (
            VIEW + "(SELECT a FROM s UNION ALL " * 500 + "SELECT a FROM s" + ")" * 500,
            "nested too deeply",
        ),
        (chain(500, "SELECT a FROM {0}"), "more than 64 levels of queries"),
        (chain(60, "SELECT a + a AS a FROM {0}"), "with all that it uses written out"),
        (chain(60, "SELECT a FROM {0} UNION ALL SELECT a FROM {0}"), "reads streams 1,024 times"),
        (VIEW + " UNION ALL ".join(["SELECT a FROM s"] * 1_001), "reads streams 1,001 times"),
    ],
    ids=["subqueries", "parentheses", "CTEs", "unions", "chain", "doubling", "reads", "branches"],
)
def test_what_grows_without_bound_is_refused_once(sql: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as error:
        read(sql)
    [problem] = error.value.problems
    assert reason in problem.message


def test_a_thousand_definitions_over_each_other_are_refused_where_they_become_too_many() -> None:
    names = ["s", *(f"w{at}" for at in range(1_000))]
    statements = [f"CREATE VIEW {own} AS SELECT a FROM {below}"
                  for below, own in pairwise(names)]  # fmt: skip
    with pytest.raises(DefinitionError) as error:
        read(";\n".join(reversed(statements)))
    [problem] = error.value.problems
    assert "more than 64 levels of queries" in problem.message
    circle = [f"CREATE VIEW w{at} AS SELECT a FROM w{(at + 1) % 1_000}" for at in range(1_000)]
    with pytest.raises(DefinitionError) as error:
        read(";\n".join(circle))
    [problem] = error.value.problems
    assert "w0 reads w1, w1 reads w2" in problem.message
    assert "w999 reads w0" in problem.message


def test_two_hundred_definitions_are_read_in_a_moment() -> None:
    definitions = [
        f"""CREATE MATERIALIZED VIEW v{at} AS
        WITH big AS (SELECT a, b, ts FROM s WHERE a > {at}),
        every AS (SELECT * FROM big UNION ALL SELECT a * 2, upper(b), ts FROM s WHERE a < {at})
        SELECT window.start AS minute, b, count(*) AS n, sum(a) AS total FROM every
        WHERE b IS NOT NULL GROUP BY window(ts, '1 minute'), b HAVING count(*) > {at}"""
        for at in range(200)
    ]
    begun = time.process_time()
    project = read(";\n".join(definitions))
    assert len(project.views) == 200
    # Some 1 s of work on an idle core of 2026; a bound for what grows with the square.
    assert time.process_time() - begun < 6


TERMS = 4_000
LONG = {
    "conditions": VIEW
    + f"SELECT a FROM s WHERE {' AND '.join(f'a > {at}' for at in range(TERMS))}",
    "columns": VIEW + f"SELECT {', '.join(f'a + {at} AS c{at}' for at in range(TERMS))} FROM s",
    "keys": VIEW
    + f"SELECT count(*) AS n FROM s GROUP BY {', '.join(f'a + {at}' for at in range(TERMS))}",
    "CTEs": VIEW
    + f"WITH {', '.join(f'c{at} AS (SELECT a FROM s)' for at in range(TERMS))} SELECT a FROM c7",
    "computed columns": "CREATE STREAM t (a INT, "
    + ", ".join(f"c{at} AS a + {at}" for at in range(TERMS))
    + ")",
}


@pytest.mark.parametrize("how", LONG)
def test_a_long_statement_takes_as_long_as_it_is(how: str) -> None:
    begun = time.process_time()
    read(LONG[how])
    # Below 1 s on an idle core of 2026. What grows with the square took 5 to 30.
    assert time.process_time() - begun < 4


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (" UNION ".join(["SELECT a FROM s"] * 300), "(the same at 298 other places of this query)"),
        (
            f"SELECT a FROM s WHERE {' AND '.join(f'aa > {at}' for at in range(TERMS))}",
            "(the same at 3,999 other places of this query)",
        ),
        (
            f"SELECT {', '.join(f'sum(a + {at}) AS c{at}' for at in range(TERMS))} FROM s",
            "a view keeps at most 1,000 different aggregates",
        ),
    ],
    ids=["UNION", "unknown column", "aggregates"],
)
def test_one_mistake_in_many_places_is_one_problem(sql: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as error:
        read(VIEW + sql)
    [problem] = error.value.problems
    assert reason in problem.message
