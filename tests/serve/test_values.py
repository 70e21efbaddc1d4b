"""Rows are the same JSON wherever they are shown, by Python or by the store itself, and it is JSON.

Method: one row of every type, as a query's answer and as the store writes it for sinks.
"""

import json

import duckdb
import pyarrow as pa
import pytest

from headrace.schema.json_rows import json_object
from headrace.schema.types import parse_type
from headrace.serve.http.values import answer_to_json, arrow_bytes, read_arrow
from headrace.store.duckdb.tables.names import quote

# Type, SQL of a value, and what it is in JSON.
VALUES = [
    ("BIGINT", "9007199254740993", 9007199254740993),
    ("BOOLEAN", "true", True),
    ("STRING", "'é\"' || chr(0)", 'é"\0'),
    ("DOUBLE", "0.1", 0.1),
    ("DOUBLE", "'nan'", "nan"),
    ("FLOAT", "'-inf'", "-inf"),
    ("DECIMAL(20,0)", "12345678901234567890", 12345678901234567890),
    ("DECIMAL(4,2)", "12.5", "12.50"),
    ("BINARY", "from_base64('AAH/')", "AAH/"),
    ("DATE", "'0033-02-28'", "0033-02-28"),
    ("TIMESTAMP", "'2026-01-01 00:00:00Z'", "2026-01-01T00:00:00Z"),
    ("ARRAY<TIMESTAMP>", "['2026-01-01 00:00:00.1Z', NULL]", ["2026-01-01T00:00:00.100000Z", None]),
    ("ARRAY<STRUCT<x: DOUBLE>>", "[{'x': 'inf'}, NULL]", [{"x": "inf"}, None]),
    ("MAP<STRING, DOUBLE>", "MAP {'é': 'nan', 'n': NULL}", {"é": "nan", "n": None}),
    ("MAP<STRING, BINARY>", "MAP {'x': from_base64('AAH/')}", {"x": "AAH/"}),
    ("MAP<STRING, INT>", "MAP {}", {}),
    ("MAP<STRING, INT>", "NULL", None),
    ("MAP<DOUBLE, INT>", "MAP {'nan': 1, '1e16': 2, '1.5': 3}", {"nan": 1, "1e+16": 2, "1.5": 3}),
    ("MAP<BOOLEAN, INT>", "MAP {true: 1}", {"true": 1}),
    ("MAP<BIGINT, INT>", "MAP {12: 1}", {"12": 1}),
    ("MAP<DECIMAL(4,0), INT>", "MAP {12: 1}", {"12": 1}),
    ("MAP<DECIMAL(4,2), INT>", "MAP {12.5: 1}", {"12.50": 1}),
    ("MAP<BINARY, INT>", "MAP {from_base64('AAH/'): 1}", {"AAH/": 1}),
    ("MAP<DATE, INT>", "MAP {'2026-02-28': 1}", {"2026-02-28": 1}),
    (
        "MAP<TIMESTAMP, ARRAY<MAP<STRING, TIMESTAMP>>>",
        "MAP {'2026-01-01 00:00:00Z': [MAP {'x': '2026-01-01 00:00:00Z'}]}",
        {"2026-01-01T00:00:00Z": [{"x": "2026-01-01T00:00:00Z"}]},
    ),
]  # fmt: skip


def test_a_row_is_the_same_json_from_the_store_and_from_python() -> None:
    types = {f"c{place}": parse_type(type) for place, (type, _, _) in enumerate(VALUES)}
    casts = ", ".join(
        f"CAST({value} AS {type.duckdb}) AS {name}"
        for (name, type), (_, value, _) in zip(types.items(), VALUES, strict=True)
    )
    wanted = [value for _, _, value in VALUES]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        row = connection.sql(f"SELECT {casts}")
        assert answer_to_json(row.to_arrow_table())["rows"] == [wanted]
        members = [(name, quote(name), type) for name, type in types.items()]
        [[text]] = row.project(json_object(members)).fetchall()
    found = json.loads(text, parse_constant=lambda word: f"{word} is not JSON")
    assert list(found.values()) == wanted


def test_an_interval_is_text_as_the_store_writes_it() -> None:
    spans = ["3 days 4 hours", "14 months", "-14 months", "-1.5 seconds", "0 seconds", "30 hours"]
    for span in spans:
        query = f"SELECT INTERVAL '{span}' AS i, [i] AS many, CAST(i AS VARCHAR) AS text"
        ((one, many, text),) = answer_to_json(duckdb.sql(query).to_arrow_table())["rows"]
        assert (one, many) == (text, [text])


def test_a_time_that_python_has_no_year_for_is_written_as_the_others_are() -> None:
    near, far = "2026-01-01 00:00:00.5Z", "12000-02-29 23:59:59.000005Z"
    told = {near: "2026-01-01T00:00:00.500000Z", far: "12000-02-29T23:59:59.000005Z"}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql(
            f"SELECT t, [t] AS many, {{'t': t, 'n': NULL::TIMESTAMPTZ}} AS one, "
            f"MAP {{t: [t]}} AS named, t::DATE AS day "
            f"FROM (VALUES (TIMESTAMPTZ '{near}'), ('{far}')) v(t)"
        )
        found = answer_to_json(rows.to_arrow_table())["rows"]
    assert found == [
        [text, [text], {"t": text, "n": None}, {text: [text]}, text.partition("T")[0]]
        for text in told.values()
    ]


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (2_932_896, "9999-12-31"),
        (2_932_897, "10000-01-01"),
        (-719_162, "0001-01-01"),
        (-719_163, "0000-12-31"),
        (-719_529, "-0001-12-31"),
    ],
)
def test_a_date_of_any_year_is_iso(days: int, text: str) -> None:
    column = pa.chunked_array([pa.array([days, 10_000_000], pa.int32()).cast(pa.date32())])
    assert answer_to_json(pa.table({"day": column}))["rows"][0] == [text]


def test_a_table_goes_over_the_wire_as_it_is() -> None:
    table = duckdb.sql("SELECT 1::SMALLINT AS a, [2.5] AS b, NULL AS c").to_arrow_table()
    assert read_arrow(arrow_bytes(table)).equals(table)
