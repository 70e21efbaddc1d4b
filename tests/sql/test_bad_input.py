"""Bad input is answered with problems that have a place, never with a crash or a stack trace.

Method: a statement is cut off behind each of its words, and nested 500 deep in every way there is.
test_large.py makes them long.
"""

import pytest

from headrace.errors import DefinitionError
from headrace.sql import parse_project

STREAM = """CREATE STREAM orders (
  id STRING NOT NULL, qty INT, tags ARRAY<STRING>, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 1 SECOND
) WITH (topic = 'orders', key = 'id');
"""
VIEW = "CREATE MATERIALIZED VIEW v AS "
WHOLE = """CREATE MATERIALIZED VIEW v WITH ( late = 'drop' , emit = 'final' ) AS
WITH a AS ( SELECT o . id , CASE WHEN qty > 1 THEN 'x' ELSE tags [ 0 ] END AS x , ts
FROM orders AS o WHERE qty BETWEEN 1 AND 9 AND id LIKE 'a%' UNION ALL SELECT id , 'y' , ts
FROM TUMBLE ( TABLE orders , DESCRIPTOR ( ts ) , INTERVAL '1' MINUTE ) )
SELECT window . start AS s , x , count ( * ) FILTER ( WHERE id <> '' ) AS n FROM a
GROUP BY window ( ts , '1 minute' ) , x HAVING count ( * ) > 1"""
DEEP = 500
NESTED = {
    "parentheses": f"SELECT {'(' * DEEP}qty{')' * DEEP} AS x FROM orders",
    "subqueries": f"SELECT id FROM {'(SELECT id FROM ' * DEEP}orders{')' * DEEP}",
    "cases": f"SELECT {'CASE WHEN qty > 1 THEN ' * DEEP}1{' END' * DEEP} AS x FROM orders",
    "functions": f"SELECT {'abs(' * DEEP}qty{')' * DEEP} AS x FROM orders",
    "negations": f"SELECT id FROM orders WHERE {'NOT ' * DEEP}qty > 1",
    "signs": f"SELECT {'- ' * DEEP}qty AS x FROM orders",
    "lambdas": f"SELECT {'transform(tags, x -> ' * DEEP}1{')' * DEEP} AS x FROM orders",
    "common tables": "WITH c0 AS (SELECT id FROM orders), "
    + ", ".join(f"c{at} AS (SELECT id FROM c{at - 1})" for at in range(1, DEEP))
    + f" SELECT id FROM c{DEEP - 1}",
}


def problems_of(sql: str) -> list[str]:
    with pytest.raises(DefinitionError) as refused:
        parse_project({"streams.sql": STREAM, "case.sql": sql})
    return [str(problem) for problem in refused.value.problems]


def test_a_statement_that_ends_behind_any_word_is_refused_at_a_place() -> None:
    words = WHOLE.split(" ")
    parse_project({"streams.sql": STREAM, "case.sql": WHOLE})
    accepted = []
    for end in range(1, len(words)):
        try:
            parse_project({"streams.sql": STREAM, "case.sql": " ".join(words[:end])})
        except DefinitionError as error:
            for problem in error.problems:
                assert problem.location.file == "case.sql"
                assert "Traceback" not in str(problem)
                assert "sqlglot" not in str(problem)
        else:
            accepted.append(" ".join(words[max(0, end - 2) : end]))
    # Without HAVING, and with a condition that only its type makes wrong, which Spark tells.
    assert accepted == [", x", "* )"]


@pytest.mark.parametrize("how", NESTED)
def test_what_is_nested_500_deep_is_refused(how: str) -> None:
    [problem] = problems_of(VIEW + NESTED[how])
    assert problem.startswith("case.sql:1:")
    assert "the query is nested too deeply" in problem or "more than 64 levels" in problem


def test_types_nested_500_deep_are_refused() -> None:
    [problem] = problems_of(f"CREATE STREAM s (x {'ARRAY<' * DEEP}INT{'>' * DEEP})")
    assert problem == "case.sql:1:20: column x: types are nested more than 32 deep"
