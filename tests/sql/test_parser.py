"""Every node of a query's tree knows its place: the tokens that it came from.

Method: expressions of every kind, and for each node of some of them the text that it came from.
"""

import pytest
from sqlglot import exp

from headrace.errors import Problem
from headrace.sql.query.reading.parser import parse_query
from headrace.sql.query.reading.syntax import AggregateCall, has_span, span_of
from headrace.sql.query.reading.trees import Tree
from headrace.sql.text import Source

EXPRESSIONS = {
    "a + b + c * -1": {exp.Add: ["a + b", "a + b + c * -1"], exp.Mul: ["c * -1"], exp.Neg: ["-1"]},
    "upper(p.a.b.c.d.e).f[0][1]::int::string": {
        exp.Anonymous: ["upper(p.a.b.c.d.e)"],
        exp.Bracket: ["upper(p.a.b.c.d.e).f[0]", "upper(p.a.b.c.d.e).f[0][1]"],
        exp.TryCast: [
            "upper(p.a.b.c.d.e).f[0][1]::int",
            "upper(p.a.b.c.d.e).f[0][1]::int::string",
        ],
    },
    "CASE WHEN a IS NOT NULL THEN 1 ELSE 'a' 'b' END": {
        exp.Case: ["CASE WHEN a IS NOT NULL THEN 1 ELSE 'a' 'b' END"],
        exp.Is: ["a IS NOT NULL"],
        exp.Concat: ["'a' 'b'"],
    },
    "a NOT IN (1, 2) AND b BETWEEN 1 AND 2 OR NOT c LIKE 'x' ESCAPE '!'": {
        exp.In: ["a NOT IN (1, 2)"],
        exp.Between: ["b BETWEEN 1 AND 2"],
        exp.And: ["a NOT IN (1, 2) AND b BETWEEN 1 AND 2"],
        exp.Escape: ["c LIKE 'x' ESCAPE '!'"],
        exp.Not: ["NOT c LIKE 'x' ESCAPE '!'", "a NOT IN (1, 2)"],
    },
    "(a + 1) * cast((b) AS STRUCT<x: INT>) /* why */ ": {
        exp.Paren: ["(a + 1)", "(b)"],
        exp.TryCast: ["cast((b) AS STRUCT<x: INT>)"],
        exp.DataType: ["INT", "STRUCT<x: INT>"],
    },
    "ts + INTERVAL 1 HOUR": {exp.Interval: ["INTERVAL 1 HOUR"]},
    "extract(HOUR FROM ts)": {exp.Extract: ["extract(HOUR FROM ts)"]},
    "if(a, b, 1)": {exp.If: ["if(a, b, 1)"]},
    "transform(a, x -> x.b + c)": {
        exp.Transform: ["transform(a, x -> x.b + c)"],
        exp.Lambda: ["x -> x.b + c"],
        exp.Dot: ["x.b"],
    },
    "sum( DISTINCT a ) FILTER (WHERE b > 1) / count(*)": {
        AggregateCall: ["count(*)", "sum( DISTINCT a ) FILTER (WHERE b > 1)"],
        exp.Div: ["sum( DISTINCT a ) FILTER (WHERE b > 1) / count(*)"],
    },
    "first(a) IGNORE NULLS": {AggregateCall: ["first(a) IGNORE NULLS"]},
    "sum(a) OVER (ORDER BY b)": {
        AggregateCall: ["sum(a)"],
        exp.Window: ["sum(a) OVER (ORDER BY b)"],
    },
    "date '2020-01-01'": {exp.Cast: ["date '2020-01-01'"]},
    "window(ts, '1 minute')": {exp.Anonymous: ["window(ts, '1 minute')"]},
    "(SELECT max(a) FROM t)": {exp.Select: ["SELECT max(a) FROM t"]},
}


def parse(sql: str) -> Tree:
    source = Source("f.sql", sql)
    tokens = tuple(source.tokenize())
    problems: list[Problem] = []
    tree = parse_query(source, tokens, problems)
    assert problems == []
    return tree


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_node_knows_the_text_that_it_came_from(text: str) -> None:
    tree = parse(f"SELECT 1 AS one,\n  {text} AS it FROM s p WHERE a = 1")
    output = tree.root.expressions[1]
    assert tree.text(output.this) == text.split(" /*")[0].strip()
    for kind, texts in EXPRESSIONS[text].items():
        assert sorted(tree.text(node) for node in output.find_all(kind)) == texts
    assert (tree.location(output).line, tree.location(output).column) == (2, 3)


def test_clauses_begin_with_their_words() -> None:
    tree = parse(
        "SELECT a FROM s p LEFT JOIN t ON x = y, u WHERE a GROUP BY window(ts, '1 day'), 1 "
        "HAVING b ORDER BY 1 LIMIT 2 OFFSET 3"
    )
    words = {
        name: [tree.first(part).text for part in (value if isinstance(value, list) else [value])]
        for name, value in tree.root.args.items()
        if name not in ("expressions",) and value
    }
    assert words == {
        "from_": ["FROM"],
        "joins": ["LEFT", ","],
        "where": ["WHERE"],
        "group": ["GROUP BY"],
        "having": ["HAVING"],
        "order": ["ORDER BY"],
        "limit": ["LIMIT"],
        "offset": ["OFFSET"],
    }


def test_queries_within_queries_know_their_places_too() -> None:
    tree = parse(
        "WITH c AS (SELECT 1 AS x) SELECT a FROM (SELECT b AS a FROM s) d "
        "UNION ALL SELECT x FROM c UNION ALL (SELECT 2)"
    )
    assert sorted(tree.text(node) for node in tree.root.find_all(exp.Select)) == [
        "SELECT 1 AS x",
        "SELECT 2",
        "SELECT a FROM (SELECT b AS a FROM s) d",
        "SELECT b AS a FROM s",
        "SELECT x FROM c",
    ]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_node_covers_its_parts(text: str) -> None:
    tree = parse(f"SELECT {text} AS it FROM s GROUP BY {text}")
    for node in tree.root.walk():
        if isinstance(node, exp.Identifier | exp.Column | exp.Binary | AggregateCall):
            assert has_span(node), repr(node)
        for part in filter(has_span, node.iter_expressions()):
            first, last = span_of(part)
            assert span_of(node)[0] <= first <= last <= span_of(node)[1]
