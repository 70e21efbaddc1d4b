"""The expressions of a view by themselves: each once, what is read first, with its place.

Method: a view over a named query is read from text, and its expressions are compared as a whole.
"""

from headrace.plan.spark.places import expressions_of
from headrace.sql import parse_project

SQL = """\
CREATE STREAM s (a STRING, b INT) WITH (topic = 's', format = 'json');
CREATE VIEW q AS
SELECT upper(a) AS a, b
FROM s WHERE b > 1;
CREATE MATERIALIZED VIEW v AS
SELECT a || '!' AS k,
  sum(b * 2) + 1 AS n
FROM q GROUP BY a || '!' HAVING count(*) > 3;
"""


def test_expressions_have_their_places_in_the_order_they_are_read() -> None:
    (view,) = parse_project({"f.sql": SQL}).views
    found = list(expressions_of(view.query, {"s": "leaf"}))
    assert [(each.text, each.location and str(each.location)) for each in found] == [
        ("b > 1", "f.sql:4:14"),
        ("upper(a)", "f.sql:3:8"),
        ("a || '!'", "f.sql:6:8"),
        ("b * 2", "f.sql:7:3"),
    ]
    assert found[1].query == (
        "SELECT (upper(`a`)) AS x FROM (SELECT * FROM (SELECT * FROM leaf) WHERE (`b` > 1))"
    )
