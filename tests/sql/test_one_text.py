"""Scalars of the door: one canonical text for one meaning, and its columns explicit."""

import pytest

from headrace.model.nodes import Project
from headrace.model.scalars import Scalar
from headrace.sql import parse_project

STREAM = """CREATE STREAM Payments (
  Id STRING, items BIGINT, `from` INT, tags ARRAY<STRING>,
  m MAP<STRING, STRUCT<N: INT>>, ts TIMESTAMP NOT NULL,
  a STRUCT<City: STRING, `zip code`: INT>, WATERMARK FOR ts AS ts);"""


def scalar(text: str) -> Scalar:
    view = f"CREATE MATERIALIZED VIEW v AS SELECT {text} AS x FROM payments p"
    query = parse_project({"f.sql": STREAM + view}).views[0].query
    assert isinstance(query, Project)
    return query.columns[0].scalar


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["id", "P.ID", "`Id`", "((p.`id`))", "/* x */ id -- y\n"], Scalar("{0}", ("Id",))),
        (["items+Items", "p.items +\n items"], Scalar("{0} + {0}", ("items",))),
        (["UPPER( id )||'A'", "upper(p.Id) || 'A'"], Scalar("upper({0}) || 'A'", ("Id",))),
        (["a.CITY", "p.a.city", "A.`City`"], Scalar("{0}.city", ("a",))),
        (["a.`ZIP code`"], Scalar("{0}.`zip code`", ("a",))),
        (["m.A.n", "M.`A`.N"], Scalar("{0}.A.n", ("m",))),
        (["m.a.n"], Scalar("{0}.a.n", ("m",))),
        (["`FROM`", "p.`from`"], Scalar("{0}", ("from",))),
        (
            ["transform(TAGS, X -> X || Id)"],
            Scalar("transform({0}, X -> X || {1})", ("tags", "Id")),
        ),
        (["CAST(id AS STRUCT<A: INT>)"], Scalar("cast({0} as struct < A : int >)", ("Id",))),
        (["named_struct('K', 1).K"], Scalar("named_struct('K', 1).K", ())),
        (["struct(items AS Name)"], Scalar("struct({0} as Name)", ("items",))),
        (["make_interval(YEARS => items)"], Scalar("make_interval(YEARS => {0})", ("items",))),
        (
            ["timestampadd(HOUR, items, ts)"],
            Scalar("timestampadd(hour, {0}, {1})", ("items", "ts")),
        ),
        (["'{0}' || id"], Scalar("'{{0}}' || {0}", ("Id",))),
        (["1E3 + 1L + 1.5BD", "1e3+1l+1.5bd"], Scalar("1e3 + 1L + 1.5BD", ())),
        (["1e3+5", "1E3 + 5"], Scalar("1e3 + 5", ())),
        (["1e3-1e3-items"], Scalar("1e3 - 1e3 - {0}", ("items",))),
        (["'it''s'", "'it\\'s'"], Scalar("'it\\'s'", ())),
        (["items BETWEEN 1 AND(2)"], Scalar("{0} between 1 and (2)", ("items",))),
        (["watermark()", "WATERMARK ( )"], Scalar("{0}", ("_watermark",))),
        (["`Upper`(id)", "upper(id)"], Scalar("upper({0})", ("Id",))),
        (["items>>1", "items >> 1"], Scalar("{0} >> 1", ("items",))),
    ],
)
def test_one_meaning_has_one_text(texts: list[str], expected: Scalar) -> None:
    assert [scalar(text) for text in texts] == [expected] * len(texts)
